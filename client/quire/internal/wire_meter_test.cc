// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/wire_meter.h"

#include <array>
#include <deque>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::array<EncodingPrior, kAnswerEncodingCount> FsstIsPossible() {
  std::array<EncodingPrior, kAnswerEncodingCount> priors;
  priors[IndexOf(AnswerEncoding::kFsst)] = {
      .is_possible = true, .rate = 0.5, .decode_byte_ns = 0.5};
  return priors;
}

// A link of 12.5 MB/s on which answers arrive one after the other while this
// many calls wait.
class Link {
 public:
  explicit Link(size_t in_flight) : in_flight_(in_flight) {}

  void Answer(WireMeter& meter, bool has_fsst) {
    while (calls_.size() < in_flight_) {
      calls_.push_back(meter.Begin(now_ns_));
    }
    const WireMeter::Call call = calls_.front();
    calls_.pop_front();
    const AnswerEncoding got =
        has_fsst ? call.asked : AnswerEncoding::kIdentity;
    const uint64_t wire = got == AnswerEncoding::kFsst ? 8'000 : 20'000;
    now_ns_ += static_cast<int64_t>(wire * 80);
    meter.Answer(call, got,
                 {.answer_count = 1,
                  .wire_size_bytes = wire,
                  .decoded_size_bytes = 20'000,
                  .decode_ns = got == AnswerEncoding::kFsst ? 10'000u : 0u},
                 now_ns_);
    meter.Pause(now_ns_);
  }

 private:
  const size_t in_flight_;
  std::deque<WireMeter::Call> calls_;
  int64_t now_ns_ = 1'000'000;
};

TEST(WireMeterTest, FindsTheFasterEncodingWhateverIsInFlight) {
  for (const size_t in_flight : {size_t{1}, size_t{8}, size_t{64}}) {
    WireMeter meter;
    Link link(in_flight);
    meter.SetPriors(FsstIsPossible());
    for (int i = 0; i < 3000; ++i) {
      link.Answer(meter, true);
    }
    EXPECT_EQ(meter.next(), AnswerEncoding::kFsst) << in_flight;
  }
}

TEST(WireMeterTest, GivesUpAnEncodingThatTheServerDoesNotHave) {
  WireMeter meter;
  Link link(8);
  meter.SetPriors(FsstIsPossible());
  bool was_chosen = false;
  for (int i = 0; i < 1000; ++i) {
    link.Answer(meter, false);
    was_chosen = was_chosen || meter.next() == AnswerEncoding::kFsst;
  }
  EXPECT_TRUE(was_chosen);
  for (int i = 0; i < 10000; ++i) {
    link.Answer(meter, false);
    ASSERT_EQ(meter.next(), AnswerEncoding::kIdentity);
  }
}

TEST(WireMeterTest, AsksForPriorsOnceThereIsTraffic) {
  WireMeter meter;
  EXPECT_FALSE(meter.TakePriorsWanted());
  Link link(1);
  for (int i = 0; i < 200; ++i) {
    link.Answer(meter, true);
  }
  EXPECT_EQ(meter.next(), AnswerEncoding::kIdentity);
  EXPECT_TRUE(meter.TakePriorsWanted());
  EXPECT_FALSE(meter.TakePriorsWanted());
  WireMeter told;
  told.SetPriors(FsstIsPossible());
  for (int i = 0; i < 200; ++i) {
    link.Answer(told, true);
  }
  EXPECT_FALSE(told.TakePriorsWanted());
}

TEST(WireMeterTest, LeavesOutTheCallersTime) {
  // A gigabyte per second, unless the sink's second per answer counts.
  WireMeter meter;
  meter.SetPriors(FsstIsPossible());
  int64_t now_ns = 0;
  WireMeter::Call call = meter.Begin(now_ns);
  for (int i = 0; i < 25'000; ++i) {
    now_ns += 20'000;
    meter.Answer(call, call.asked,
                 {.answer_count = 1,
                  .wire_size_bytes = 20'000,
                  .decoded_size_bytes = 20'000,
                  .decode_ns = 0},
                 now_ns);
    meter.Pause(now_ns);
    now_ns += 1'000'000'000;
    call = meter.Begin(now_ns);
    ASSERT_EQ(call.asked, AnswerEncoding::kIdentity);
  }
}

TEST(WireMeterTest, TakesManyThreads) {
  WireMeter meter;
  meter.SetPriors(FsstIsPossible());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&meter] {
      Link link(3);
      for (int answer = 0; answer < 2000; ++answer) {
        link.Answer(meter, true);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_FALSE(meter.TakePriorsWanted());
}

}  // namespace
}  // namespace quire
