// SPDX-License-Identifier: Apache-2.0
//
// Times as people write them in settings, the same in every program of the
// project. For the modules above the codecs, which have no use for it.
#ifndef QUIRE_CODECS_BASE_DURATION_TEXT_H_
#define QUIRE_CODECS_BASE_DURATION_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// What a setting may take, both included.
struct DurationRange {
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::InfiniteDuration();
};

// Reads a time: a number alone, of seconds, or numbers with units that add up,
// as in "500ms", "1.5m" or "1h30m"; units are ns, us, ms, s, m, h. "inf" is a
// time without end.
// Errors: InvalidArgument  not of that form, or out of `range`; the message
//                          begins with "must be".
absl::StatusOr<absl::Duration> ParseDurationText(
    absl::string_view text, const DurationRange& range = {});

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_DURATION_TEXT_H_
