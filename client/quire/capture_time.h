// SPDX-License-Identifier: Apache-2.0
//
// Times of captures as people write them.
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

// The period that `text` names: of "2022-06" that June, whose last millisecond
// as DocumentKey::at_time_ms finds the newest capture of the month. Takes what
// ISO 8601 writes as 2022-06-15T12:30:45.5Z from the year on, down to any part
// of it, also without the Z and with a space for the T; and the digits
// 20220615123045 of web archives, from four on in pairs. Times are UTC.
// Thread-safe.
// Errors: InvalidArgument  of no such form, or no such date.
absl::StatusOr<CapturePeriod> ParseCapturePeriod(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_
