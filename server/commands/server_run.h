// SPDX-License-Identifier: GPL-3.0-or-later
//
// The life of `quired serve` from the moment it listens: opening the archives,
// signals, the end.
#ifndef QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
#define QUIRE_SERVER_COMMANDS_SERVER_RUN_H_

#include <functional>
#include <vector>

#include "absl/time/time.h"

#include "server/service/server.h"

namespace quire {

// Sets the limits of the process for a server that holds many connections and
// moves large buffers, and keeps the signals for RunServer().
// REQUIRES: no other thread has been started: all inherit the signal mask.
void PrepareServerProcess();

// How a server stops.
struct DrainTimes {
  // For how long clients are sent elsewhere (health NOT_SERVING, not ready)
  // while all calls are answered still. Not negative.
  absl::Duration delay = absl::ZeroDuration();
  // Then new calls are refused, and those under way have this long to end.
  absl::Duration timeout = absl::Seconds(30);
};

// Opens the archives of a server that listens and says how far it is, then what
// it holds; serves until SIGTERM or SIGINT. On SIGHUP `reload` is called, on
// another thread; it may block, and returns what happened. `say` gets lines for
// the log. A signal to stop is heeded at any time, one to reload when the
// archives are open; a second one to stop ends delay and drain. systemd, if it
// has started the process, is told of each state. Returns the exit code.
int RunServer(Server& server, const DrainTimes& drain,
              const std::function<std::vector<LogLine>()>& reload,
              const SayLine& say);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
