// SPDX-License-Identifier: Apache-2.0
//
// The progress of a subcommand, as a line of text.
#ifndef QUIRE_CODECS_BASE_PROGRESS_METER_H_
#define QUIRE_CODECS_BASE_PROGRESS_METER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace quire {

struct Progress {
  // The current work; a new phase restarts rates and time left. May be empty.
  std::string phase = {};
  // Without a total the rest is unknown.
  uint64_t size_bytes = 0;
  std::optional<uint64_t> size_bytes_total = {};
  // Items done, failed ones included. 0 without a total: there are no items.
  uint64_t item_count = 0;
  std::optional<uint64_t> item_count_total = {};
  const char* item_name = "items";
  uint64_t failed_count = 0;
  // Stored size of `size_bytes` of text; unset where nothing is stored.
  std::optional<uint64_t> stored_size_bytes = {};
};

// One line, without its end, `elapsed` after the phase began: a bar where there
// is a total (of items, if both are known), counts, sizes, failures; rates and
// the time left after half a second. Thread-safe.
std::string FormatProgress(const Progress& progress, absl::Duration elapsed);

// "12.3 MB/s" (10^6 bytes); empty if no time has passed. Thread-safe.
std::string FormatRate(uint64_t size_bytes, double seconds);

struct ProgressMeterOptions {
  // False: nothing is ever written.
  bool enabled = true;
  // True: one line is drawn repeatedly, at most ten times per second, and
  // erased at the end. False: a new line every five seconds, and one at the
  // end.
  bool is_terminal = true;
  // Begins each line that is not drawn on a terminal.
  std::string prefix = {};
};

// Thread-compatible.
class ProgressMeter {
 public:
  using Clock = std::function<absl::Time()>;

  // `out` must outlive the meter.
  ProgressMeter(std::ostream& out, Clock clock, ProgressMeterOptions options);
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  bool enabled() const { return options_.enabled; }

  // Each of these may be called often; it draws if that is due.
  void Update(Progress progress);
  void Add(uint64_t size_bytes, uint64_t item_count);
  // Counts an item that failed.
  void AddFailed();

  void SetTotal(uint64_t size_bytes) {
    progress_.size_bytes_total = size_bytes;
  }

  void SetItemTotal(uint64_t count) { progress_.item_count_total = count; }

  // Erases the line for a message; the next call that draws restores it.
  void Clear();

 private:
  void DrawIfDue();
  void Draw(absl::Time now);

  std::ostream& out_;
  const Clock clock_;
  const ProgressMeterOptions options_;
  Progress progress_;
  absl::Time phase_start_;
  absl::Time last_drawn_;
  bool is_drawn_ = false;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PROGRESS_METER_H_
