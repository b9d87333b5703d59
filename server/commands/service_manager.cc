// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/service_manager.h"

#include <cstdint>
#include <ctime>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"

#include <systemd/sd-daemon.h>

namespace quire {
namespace {

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

}  // namespace

void NotifyReady(absl::string_view status) {
  Notify(absl::StrCat("READY=1\n", StatusField(status)));
}

void NotifyReloading() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Notify(absl::StrCat(
      "RELOADING=1\nMONOTONIC_USEC=",
      absl::ToInt64Microseconds(absl::DurationFromTimespec(now)), "\n"));
}

void NotifyStarting(absl::string_view status, absl::Duration extension) {
  Notify(absl::StrCat(ExtensionField(extension), StatusField(status)));
}

void NotifyStopping(absl::string_view status, absl::Duration extension) {
  Notify(absl::StrCat("STOPPING=1\n", ExtensionField(extension),
                      StatusField(status)));
}

void NotifyAlive() {
  Notify("WATCHDOG=1\n");
}

std::optional<absl::Duration> WatchdogInterval() {
  uint64_t interval_us = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &interval_us) <= 0) {
    return std::nullopt;
  }
  return absl::Microseconds(interval_us);
}

}  // namespace quire
