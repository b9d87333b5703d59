// SPDX-License-Identifier: GPL-3.0-or-later
//
// A plan that `quired plan --json` wrote, read back to build by it.
#ifndef QUIRE_SERVER_PLANNER_PLAN_FILE_H_
#define QUIRE_SERVER_PLANNER_PLAN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/planner/auto_trial.h"

namespace quire {

// The cell that a plan recommends.
struct RecommendedArchive {
  // NAME:LEVEL, as ParseCodecSpec() takes it.
  std::string codec;
  uint32_t block_size_bytes = 0;
  // 0: the codec uses none.
  uint64_t dictionary_size_bytes = 0;
  // XXH3, 64 bits, of the file.
  uint64_t hash = 0;
  // Of the collection that the plan was made for.
  uint64_t text_size_bytes = 0;
  // What codec auto is to choose by; plans of version 1 have none.
  std::optional<PlannedSpeeds> auto_speeds = std::nullopt;
};

// `json` is untrusted.
// Errors: InvalidArgument     no plan, or one with values that no archive has;
//                             names the field.
//         FailedPrecondition  of another version, or it recommends nothing.
absl::StatusOr<RecommendedArchive> ParsePlan(absl::string_view json);

// Errors: those of ParsePlan(), with the path before them, and of
// ReadSmallFile().
absl::StatusOr<RecommendedArchive> ReadPlanFile(const std::string& path);

// Whether a plan fits the text that there is: sizes and speeds of one for twice
// or half as much are others.
// Errors: FailedPrecondition  it does not.
absl::Status CheckPlanFits(const RecommendedArchive& planned,
                           uint64_t text_size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_PLAN_FILE_H_
