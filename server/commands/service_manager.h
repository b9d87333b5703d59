// SPDX-License-Identifier: GPL-3.0-or-later
//
// What systemd, where it has started the process, is told of its state
// (sd_notify(3)). Without systemd nothing is sent. Thread-safe: the environment
// is only read.
#ifndef QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_
#define QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// The server answers all calls; `status` is a line that `systemctl status`
// shows.
void NotifyReady(absl::string_view status);

// A configuration is being taken up; NotifyReady() says when it is.
void NotifyReloading();

// The start is under way: `status` says how far, and it may take `extension`
// longer from now on.
void NotifyStarting(absl::string_view status, absl::Duration extension);

// The server stops, which may take `extension` from now on.
void NotifyStopping(absl::string_view status, absl::Duration extension);

// The server was found to answer. systemd restarts one that does not say so
// once in each WatchdogInterval().
void NotifyAlive();

// WatchdogSec= of the unit; unset if it has none.
std::optional<absl::Duration> WatchdogInterval();

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_
