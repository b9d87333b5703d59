// SPDX-License-Identifier: GPL-3.0-or-later
//
// The life of `quired serve` once it listens: opening the archives, signals,
// the end.
#ifndef QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
#define QUIRE_SERVER_COMMANDS_SERVER_RUN_H_

#include <functional>
#include <vector>

#include "absl/time/time.h"

#include "server/commands/private_clients.h"
#include "server/service/server.h"

namespace quire {

// Sets the limits of the process for a server with many connections and large
// buffers, and blocks the signals for RunServer().
// REQUIRES: no other thread has been started: all inherit the signal mask.
void PrepareServerProcess();

// Times of stopping.
struct DrainTimes {
  // Time for sending clients elsewhere (health NOT_SERVING, not ready) while
  // all calls are still answered. Not negative.
  absl::Duration delay = absl::ZeroDuration();
  // Then new calls are refused, and calls in flight have this time to end.
  absl::Duration timeout = absl::Seconds(30);
};

// Called on another thread, one at a time; may block. Return lines for the log.
struct Reloads {
  // On SIGHUP.
  std::function<std::vector<LogLine>()> reload;
  // Periodically, `check_interval` after the end of the call before; never if
  // that is infinite.
  std::function<std::vector<LogLine>()> check;
  absl::Duration check_interval = absl::InfiniteDuration();
  // Every five seconds while Server::HasUnconfirmed().
  std::function<std::vector<LogLine>()> retry;
  // An eventfd that is written to when archives should be checked soon; -1:
  // none.
  int check_wanted_fd = -1;
};

// True if a blocked signal to stop has arrived. Thread-safe.
bool IsStopPending();

// Opens the archives of a listening server, logs the progress and then the
// contents of its memory, and serves until SIGTERM or SIGINT.
// `log` gets lines for the log. A signal to stop is handled at any time, one to
// reload once the archives are open; a second one to stop ends delay and drain.
// `clients`, unless null, are notified once all archives are open; when they
// are gone, the server stops at once. Notifies systemd of each state if it has
// started the process. Returns the exit code.
int RunServer(Server& server, const DrainTimes& drain, const Reloads& reloads,
              PrivateClients* clients, const LogSink& log);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
