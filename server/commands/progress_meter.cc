// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/progress_meter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
// A rate measured over less is noise.
constexpr double kRateAfterSeconds = 0.5;

}  // namespace

std::string FormatRate(uint64_t size_bytes, double seconds) {
  if (seconds <= 0) {
    return "";
  }
  return absl::StrFormat("%.1f MB/s",
                         static_cast<double>(size_bytes) / seconds / 1e6);
}

std::string FormatProgressLine(const ProgressState& state, double seconds) {
  std::string line = state.phase;
  if (state.done == 0) {
    return line;
  }
  const bool bytes = state.unit.empty();
  const auto format = [bytes](uint64_t amount) {
    return bytes ? FormatByteSize(amount) : FormatCount(amount);
  };
  const uint64_t total = state.total.value_or(0);
  const auto done = static_cast<double>(state.done);
  absl::StrAppend(&line, "  ", format(state.done));
  if (total > 0) {
    absl::StrAppend(&line, " of ", format(total));
  }
  absl::StrAppend(&line, bytes ? "" : " ", state.unit);
  if (total > 0) {
    absl::StrAppendFormat(
        &line, "  %d%%",
        static_cast<int>(100 * done / static_cast<double>(total)));
  }
  if (state.stored_bytes.has_value()) {
    absl::StrAppend(&line, "  to ",
                    FormatPercent(*state.stored_bytes, state.done));
  }
  if (seconds < kRateAfterSeconds) {
    return line;
  }
  if (bytes) {
    absl::StrAppend(&line, "  ", FormatRate(state.done, seconds));
  }
  if (total > state.done) {
    const double left =
        seconds * static_cast<double>(total - state.done) / done;
    absl::StrAppend(&line, "  ", FormatDuration(left), " left");
  }
  return line;
}

ProgressMeter::ProgressMeter(std::ostream& out, Clock clock)
    : out_(out), clock_(std::move(clock)) {}

ProgressMeter::~ProgressMeter() {
  if (!phase_.empty()) {
    out_ << "\r\x1b[K" << std::flush;
  }
}

void ProgressMeter::Update(const ProgressState& state) {
  const auto now = clock_();
  if (state.phase != phase_) {
    phase_ = state.phase;
    phase_start_ = now;
  } else if (now - last_written_ < kInterval) {
    return;
  }
  last_written_ = now;
  const std::chrono::duration<double> elapsed = now - phase_start_;
  // Back to the line's start, and clear what is longer than the new text.
  out_ << "\r" << FormatProgressLine(state, elapsed.count()) << "\x1b[K"
       << std::flush;
}

}  // namespace quire
