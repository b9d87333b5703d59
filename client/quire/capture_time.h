// SPDX-License-Identifier: Apache-2.0
//
// Times of captures as people write them.
#ifndef QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_
#define QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// The last millisecond, since 1970-01-01 UTC, of the period that `text` names,
// for DocumentKey::at_time_ms: of "2022-06" the last of that June, so that the
// newest capture of the month is found. Takes what ISO 8601 writes as
// 2022-06-15T12:30:45.5Z from the year on, down to any part of it, also without
// the Z and with a space for the T; and the digits 20220615123045 of web
// archives, from four on in pairs. Times are UTC. Thread-safe.
// Errors: InvalidArgument  of no such form, or no such date.
absl::StatusOr<int64_t> ParseCaptureTime(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CAPTURE_TIME_H_
