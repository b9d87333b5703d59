// SPDX-License-Identifier: Apache-2.0
//
// quire-http: serves the archives of a Quire server over HTTP.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "client/http/access_log.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/gateway.h"
#include "client/http/gateway_metrics.h"
#include "client/http/gateway_settings.h"
#include "client/http/http_daemon.h"
#include "client/http/worker_pool.h"
#include "client/quire/process_settings.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/variable_names.h"

namespace quire {
namespace {

constexpr int kExitFailed = 1;

void Say(const std::string& text) {
  std::fputs(absl::StrCat("quire-http: ",
                          PrintableMessage({text.data(), text.size()}), "\n")
                 .c_str(),
             stderr);
}

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

// Connections and files need descriptors; the usual limit of 1,024 is for
// programs that use select().
void RaiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

// Returns when the process is to stop.
void WaitForStop(AccessLog* log) {
  const sigset_t signals = HandledSignals();
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || signal != SIGHUP) {
      return;
    }
    const absl::Status reopened =
        log == nullptr ? absl::OkStatus() : log->Reopen();
    if (!reopened.ok()) {
      Say(std::string(reopened.message()));
    }
  }
}

// Says why requests fail until the server answers.
void SayIfUnreachable(Gateway& gateway, const std::string& address) {
  const absl::Status status = gateway.CheckServer();
  if (!status.ok()) {
    Say(absl::StrCat("the server ", address, " (--server) does not answer: ",
                     status.message(), "; requests fail until it does"));
  }
}

absl::Status Serve(const GatewaySettings& settings) {
  QUIRE_ASSIGN_OR_RETURN(GatewayOptions options, MakeGatewayOptions(settings));
  const std::string server = options.client.address;
  MemoryBudget budget(options.budget_size_bytes);
  GatewayMetrics metrics;
  std::unique_ptr<AccessLog> log;
  if (!settings.access_log.empty()) {
    QUIRE_ASSIGN_OR_RETURN(log, AccessLog::Open(settings.access_log, &metrics));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Gateway> gateway,
      Gateway::Open(std::move(options.client), options.storage, &budget));
  options.daemon.rules.forwards_tokens = gateway->forwards_tokens();
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpDaemon> daemon,
      HttpDaemon::Start(std::move(options.daemon), gateway.get(), &budget,
                        &metrics, log.get()));
  if (!daemon->admin_address().empty()) {
    Say(absl::StrCat("metrics on http://", daemon->admin_address(),
                     "/metrics"));
  }
  Say(absl::StrCat("listening on ", daemon->address()));
  std::atomic<bool> is_checking = true;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerPool> checker,
                         WorkerPool::Start(1));
  checker->Submit([&] {
    SayIfUnreachable(*gateway, server);
    is_checking = false;
  });
  WaitForStop(log.get());
  Say("draining");
  const bool has_drained = daemon->Drain(options.drain_timeout);
  if (has_drained) {
    // Closes the listening sockets.
    daemon.reset();
  }
  if (!has_drained || is_checking) {
    Say("calls to the server did not end in time");
    if (log != nullptr) {
      log->Flush();
    }
    std::_Exit(0);
  }
  return absl::OkStatus();
}

// Names variables that resemble those of options.
void SayUnknownVariables(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    known.push_back(option->get_envname());
  }
  for (const std::string& message : DescribeUnknownVariables(
           "QUIRE_", known, UnknownVariables::kSimilar, environ)) {
    Say(absl::StrCat("warning: ", message));
  }
}

int Run(const GatewaySettings& settings) {
  const absl::Status status = Serve(settings);
  if (status.ok()) {
    return 0;
  }
  Say(std::string(status.message()));
  return absl::IsInvalidArgument(status) ? kProgramExitUsage : kExitFailed;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::PrepareReadingProcess();
  // Each arena keeps freed memory of its own.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread.
  mallopt(M_ARENA_MAX, 2);
  quire::RaiseFileLimit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const sigset_t signals = quire::HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  quire::GatewaySettings settings;
  return quire::RunProgram("quire-http",
                           "serves the archives of a Quire server over HTTP",
                           quire::kExitFailed, [&](CLI::App& app) {
                             quire::DefineGatewayOptions(app, settings);
                             app.parse(argc, argv);
                             quire::SayUnknownVariables(app);
                             return quire::Run(settings);
                           });
}
