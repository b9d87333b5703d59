// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/server_run.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
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

#include <systemd/sd-daemon.h>

namespace quire {
namespace {

// Interval between two lines about the number of open archives.
constexpr absl::Duration kProgressInterval = absl::Seconds(1);
constexpr absl::Duration kCheckDelay = absl::Seconds(1);
constexpr absl::Duration kRetryInterval = absl::Seconds(5);
// Time until the next look at clients of which one was about to join.
constexpr absl::Duration kLookInterval = absl::Milliseconds(10);
// Longer waits consist of several.
constexpr int64_t kPollMsMax = 60'000;

sigset_t ServeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

// Extension of the start-up time limit with each line about progress.
constexpr absl::Duration kStartExtension = absl::Seconds(60);
// Time for stopping after the last call.
constexpr absl::Duration kStopExtension = absl::Seconds(60);

// Lower bound on the interval of checks, whatever the watchdog requires.
constexpr absl::Duration kAliveIntervalMin = absl::Milliseconds(10);

using Clock = std::chrono::steady_clock;

// The functions to WatchdogInterval() notify systemd of the process' state
// (sd_notify(3)) if it has started the process. Thread-safe: they only read the
// environment.

// Ignores errors: the manager has other ways to find out.
void Notify(const std::string& state) {
  (void)sd_notify(/*unset_environment=*/0, state.c_str());
}

// Fields are lines; the text may contain names of archives.
std::string StatusField(absl::string_view status) {
  return absl::StrCat("STATUS=", PrintableMessage(status), "\n");
}

std::string ExtensionField(absl::Duration extension) {
  return absl::StrCat(
      "EXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(extension), "\n");
}

// Reports that the server answers all calls; `systemctl status` shows the line
// `status`.
void NotifyReady(absl::string_view status) {
  Notify(absl::StrCat("READY=1\n", StatusField(status)));
}

// Reports that a configuration is being applied, until NotifyReady().
void NotifyReloading() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Notify(absl::StrCat(
      "RELOADING=1\nMONOTONIC_USEC=",
      absl::ToInt64Microseconds(absl::DurationFromTimespec(now)), "\n"));
}

// Reports a start in progress: `status` is its progress, and it may take
// `extension` longer from now on.
void NotifyStarting(absl::string_view status, absl::Duration extension) {
  Notify(absl::StrCat(ExtensionField(extension), StatusField(status)));
}

// Reports that the server stops, which may take `extension` from now on.
void NotifyStopping(absl::string_view status, absl::Duration extension) {
  Notify(absl::StrCat("STOPPING=1\n", ExtensionField(extension),
                      StatusField(status)));
}

// Reports that the server answered. systemd restarts a server that does not
// report it once in each WatchdogInterval().
void NotifyAlive() {
  Notify("WATCHDOG=1\n");
}

// Returns WatchdogSec= of the unit; nullopt if it has none.
std::optional<absl::Duration> WatchdogInterval() {
  uint64_t interval_us = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &interval_us) <= 0) {
    return std::nullopt;
  }
  return absl::Microseconds(interval_us);
}

// A one-shot or restarted timer. Thread-compatible.
class Timer {
 public:
  void Start(absl::Duration wait) {
    due_ = Clock::now() + absl::ToChronoNanoseconds(wait);
  }

  void Stop() { due_.reset(); }

  // Returns true if the time has come, and resets the timer.
  bool TakeDue() {
    if (!due_.has_value() || Clock::now() < *due_) {
      return false;
    }
    due_.reset();
    return true;
  }

  // Returns the remaining time; infinite if not started.
  absl::Duration wait() const {
    return due_.has_value() ? absl::FromChrono(*due_ - Clock::now())
                            : absl::InfiniteDuration();
  }

 private:
  std::optional<Clock::time_point> due_;
};

