// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_PROGRESS_METER_H_
#define QUIRE_SERVER_COMMANDS_PROGRESS_METER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

namespace quire {

// How far some work is.
struct ProgressState {
  // What is being done; a new text starts a new measurement.
  std::string phase = {};
  uint64_t done = 0;
  // Unset if not known yet.
  std::optional<uint64_t> total = std::nullopt;
  // What the bytes done became; unset where nothing is stored.
  std::optional<uint64_t> stored_bytes = std::nullopt;
  // What `done` and `total` count; empty for bytes.
  std::string unit = {};
};

// One line of a terminal that is written over and over: bytes, rate, ratio and
// time left. Thread-compatible.
class ProgressMeter {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // Writes to `out`, which must outlive it.
  ProgressMeter(std::ostream& out, Clock clock);
  // Clears the line.
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // May be called as often as one likes: writes ten times a second at most, and
  // when a phase starts.
  void Update(const ProgressState& state);

 private:
  std::ostream& out_;
  const Clock clock_;
  std::string phase_;
  std::chrono::steady_clock::time_point phase_start_;
  std::chrono::steady_clock::time_point last_written_;
};

// The line, without control characters, `seconds` after the phase began.
std::string FormatProgressLine(const ProgressState& state, double seconds);

// "12.3 MB/s" (10^6 bytes); empty where no time has passed.
std::string FormatRate(uint64_t size_bytes, double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_PROGRESS_METER_H_
