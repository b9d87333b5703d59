// SPDX-License-Identifier: Apache-2.0
//
// How far a subcommand is, told on standard error.
#ifndef QUIRE_CLIENT_CLI_PROGRESS_LINE_H_
#define QUIRE_CLIENT_CLI_PROGRESS_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// What there is to tell.
struct ProgressFigures {
  absl::Duration elapsed;
  // Without a total the rest is unknown.
  uint64_t size_bytes = 0;
  std::optional<uint64_t> size_bytes_total = {};
  // Done, for good or ill. 0 without a total: the subcommand has no items.
  uint64_t item_count = 0;
  std::optional<uint64_t> item_count_total = {};
  uint64_t failed_count = 0;
};

// One line, without its end, of printable ASCII: a bar and the time left where
// there is a total (of items, if both are known), counts, rates since the
// start, failures if any.
// Thread-safe.
std::string FormatProgress(const ProgressFigures& figures);

enum class ProgressMode {
  // Only if standard error is a terminal.
  kAuto,
  kAlways,
  kNever,
};

// REQUIRES: `name` is "auto", "always" or "never".
ProgressMode ParseProgressMode(absl::string_view name);

// A line on standard error that is drawn over and over, at most ten times a
// second, and erased when it is destroyed. Where standard error is no terminal,
// it is a new line every few seconds, and one at the end.
// Thread-compatible.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressMode mode);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool enabled() const { return enabled_; }

  void SetTotal(uint64_t size_bytes) { figures_.size_bytes_total = size_bytes; }

  void SetItemTotal(uint64_t count) { figures_.item_count_total = count; }

  void Add(uint64_t size_bytes, uint64_t item_count);

  // An item that was not to be had; it counts as done.
  void AddFailed();

  // Makes space for a message; the next Add() draws the line again.
  void Clear();

 private:
  void DrawIfDue();
  void Draw(absl::Time now);

  const bool is_terminal_;
  const bool enabled_;
  const absl::Time start_;
  absl::Time last_drawn_;
  bool is_drawn_ = false;
  ProgressFigures figures_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_PROGRESS_LINE_H_
