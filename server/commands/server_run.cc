// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/server_run.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "server/archive/files/file_io.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

// Between two lines about the archives that are open.
constexpr int kProgressMs = 1000;

sigset_t ServeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

// Opening and reloading take long, and signals are heeded meanwhile: they run
// on a thread, one at a time. Thread-compatible.
class ServerRun {
 public:
  using Say = std::function<void(const std::string&)>;

  ServerRun(Server& server, absl::Duration drain_timeout, const Say& say)
      : server_(server), drain_timeout_(drain_timeout), say_(say) {}

  int Run() {
    const sigset_t signals = ServeSignals();
    signals_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC));
    work_ended_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
    if (!signals_.is_open() || !work_ended_.is_open()) {
      say_(std::string(ErrnoStatus(errno, "signals", "open").message()));
      return kExitFailed;
    }
    const size_t count = server_.opening_progress().archive_count;
    say_(absl::StrCat("reachable on ", server_.address(), ", opening ",
                      FormatCounted(count, "archive", "archives")));
    Begin([this] { opened_ = server_.OpenArchives(); });
    while (!exit_code_.has_value()) {
      pollfd events[] = {{signals_.get(), POLLIN, 0},
                         {work_ended_.get(), POLLIN, 0}};
      const int ready = poll(events, 2, is_open_ ? -1 : kProgressMs);
      if (ready == 0) {
        SayProgress();
      }
      if (ready > 0 && events[1].revents != 0) {
        EndWork();
      }
      if (ready > 0 && events[0].revents != 0) {
        TakeSignal();
      }
    }
    return *exit_code_;
  }

 private:
  void Begin(const std::function<void()>& work) {
    const auto run = [this, work] {
      work();
      const uint64_t one = 1;
      // The counter cannot be full.
      (void)!write(work_ended_.get(), &one, sizeof(one));
    };
    try {
      worker_ = std::jthread(run);
    } catch (const std::system_error&) {
      // The system gives no more threads; signals have to wait.
      run();
    }
  }

  void EndWork() {
    uint64_t count = 0;
    (void)!read(work_ended_.get(), &count, sizeof(count));
    if (worker_.joinable()) {
      worker_.join();
    }
    if (!is_open_) {
      EndOpening();
    } else {
      for (const std::string& line : reloaded_) {
        say_(line);
      }
    }
    if (reload_wanted_ && !exit_code_.has_value()) {
      reload_wanted_ = false;
      BeginReload();
    }
  }

  void EndOpening() {
    if (!opened_.ok()) {
      say_(std::string(opened_.message()));
      server_.Shutdown(absl::ZeroDuration());
      exit_code_ = kExitFailed;
      return;
    }
    is_open_ = true;
    // Names of archives are in it.
    for (const absl::string_view line :
         absl::StrSplit(server_.Description(), '\n', absl::SkipEmpty())) {
      std::fprintf(stderr, "%s\n", PrintableMessage(line).c_str());
    }
    if (!server_.metrics_address().empty()) {
      say_(absl::StrCat("metrics on http://", server_.metrics_address(),
                        "/metrics"));
    }
    // The last line of the start: what waits for all archives waits for it.
    say_(absl::StrCat("listening on ", server_.address()));
  }

  void SayProgress() const {
    const OpeningProgress progress = server_.opening_progress();
    say_(absl::StrCat(progress.open_count, " of ", progress.archive_count,
                      " archives are open"));
  }

  void TakeSignal() {
    signalfd_siginfo info;
    if (read(signals_.get(), &info, sizeof(info)) !=
        static_cast<ssize_t>(sizeof(info))) {
      return;
    }
    if (info.ssi_signo != SIGHUP) {
      Stop();
    } else if (worker_.joinable()) {
      reload_wanted_ = true;
    } else {
      BeginReload();
    }
  }

  void BeginReload() {
    say_("SIGHUP: opening the archives anew");
    Begin([this] { reloaded_ = server_.Reload(); });
  }

  void Stop() {
    say_(absl::StrCat("stopping; calls under way have ",
                      absl::FormatDuration(drain_timeout_), " to end"));
    server_.Shutdown(drain_timeout_);
    if (worker_.joinable()) {
      worker_.join();
    }
    say_("stopped");
    exit_code_ = kExitGood;
  }

  Server& server_;
  const absl::Duration drain_timeout_;
  const Say& say_;
  UniqueFd signals_;
  // Readable when the thread has ended its work.
  UniqueFd work_ended_;
  bool is_open_ = false;
  // Came while the thread was at work.
  bool reload_wanted_ = false;
  std::optional<int> exit_code_;
  // Of the thread, to be read once it is joined.
  absl::Status opened_;
  std::vector<std::string> reloaded_;
  std::jthread worker_;
};

}  // namespace

void PrepareServerProcess() {
  const sigset_t signals = ServeSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // The reader of the log may go away; serving goes on.
  signal(SIGPIPE, SIG_IGN);
  // NOLINTBEGIN(concurrency-mt-unsafe): the only thread.
  // By default glibc returns and maps large buffers anew all the time, and
  // keeps a heap of its own for each thread, which breaks the memory bound.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
  // Debian's abseil, which gRPC locks with, looks for deadlocks by default: a
  // twelfth of the time of a call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // What gRPC would log is told to the user in our own words, or is noise.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // NOLINTEND(concurrency-mt-unsafe)
}

int RunServer(Server& server, absl::Duration drain_timeout,
              const std::function<void(const std::string&)>& say) {
  return ServerRun(server, drain_timeout, say).Run();
}

}  // namespace quire
