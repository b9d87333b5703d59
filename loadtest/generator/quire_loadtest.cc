// SPDX-License-Identifier: Apache-2.0
//
// quire-loadtest: load on a server, each answer checked. Start at load_run.h.
#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/channel_arguments.h"

#include "client/cli/security_options.h"
#include "client/quire/client_status.h"
#include "client/quire/internal/secure_channel.h"
#include "client/quire/process_settings.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "loadtest/generator/load_command.h"
#include "loadtest/generator/load_run.h"
#include "loadtest/report/load_report.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

constexpr int kExitWrong = 1;
constexpr int kExitNoRun = 3;
constexpr int kExitInterrupted = 4;

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void Interrupt(int /*signal*/) {
  interrupted = true;
}

// The first interrupt ends the run with a report; a second one kills.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = Interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void Complain(absl::string_view text) {
  std::cerr << "quire-loadtest: " << PrintableMessage(text) << "\n";
}

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Connect(
    const LoadCommand& command) {
  QUIRE_RETURN_IF_ERROR(
      CheckSecretFiles(command.security, command.allow_readable_secrets));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // The client library's setting.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 256 << 10);
  // Without it channels to one address share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (uint32_t i = 0; i < command.connection_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        channels.emplace_back(),
        MakeSecureChannel(command.server, command.security, arguments));
  }
  return channels;
}

// Runs and reports; returns the exit code.
absl::StatusOr<int> RunAndReport(const LoadCommand& command) {
  LoadInputs inputs;
  std::unique_ptr<SourceText> source;
  if (!command.source.empty()) {
    QUIRE_ASSIGN_OR_RETURN(source,
                           SourceText::Open(command.source, command.index));
    inputs.source = source.get();
  }
  QUIRE_ASSIGN_OR_RETURN(inputs.channels, Connect(command));
  inputs.interrupt = &interrupted;
  CatchInterrupts();
  QUIRE_ASSIGN_OR_RETURN(const LoadReport report,
                         RunLoad(inputs, command.load));
  std::cout << (command.is_json
                    ? RenderReportJson(command.load, report, command.server)
                    : RenderReportText(command.load, report));
  for (const std::string& fault : report.faults) {
    Complain(fault);
  }
  if (report.request_count == 0) {
    Complain("no request was answered");
  }
  return report.is_good() && report.end != LoadEnd::kInterrupt ? 0
         : report.end == LoadEnd::kInterrupt &&
                 report.right_count == report.request_count
             ? kExitInterrupted
             : kExitWrong;
}

int Run(const LoadCommandLine& line) {
  const absl::StatusOr<LoadCommand> command = line.Complete();
  if (!command.ok()) {
    Complain(command.status().message());
    return kProgramExitUsage;
  }
  const absl::StatusOr<int> code = RunAndReport(*command);
  if (!code.ok()) {
    Complain(absl::IsUnavailable(code.status()) &&
                     !ErrorDetailsOf(code.status()).has_value()
                 ? absl::StrCat(
                       "cannot reach the server at ", command->server, " (",
                       code.status().message(),
                       "); check that it runs, and --server or QUIRE_SERVER")
                 : std::string(code.status().message()));
    return kExitNoRun;
  }
  return *code;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::PrepareReadingProcess();
  // Sleeps of an open loop end on time, not 50 us later; later threads inherit
  // this.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  std::optional<quire::LoadCommandLine> line;
  return quire::RunProgram(
      "quire-loadtest", "puts load on a Quire server and checks every answer",
      quire::kExitNoRun, [&](CLI::App& app) {
        line.emplace(app);
        app.parse(argc, argv);
        return quire::Run(*line);
      });
}
