// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/scrub/scrub_pace.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/storage/model/drive_presets.h"
#include "server/storage/scheduler/elevator_scheduler.h"
#include "testing/base/sanitized.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ScrubPaceTest, PausesAfterASecondsBytes) {
  ScrubPace pace(1000);
  EXPECT_EQ(pace.PauseAfter(seconds(5), 400), seconds(0));
  EXPECT_EQ(pace.PauseAfter(seconds(5), 400), seconds(0));
  EXPECT_EQ(pace.PauseAfter(seconds(5) + milliseconds(100), 400),
            milliseconds(1100));
  EXPECT_EQ(pace.PauseAfter(milliseconds(6200), 400), seconds(0));
  // A slow drive, or none, saves nothing up.
  EXPECT_EQ(pace.PauseAfter(seconds(100), 900), seconds(0));
  EXPECT_EQ(pace.PauseAfter(seconds(100), 100), seconds(1));
}

TEST(ScrubPaceTest, HoldsOneLargeReadToTheRate) {
  ScrubPace pace(1);
  EXPECT_EQ(pace.PauseAfter(seconds(0), 1'000'000), seconds(1'000'000));
}

// Readers of a modelled disk, and a scrub beside them, in virtual time.
class DiskSimulation {
 public:
  DiskSimulation(double reads_per_second, uint64_t span_bytes)
      : gaps_(reads_per_second), span_bytes_(span_bytes) {}

  struct Figures {
    // 99th percentile of the readers' latency.
    double p99_ms = 0;
    double scrubbed_bytes_per_second = 0;
  };

  // `rate_bytes_per_second` 0: no scrub.
  Figures Run(uint64_t rate_bytes_per_second) {
    constexpr DriveTime kEnd = seconds(2000);
    ScrubPace pace(std::max<uint64_t>(rate_bytes_per_second, 1));
    DriveTime next_read = NextGap();
    std::optional<DriveTime> next_scrub;
    if (rate_bytes_per_second > 0) {
      next_scrub = DriveTime(0);
    }
    while (now_ < kEnd) {
      now_ = std::min({next_read, next_scrub.value_or(kEnd),
                       drive_->NextEnd().value_or(kEnd)});
      if (EndReads()) {
        next_scrub = now_ + pace.PauseAfter(now_, kScrubReadSizeBytesMax);
      }
      if (now_ >= next_read) {
        Push(FetchClass::kInteractive, random_() % span_bytes_, 24 << 10);
        next_read += NextGap();
      }
      if (next_scrub.has_value() && now_ >= *next_scrub) {
        Push(FetchClass::kScrub,
             scrubbed_bytes_ % (span_bytes_ - kScrubReadSizeBytesMax),
             kScrubReadSizeBytesMax);
        next_scrub.reset();
      }
      for (const ScheduledRead& read : scheduler_.Dispatch(
               now_,
               {.reads_max = 32, .memory_size_bytes_max = uint64_t{1} << 30})) {
        drive_->Submit(now_, {.id = read.id,
                              .address = read.address.offset.value,
                              .size_bytes = read.size_bytes});
        reads_.emplace(read.id, read);
      }
    }
    std::ranges::sort(latencies_);
    const DriveTime p99 = latencies_[latencies_.size() * 99 / 100];
    return {.p99_ms = static_cast<double>(p99.count()) / 1e6,
            .scrubbed_bytes_per_second =
                static_cast<double>(scrubbed_bytes_) /
                std::chrono::duration<double>(kEnd).count()};
  }

 private:
  DriveTime NextGap() {
    return DriveTime(static_cast<int64_t>(1e9 * gaps_(random_)));
  }

  void Push(FetchClass fetch_class, uint64_t offset, uint32_t size_bytes) {
    const bool is_scrub = fetch_class == FetchClass::kScrub;
    const uint64_t id = 2 * pushed_at_.size() + (is_scrub ? 1 : 0);
    pushed_at_.push_back(now_);
    ASSERT_TRUE(scheduler_
                    .Push(now_, {.id = id,
                                 .address = {.offset = FileOffset{offset}},
                                 .size_bytes = size_bytes,
                                 .fetch_class = fetch_class,
                                 .client_id = is_scrub ? 0U : 1U})
                    .ok());
  }

  // Returns true if a read of the scrub ended.
  bool EndReads() {
    bool has_scrubbed = false;
    for (const uint64_t id : drive_->Advance(now_)) {
      scheduler_.Complete(now_, id);
      for (const uint64_t request : reads_.at(id).request_ids) {
        if (request % 2 == 1) {
          has_scrubbed = true;
          scrubbed_bytes_ += kScrubReadSizeBytesMax;
        } else {
          latencies_.push_back(now_ - pushed_at_[request / 2]);
        }
      }
      reads_.erase(id);
    }
    return has_scrubbed;
  }

  std::mt19937_64 random_{7};
  std::exponential_distribution<double> gaps_;
  const uint64_t span_bytes_;
  const std::unique_ptr<DriveModel> drive_ = MakeDriveModel("wd-red").value();
  ElevatorScheduler scheduler_{ElevatorScheduler::Options()};
  DriveTime now_{0};
  // By half of the request's id.
  std::vector<DriveTime> pushed_at_;
  std::map<uint64_t, ScheduledRead> reads_;
  std::vector<DriveTime> latencies_;
  uint64_t scrubbed_bytes_ = 0;
};

TEST(ScrubPaceTest, ReadersOfADiskHardlyNotice) {
  constexpr uint64_t kRate = uint64_t{20} << 20;
  for (const uint64_t span_bytes :
       {uint64_t{60'000'000}, uint64_t{1'000'000'000'000}}) {
    for (const double reads_per_second : {20, 50, 80}) {
      if (kIsSanitized && reads_per_second != 50) {
        continue;
      }
      SCOPED_TRACE(absl::StrCat(reads_per_second, " reads per second in ",
                                span_bytes, " bytes"));
      const auto run = [&](uint64_t rate) {
        return DiskSimulation(reads_per_second, span_bytes).Run(rate);
      };
      const double p99_ms = run(0).p99_ms;
      const DiskSimulation::Figures figures = run(kRate);
      EXPECT_LE(figures.p99_ms, 1.1 * p99_ms);
      EXPECT_GE(figures.scrubbed_bytes_per_second, 0.75 * kRate);
      EXPECT_LE(figures.scrubbed_bytes_per_second, 1.01 * kRate);
    }
  }
}

}  // namespace
}  // namespace quire
