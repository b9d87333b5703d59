// SPDX-License-Identifier: GPL-3.0-or-later
//
// The life of `quired serve` from the moment it listens: opening the archives,
// signals, the end.
#ifndef QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
#define QUIRE_SERVER_COMMANDS_SERVER_RUN_H_

#include <functional>
#include <string>

#include "absl/time/time.h"

#include "server/service/server.h"

namespace quire {

// Sets the limits of the process for a server that holds many connections and
// moves large buffers, and keeps the signals for RunServer().
// REQUIRES: no other thread has been started: all inherit the signal mask.
void PrepareServerProcess();

// Opens the archives of a server that listens and says how far it is, then what
// it holds; serves until SIGTERM or SIGINT, reloads on SIGHUP. `say` gets lines
// for the log. A signal to stop is heeded at any time, one to reload when the
// archives are open. Returns the exit code.
int RunServer(Server& server, absl::Duration drain_timeout,
              const std::function<void(const std::string&)>& say);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVER_RUN_H_
