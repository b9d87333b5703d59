// SPDX-License-Identifier: Apache-2.0
//
// Parses capture times.
#ifndef QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_
#define QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// In milliseconds since 1970-01-01 UTC, both included.
struct CapturePeriod {
  int64_t first_ms = 0;
  int64_t last_ms = 0;
};

// Returns the period that `text` names: for "2022-06" that June; its last
// millisecond as DocumentKey::at_time_ms finds the newest capture of the month.
// Accepts ISO 8601 such as 2022-06-15T12:30:45.5Z and any prefix from the year
// on, also without the Z and with a space instead of the T. Accepts the digits
// 20220615123045 of web archives, four or more in pairs. A time of day may have
// an offset such as +02:00, +0200 or +02; without one it is UTC.
// Thread-safe.
// Errors: InvalidArgument  another form, or an invalid date.
absl::StatusOr<CapturePeriod> ParseCapturePeriod(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_
