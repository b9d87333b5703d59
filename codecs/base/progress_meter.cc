// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/progress_meter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

constexpr absl::Duration kDrawInterval = absl::Milliseconds(100);
// In a log.
constexpr absl::Duration kLineInterval = absl::Seconds(5);
// A rate over less time is noise.
constexpr absl::Duration kRateAfter = absl::Milliseconds(500);
constexpr uint64_t kBarWidth = 20;
constexpr char kEraseRest[] = "\x1B[K";

// "[#####               ] 1 MiB / 4 MiB (25 %)".
std::string Bar(uint64_t done, uint64_t total,
                const std::function<std::string(uint64_t)>& format,
                absl::string_view unit) {
  const double share =
      total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const auto width = static_cast<size_t>(static_cast<double>(kBarWidth) *
                                         (total == 0 ? 0 : share));
  return absl::StrFormat("[%s%s] %s / %s%s (%d %%)", std::string(width, '#'),
                         std::string(kBarWidth - width, ' '), format(done),
                         format(total), unit, static_cast<int>(100 * share));
}

std::string TimeLeft(uint64_t left, uint64_t done, double seconds) {
  const double per_second = static_cast<double>(done) / seconds;
  // An estimate of more than four days is useless.
  const double seconds_left = std::min(
      static_cast<double>(left) / std::max(per_second, 1e-6), 4 * 86'400.0);
  return absl::StrCat(absl::FormatDuration(absl::Ceil(
                          absl::Seconds(seconds_left), absl::Seconds(1))),
                      " left");
}

}  // namespace

std::string FormatRate(uint64_t size_bytes, double seconds) {
  return seconds <= 0
             ? ""
             : absl::StrFormat("%.1f MB/s",
                               static_cast<double>(size_bytes) / seconds / 1e6);
}

std::string FormatProgress(const Progress& progress, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const bool has_rate = elapsed >= kRateAfter;
  std::string line = progress.phase;
  const auto add = [&line](absl::string_view text) {
    absl::StrAppend(&line, line.empty() ? "" : ", ", text);
  };
  std::string time_left;
  const bool has_item_total = progress.item_count_total.has_value();
  if (has_item_total) {
    const uint64_t total = *progress.item_count_total;
    const uint64_t done = std::min(progress.item_count, total);
    add(Bar(done, total, FormatCount, absl::StrCat(" ", progress.item_name)));
    time_left = TimeLeft(total - done, done, seconds);
  } else if (progress.item_count != 0) {
    add(absl::StrCat(FormatCount(progress.item_count), " done"));
  }
  if (progress.item_count != 0 && has_rate) {
    add(absl::StrCat(FormatCount(static_cast<uint64_t>(
                         static_cast<double>(progress.item_count) / seconds)),
                     "/s"));
  }
  if (progress.size_bytes_total.value_or(0) != 0 && !has_item_total) {
    const uint64_t total = *progress.size_bytes_total;
    const uint64_t done = std::min(progress.size_bytes, total);
    add(Bar(done, total, FormatByteSize, ""));
    time_left = TimeLeft(total - done, done, seconds);
  } else if (progress.size_bytes != 0) {
    add(FormatByteSize(progress.size_bytes));
  }
  if (progress.stored_size_bytes.has_value() && progress.size_bytes != 0) {
    add(absl::StrFormat("stored in %.2f %%",
                        100 * static_cast<double>(*progress.stored_size_bytes) /
                            static_cast<double>(progress.size_bytes)));
  }
  if (progress.size_bytes != 0 && has_rate) {
    add(FormatRate(progress.size_bytes, seconds));
  }
  if (!time_left.empty() && has_rate) {
    add(time_left);
  }
  if (progress.failed_count != 0) {
    add(absl::StrCat(FormatCount(progress.failed_count), " failed"));
  }
  return line;
}

ProgressMeter::ProgressMeter(std::ostream& out, Clock clock,
                             ProgressMeterOptions options)
    : out_(out),
      clock_(std::move(clock)),
      options_(std::move(options)),
      phase_start_(clock_()),
      last_drawn_(phase_start_) {}

ProgressMeter::~ProgressMeter() {
  const bool has_begun = progress_.item_count != 0 || progress_.size_bytes != 0;
  if (options_.enabled && !options_.is_terminal && has_begun) {
    Draw(clock_());
  }
  Clear();
}

void ProgressMeter::Update(Progress progress) {
  const bool is_new_phase = progress.phase != progress_.phase;
  progress_ = std::move(progress);
  if (is_new_phase) {
    phase_start_ = clock_();
  }
  if (is_new_phase && options_.enabled && options_.is_terminal) {
    Draw(phase_start_);
  } else {
    DrawIfDue();
  }
}

void ProgressMeter::Add(uint64_t size_bytes, uint64_t item_count) {
  progress_.size_bytes += size_bytes;
  progress_.item_count += item_count;
  DrawIfDue();
}

void ProgressMeter::AddFailed() {
  ++progress_.item_count;
  ++progress_.failed_count;
  DrawIfDue();
}

void ProgressMeter::DrawIfDue() {
  if (!options_.enabled) {
    return;
  }
  const absl::Time now = clock_();
  if (now - last_drawn_ >=
      (options_.is_terminal ? kDrawInterval : kLineInterval)) {
    Draw(now);
  }
}

void ProgressMeter::Draw(absl::Time now) {
  const std::string line = FormatProgress(progress_, now - phase_start_);
  // At once: standard error has no buffer.
  out_ << (options_.is_terminal ? absl::StrCat("\r", line, kEraseRest)
                                : absl::StrCat(options_.prefix, line, "\n"))
       << std::flush;
  last_drawn_ = now;
  is_drawn_ = options_.is_terminal;
}

void ProgressMeter::Clear() {
  if (is_drawn_) {
    out_ << "\r" << kEraseRest << std::flush;
    is_drawn_ = false;
  }
}

}  // namespace quire
