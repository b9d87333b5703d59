// SPDX-License-Identifier: GPL-3.0-or-later
//
// Notifies systemd of the process' state (sd_notify(3)) if it has started the
// process. Thread-safe: only reads the environment.
#ifndef QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_
#define QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// Reports that the server answers all calls; `systemctl status` shows the line
// `status`.
void NotifyReady(absl::string_view status);

// Reports that a configuration is being applied, until NotifyReady().
void NotifyReloading();

// Reports a start in progress: `status` is its progress, and it may take
// `extension` longer from now on.
void NotifyStarting(absl::string_view status, absl::Duration extension);

// Reports that the server stops, which may take `extension` from now on.
void NotifyStopping(absl::string_view status, absl::Duration extension);

// Reports that the server answered. systemd restarts a server that does not
// report it once in each WatchdogInterval().
void NotifyAlive();

// Returns WatchdogSec= of the unit; nullopt if it has none.
std::optional<absl::Duration> WatchdogInterval();

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVICE_MANAGER_H_