// Opening, reloading and draining take long, and signals must be handled
// meanwhile: they run on threads, the first two one at a time.
// Thread-compatible.
class ServerRun {
 public:
  ServerRun(Server& server, const DrainTimes& drain, const Reloads& reloads,
            PrivateClients* clients, const LogSink& log)
      : server_(server),
        drain_(drain),
        reloads_(reloads),
        clients_(clients),
        log_(log) {}

  int Run() {
    const sigset_t signals = ServeSignals();
    signals_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC));
    work_ended_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
    drain_ended_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
    if (!signals_.is_open() || !work_ended_.is_open() ||
        !drain_ended_.is_open()) {
      LogError(std::string(ErrnoStatus(errno, "signals", "open").message()));
      return kExitFailed;
    }
    const OpeningProgress progress = server_.opening_progress();
    // Scripts wait for "listening on", which comes last.
    Say(absl::StrCat(
        progress.is_reachable ? "" : "not yet ", "reachable on ",
        server_.address(), ", opening ",
        FormatCounted(progress.archive_count, "archive", "archives")));
    Begin(worker_, work_ended_, [this] { opened_ = server_.OpenArchives(); });
    progress_.Start(kProgressInterval);
    CheckAlive();
    while (!exit_code_.has_value()) {
      pollfd events[] = {{signals_.get(), POLLIN, 0},
                         {work_ended_.get(), POLLIN, 0},
                         {drain_ended_.get(), POLLIN, 0},
                         {reloads_.check_wanted_fd, POLLIN, 0},
                         {WatchedClients(), 0, 0}};
      const int ready = poll(events, 5, WaitMs());
      TakeTimers();
      if (ready > 0 && events[2].revents != 0) {
        EndStop();
      } else if (ready > 0 && events[1].revents != 0) {
        EndWork();
      } else if (ready > 0 && events[0].revents != 0) {
        TakeSignal();
      } else if (ready > 0 && events[3].revents != 0) {
        TakeCheckWanted();
      } else if (ready > 0 && events[4].revents != 0) {
        TakeClientsGone();
      }
    }
    return *exit_code_;
  }

 private:
  static void Begin(std::jthread& thread, const UniqueFd& ended,
                    const std::function<void()>& work) {
    const auto run = [&ended, work] {
      work();
      const uint64_t one = 1;
      // The counter cannot be full.
      (void)!write(ended.get(), &one, sizeof(one));
    };
    try {
      thread = std::jthread(run);
    } catch (const std::system_error&) {
      // No more threads available; signals have to wait.
      run();
    }
  }

  static void Join(std::jthread& thread) {
    if (thread.joinable()) {
      thread.join();
    }
  }

  // Returns the time until the next timer, rounded up.
  int WaitMs() const {
    const absl::Duration wait =
        std::min({progress_.wait(), alive_.wait(), delay_.wait(), check_.wait(),
                  retry_.wait(), look_.wait()});
    return wait == absl::InfiniteDuration()
               ? -1
               : static_cast<int>(std::clamp<int64_t>(
                     absl::ToInt64Milliseconds(wait) + 1, 0, kPollMsMax));
  }

  void TakeTimers() {
    if (progress_.TakeDue()) {
      LogProgress();
    }
    if (alive_.TakeDue()) {
      CheckAlive();
    }
    if (delay_.TakeDue()) {
      BeginStop();
    }
    if (check_.TakeDue()) {
      BeginCheck();
    }
    if (retry_.TakeDue()) {
      BeginRetry();
    }
    // Then poll() reports the clients again.
    look_.TakeDue();
  }

  // Returns the file of the clients unless their end changes nothing now.
  int WatchedClients() const {
    return clients_ == nullptr || is_stopping_ ||
                   look_.wait() != absl::InfiniteDuration()
               ? -1
               : clients_->fd();
  }

  void TakeClientsGone() {
    // Until the archives are open the starting process holds the lock: no other
    // client can have joined.
    const auto look =
        is_open_ ? clients_->Look() : PrivateClients::LastLook::kGone;
    if (look == PrivateClients::LastLook::kGone) {
      Say("the last client is gone; stopping");
      is_stopping_ = true;
      server_.EndDrain();
      BeginStop();
    } else if (look == PrivateClients::LastLook::kLocked) {
      look_.Start(kLookInterval);
    }
  }

  // That this thread runs proves little: the server has to answer.
  void CheckAlive() {
    if (watchdog_interval_.has_value()) {
      server_.CheckAlive(NotifyAlive);
      alive_.Start(std::max(*watchdog_interval_ / 3, kAliveIntervalMin));
    }
  }

  void EndWork() {
    uint64_t count = 0;
    (void)!read(work_ended_.get(), &count, sizeof(count));
    Join(worker_);
    if (!is_open_) {
      EndOpening();
    } else {
      for (const LogLine& line : reloaded_) {
        log_(line.level, line.text);
      }
      if (!is_stopping_) {
        NotifyReady(ServingStatus());
      }
      StartCheckTimers();
    }
    if (reload_wanted_ && !is_stopping_ && !exit_code_.has_value()) {
      reload_wanted_ = false;
      BeginReload();
    }
  }

  void EndOpening() {
    progress_.Stop();
    if (is_stopping_) {
      return;
    }
    if (!opened_.ok()) {
      LogError(std::string(opened_.message()));
      server_.Shutdown(absl::ZeroDuration());
      exit_code_ = kExitFailed;
      return;
    }
    is_open_ = true;
    for (const absl::string_view line :
         absl::StrSplit(server_.Description(), '\n', absl::SkipEmpty())) {
      Say(std::string(line));
    }
    if (!server_.metrics_address().empty()) {
      Say(absl::StrCat("metrics on http://", server_.metrics_address(),
                       "/metrics"));
    }
    // The last line of the start: scripts that need all archives wait for it.
    Say(absl::StrCat("listening on ", server_.address()));
    NotifyReady(ServingStatus());
    if (clients_ != nullptr) {
      clients_->NoteReady();
    }
    StartCheckTimers();
  }

  void StartCheckTimers() {
    if (is_stopping_) {
      return;
    }
    if (reloads_.check_interval != absl::InfiniteDuration()) {
      check_.Start(reloads_.check_interval);
    }
    retry_.Start(kRetryInterval);
  }

  // Many reads fail at the same time: one check is enough for them.
  void TakeCheckWanted() {
    uint64_t count = 0;
    (void)!read(reloads_.check_wanted_fd, &count, sizeof(count));
    if (is_open_ && !is_stopping_ && check_.wait() > kCheckDelay) {
      check_.Start(kCheckDelay);
    }
  }

  std::string ServingStatus() const {
    return absl::StrCat("serving ",
                        FormatCounted(server_.opening_progress().open_count,
                                      "archive", "archives"),
                        " on ", server_.address());
  }

  void Say(const std::string& text) const { log_(LogLevel::kInfo, text); }

  void LogError(const std::string& text) const { log_(LogLevel::kError, text); }

  void LogProgress() {
    const OpeningProgress progress = server_.opening_progress();
    const std::string line =
        absl::StrCat(progress.open_count, " of ", progress.archive_count,
                     " archives are open");
    Say(line);
    NotifyStarting(line, kStartExtension);
    progress_.Start(kProgressInterval);
  }

  void TakeSignal() {
    signalfd_siginfo info;
    if (read(signals_.get(), &info, sizeof(info)) !=
        static_cast<ssize_t>(sizeof(info))) {
      return;
    }
    if (info.ssi_signo != SIGHUP) {
      TakeStopSignal();
    } else if (is_stopping_) {
      Say("SIGHUP: ignored, as the server stops");
    } else if (worker_.joinable()) {
      reload_wanted_ = true;
    } else {
      BeginReload();
    }
  }

  void BeginReload() {
    Say("SIGHUP: reading configuration and archives again");
    NotifyReloading();
    Begin(worker_, work_ended_, [this] { reloaded_ = reloads_.reload(); });
  }

  // A reload in flight does more: the next check follows its end.
  void BeginCheck() {
    if (!worker_.joinable() && !is_stopping_) {
      Begin(worker_, work_ended_, [this] { reloaded_ = reloads_.check(); });
    }
  }

  // Work in flight starts the timer again at its end.
  void BeginRetry() {
    if (worker_.joinable() || is_stopping_) {
      return;
    }
    if (server_.HasUnconfirmed()) {
      Begin(worker_, work_ended_, [this] { reloaded_ = reloads_.retry(); });
    } else {
      retry_.Start(kRetryInterval);
    }
  }

  void TakeStopSignal() {
    if (is_stopping_) {
      Say("a second signal: ending the calls in flight");
      server_.EndDrain();
      if (delay_.wait() != absl::InfiniteDuration()) {
        BeginStop();
      }
      return;
    }
    is_stopping_ = true;
    const std::string status =
        absl::StrCat("stopping; calls in flight have ",
                     absl::FormatDuration(drain_.timeout), " to end");
    // No clients were sent to a server that was not ready.
    const absl::Duration delay = is_open_ ? drain_.delay : absl::ZeroDuration();
    NotifyStopping(status, delay + drain_.timeout + kStopExtension);
    if (delay == absl::ZeroDuration()) {
      Say(status);
      BeginStop();
      return;
    }
    Say(absl::StrCat("stopping; clients are sent elsewhere, and answered for ",
                     absl::FormatDuration(delay),
                     "; then calls in flight have ",
                     absl::FormatDuration(drain_.timeout), " to end"));
    server_.AnnounceShutdown();
    delay_.Start(delay);
  }

  void BeginStop() {
    delay_.Stop();
    progress_.Stop();
    check_.Stop();
    retry_.Stop();
    Begin(stopper_, drain_ended_, [this] { server_.Shutdown(drain_.timeout); });
  }

  void EndStop() {
    Join(stopper_);
    Join(worker_);
    Say("stopped");
    exit_code_ = kExitGood;
  }

  Server& server_;
  const DrainTimes drain_;
  const Reloads& reloads_;
  // Null if the server does not depend on any.
  PrivateClients* const clients_;
  const LogSink& log_;
  const std::optional<absl::Duration> watchdog_interval_ = WatchdogInterval();
  UniqueFd signals_;
  // Readable when their thread has ended its work.
  UniqueFd work_ended_;
  UniqueFd drain_ended_;
  bool is_open_ = false;
  // Arrived while the thread was at work.
  bool reload_wanted_ = false;
  bool is_stopping_ = false;
  // Next line about archives that are being opened.
  Timer progress_;
  // Next check for the watchdog.
  Timer alive_;
  // End of drain_.delay.
  Timer delay_;
  // Next look at the archives, and at those that stores do not confirm.
  Timer check_;
  Timer retry_;
  // Next look at clients that were gone while one held the lock to join.
  Timer look_;
  std::optional<int> exit_code_;
  // Results of the thread, read once it is joined.
  absl::Status opened_;
  std::vector<LogLine> reloaded_;
  // Opens and reloads.
  std::jthread worker_;
  std::jthread stopper_;
};

}  // namespace

bool IsStopPending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 ||
                                       sigismember(&pending, SIGINT) == 1);
}

void PrepareServerProcess() {
  const sigset_t signals = ServeSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // The reader of the log may exit; the server continues.
  signal(SIGPIPE, SIG_IGN);
  // NOLINTBEGIN(concurrency-mt-unsafe): the only thread.
  // By default glibc maps and unmaps large buffers repeatedly, and keeps a heap
  // for each thread, which breaks the memory limit.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
  // Debian's abseil, which gRPC locks with, detects deadlocks by default, which
  // takes a twelfth of a call's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Messages of gRPC are either repeated in our own words or noise.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // NOLINTEND(concurrency-mt-unsafe)
}

int RunServer(Server& server, const DrainTimes& drain, const Reloads& reloads,
              PrivateClients* clients, const LogSink& log) {
  return ServerRun(server, drain, reloads, clients, log).Run();
}

}  // namespace quire
