// SPDX-License-Identifier: Apache-2.0
//
// Text of durations in settings, the same in every program of the project. For
// modules above the codecs, which do not use it.
#ifndef QUIRE_CODECS_BASE_DURATION_TEXT_H_
#define QUIRE_CODECS_BASE_DURATION_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// Permitted range of a setting, bounds included.
struct DurationRange {
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::InfiniteDuration();
};

// Parses a duration: a number of seconds, or numbers with units that add up, as
// in "500ms", "1.5m", "1h30m" or "14d"; units are d, h, m, s, ms, us, ns, days
// first. "inf" means infinite.
// Errors: InvalidArgument  another form, or out of `range`; the message begins
//                          with "must be".
absl::StatusOr<absl::Duration> ParseDurationText(
    absl::string_view text, const DurationRange& range = {});

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_DURATION_TEXT_H_
