// SPDX-License-Identifier: Apache-2.0
#include "client/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
// In a log.
constexpr absl::Duration kLineInterval = absl::Seconds(5);
constexpr uint64_t kBarWidth = 20;

// "[#####               ]".
std::string Bar(uint64_t done, uint64_t total) {
  const auto width = static_cast<size_t>(
      static_cast<double>(kBarWidth) * static_cast<double>(done) /
      static_cast<double>(std::max<uint64_t>(total, 1)));
  return absl::StrCat("[", std::string(width, '#'),
                      std::string(kBarWidth - width, ' '), "] ");
}

// Of the whole, in percent; 100 only when all is done.
std::string Percent(uint64_t done, uint64_t total) {
  const double share =
      total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  return absl::StrFormat("%d %%", static_cast<int>(100 * share));
}

std::string TimeLeft(double left, double per_second) {
  // Past four days an estimate is useless.
  const double seconds =
      std::min(left / std::max(per_second, 1e-6), 4 * 86'400.0);
  return absl::FormatDuration(
      absl::Ceil(absl::Seconds(seconds), absl::Seconds(1)));
}

}  // namespace

std::string FormatProgress(const ProgressFigures& figures) {
  const double seconds =
      std::max(absl::ToDoubleSeconds(figures.elapsed), 0.001);
  const double bytes_per_second =
      static_cast<double>(figures.size_bytes) / seconds;
  const double items_per_second =
      static_cast<double>(figures.item_count) / seconds;
  std::string line;
  std::string time_left;
  if (figures.item_count_total.has_value()) {
    const uint64_t total = *figures.item_count_total;
    const uint64_t done = std::min(figures.item_count, total);
    absl::StrAppend(&line, Bar(done, total), FormatCount(done), " / ",
                    FormatCount(total), " items (", Percent(done, total),
                    "), ");
    time_left = TimeLeft(static_cast<double>(total - done), items_per_second);
  } else if (figures.item_count != 0) {
    absl::StrAppend(&line, FormatCount(figures.item_count), " done, ");
  }
  if (figures.item_count != 0) {
    absl::StrAppend(&line, FormatCount(static_cast<uint64_t>(items_per_second)),
                    "/s, ");
  }
  if (figures.size_bytes_total.value_or(0) != 0 && time_left.empty()) {
    const uint64_t total = *figures.size_bytes_total;
    const uint64_t done = std::min(figures.size_bytes, total);
    absl::StrAppend(&line, Bar(done, total), FormatByteSize(done), " / ",
                    FormatByteSize(total), " (", Percent(done, total), "), ");
    time_left = TimeLeft(static_cast<double>(total - done), bytes_per_second);
  } else {
    absl::StrAppend(&line, FormatByteSize(figures.size_bytes), ", ");
  }
  absl::StrAppendFormat(&line, "%.1f MB/s", bytes_per_second / 1e6);
  if (!time_left.empty()) {
    absl::StrAppend(&line, ", ", time_left, " left");
  }
  if (figures.failed_count != 0) {
    absl::StrAppend(&line, ", ", FormatCount(figures.failed_count), " failed");
  }
  return line;
}

ProgressMode ParseProgressMode(absl::string_view name) {
  return name == "always"  ? ProgressMode::kAlways
         : name == "never" ? ProgressMode::kNever
                           : ProgressMode::kAuto;
}

ProgressLine::ProgressLine(ProgressMode mode)
    : is_terminal_(isatty(STDERR_FILENO) == 1),
      enabled_(mode == ProgressMode::kAlways ||
               (mode == ProgressMode::kAuto && is_terminal_)),
      start_(absl::Now()),
      last_drawn_(start_) {}

ProgressLine::~ProgressLine() {
  const bool has_begun = figures_.item_count != 0 || figures_.size_bytes != 0;
  if (enabled_ && !is_terminal_ && has_begun) {
    Draw(absl::Now());
  }
  Clear();
}

void ProgressLine::Add(uint64_t size_bytes, uint64_t item_count) {
  figures_.size_bytes += size_bytes;
  figures_.item_count += item_count;
  DrawIfDue();
}

void ProgressLine::AddFailed() {
  ++figures_.item_count;
  ++figures_.failed_count;
  DrawIfDue();
}

void ProgressLine::DrawIfDue() {
  if (!enabled_) {
    return;
  }
  const absl::Time now = absl::Now();
  if (now - last_drawn_ >= (is_terminal_ ? kDrawInterval : kLineInterval)) {
    Draw(now);
  }
}

void ProgressLine::Draw(absl::Time now) {
  figures_.elapsed = now - start_;
  std::fprintf(stderr, is_terminal_ ? "\r\x1B[K%s" : "quire: %s\n",
               FormatProgress(figures_).c_str());
  std::fflush(stderr);
  last_drawn_ = now;
  is_drawn_ = is_terminal_;
}

void ProgressLine::Clear() {
  if (is_drawn_) {
    std::fputs("\r\x1B[K", stderr);
    std::fflush(stderr);
    is_drawn_ = false;
  }
}

}  // namespace quire
