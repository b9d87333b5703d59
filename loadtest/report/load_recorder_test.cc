// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_recorder.h"

#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr uint64_t kMs = 1'000'000;

LoadOutcome Right(uint64_t due_ns, uint64_t ended_ns) {
  return {.target = {.place = TextSpan{3, 100}},
          .due_ns = due_ns,
          .ended_ns = ended_ns,
          .cost = {.text_bytes = 100, .wire_bytes = 40, .message_bytes = 55}};
}

TEST(LoadRecorderTest, AddsUpRightAnswers) {
  LoadRecorder recorder;
  recorder.BeginWindow(0);
  recorder.Record(Right(1 * kMs, 3 * kMs));
  LoadOutcome decoded = Right(2 * kMs, 5 * kMs);
  decoded.cost.decode_ns = 4 * kMs;
  recorder.Record(decoded);
  const LoadReport report = recorder.Finish(250 * kMs);
  EXPECT_EQ(report.request_count, 2u);
  EXPECT_EQ(report.right_count, 2u);
  EXPECT_EQ(report.text_bytes, 200u);
  EXPECT_EQ(report.wire_bytes, 80u);
  EXPECT_EQ(report.message_bytes, 110u);
  EXPECT_EQ(report.latency.count(), 2u);
  // From the due time, including decoding.
  EXPECT_EQ(report.latency.max_us(), 7'000u);
  EXPECT_EQ(report.elapsed_seconds, 0.25);
}

TEST(LoadRecorderTest, LeavesOutWhatWasDueBeforeTheWindow) {
  LoadRecorder recorder;
  recorder.Record(Right(1 * kMs, 2 * kMs));
  recorder.BeginWindow(10 * kMs);
  // Due before it, answered in it.
  recorder.Record(Right(9 * kMs, 20 * kMs));
  LoadOutcome failed = Right(9 * kMs, 21 * kMs);
  failed.status = absl::UnavailableError("gone");
  recorder.Record(failed);
  recorder.Record(Right(10 * kMs, 30 * kMs));
  const LoadReport report = recorder.Finish(110 * kMs);
  EXPECT_EQ(report.warmup_count, 3u);
  EXPECT_EQ(report.request_count, 1u);
  EXPECT_EQ(report.text_bytes, 100u);
  EXPECT_TRUE(report.errors.empty());
  EXPECT_TRUE(report.faults.empty());
  EXPECT_EQ(report.elapsed_seconds, 0.1);
}

TEST(LoadRecorderTest, ARunWithoutAWindowHasNoTime) {
  LoadRecorder recorder;
  recorder.Record(Right(1 * kMs, 2 * kMs));
  const LoadReport report = recorder.Finish(50 * kMs);
  EXPECT_EQ(report.warmup_count, 1u);
  EXPECT_EQ(report.request_count, 0u);
  EXPECT_EQ(report.elapsed_seconds, 0);
  EXPECT_EQ(report.PerSecond(report.right_count), 0);
}

TEST(LoadRecorderTest, TellsErrorsFromWrongAnswers) {
  LoadRecorder recorder;
  recorder.BeginWindow(0);
  LoadOutcome outcome = Right(1 * kMs, 2 * kMs);
  outcome.status = absl::ResourceExhaustedError("busy");
  outcome.reason = "SERVER_BUSY";
  recorder.Record(outcome);
  recorder.Record(outcome);
  outcome.reason = "";
  recorder.Record(outcome);
  outcome.status = absl::OkStatus();
  outcome.fault = "the bytes differ";
  recorder.Record(outcome);
  recorder.Record(Right(1 * kMs, 2 * kMs));
  const LoadReport report = recorder.Finish(2 * kMs);
  EXPECT_EQ(report.request_count, 5u);
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.wrong_count, 1u);
  EXPECT_EQ(report.error_count(), 3u);
  EXPECT_THAT(report.errors,
              ElementsAre(Pair("RESOURCE_EXHAUSTED", 1u),
                          Pair("RESOURCE_EXHAUSTED SERVER_BUSY", 2u)));
  EXPECT_THAT(
      report.faults,
      ElementsAre(AllOf(StartsWith("range [3, +100): "), HasSubstr("busy")),
                  HasSubstr("busy"), HasSubstr("busy"), "the bytes differ"));
  // Right answers have a latency; requests retried until their time was up have
  // a lower bound.
  EXPECT_EQ(report.latency.count(), 3u);
  EXPECT_EQ(report.lower_bound_count, 2u);
  EXPECT_EQ(report.text_bytes, 100u);
}

TEST(LoadRecorderTest, WaitsThatWereGivenUpAreLowerBounds) {
  LoadRecorder recorder;
  recorder.CountUnanswered(0, 1'000 * kMs, 5);
  recorder.BeginWindow(10 * kMs);
  recorder.Record(Right(10 * kMs, 13 * kMs));
  // Due before the window, and none at all.
  recorder.CountUnanswered(9 * kMs, 2'000 * kMs, 5);
  recorder.CountUnanswered(10 * kMs, 2'000 * kMs, 0);
  LoadOutcome outcome = Right(10 * kMs, 50 * kMs);
  outcome.status = absl::DeadlineExceededError("late");
  recorder.Record(outcome);
  outcome.status = absl::InternalError("at once");
  recorder.Record(outcome);
  recorder.CountUnanswered(10 * kMs, 60 * kMs, 7);
  recorder.AddLowerBound(30 * kMs, 60 * kMs);
  recorder.AddLowerBound(30 * kMs, 60 * kMs);
  const LoadReport report = recorder.Finish(60 * kMs);
  EXPECT_EQ(report.request_count, 3u);
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.unanswered_count, 17u);
  EXPECT_EQ(report.lower_bound_count, 10u);
  EXPECT_EQ(report.lower_bound_max_us, 50'000u);
  EXPECT_EQ(report.latency.count(), 11u);
  EXPECT_EQ(report.latency.max_us(), 50'000u);
  EXPECT_GE(report.latency.PercentileUs(50), 50'000u);
}

TEST(LoadRecorderTest, OnlyRightAnswersMakeAGoodRun) {
  LoadReport report;
  EXPECT_FALSE(report.is_good());
  report.request_count = report.right_count = 1;
  EXPECT_TRUE(report.is_good());
  report.end = LoadEnd::kSilence;
  EXPECT_FALSE(report.is_good());
  report.end = LoadEnd::kDuration;
  report.request_count = 2;
  EXPECT_FALSE(report.is_good());
}

TEST(LoadRecorderTest, KeepsTheFirstFaultsOnly) {
  LoadRecorder recorder;
  recorder.BeginWindow(0);
  for (int i = 0; i < 100; ++i) {
    LoadOutcome outcome = Right(0, 1);
    outcome.fault = absl::StrCat("fault ", i);
    recorder.Record(outcome);
  }
  const LoadReport report = recorder.Finish(1);
  EXPECT_EQ(report.wrong_count, 100u);
  EXPECT_THAT(report.faults, ElementsAre("fault 0", "fault 1", "fault 2",
                                         "fault 3", "fault 4"));
}

// Two threads may read their times in another order than they arrive here.
TEST(LoadRecorderTest, TimesThatRunBackwardsCountAsNone) {
  LoadRecorder recorder;
  recorder.BeginWindow(5 * kMs);
  recorder.Record(Right(8 * kMs, 7 * kMs));
  const LoadReport report = recorder.Finish(4 * kMs);
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.latency.max_us(), 0u);
  EXPECT_EQ(report.elapsed_seconds, 0);
}

TEST(LoadRecorderTest, CountsRetries) {
  LoadRecorder recorder;
  recorder.CountRetry();
  recorder.CountRetry();
  const LoadReport report = recorder.Finish(0);
  EXPECT_EQ(report.retry_count, 2u);
  EXPECT_EQ(report.request_count, 0u);
}

TEST(LoadRecorderTest, TakesManyThreads) {
  LoadRecorder recorder;
  recorder.BeginWindow(0);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&recorder] {
      for (uint64_t i = 0; i < 1'000; ++i) {
        recorder.Record(Right(i * kMs, (i + 1) * kMs));
        recorder.CountRetry();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const LoadReport report = recorder.Finish(1'000 * kMs);
  EXPECT_EQ(report.right_count, 4'000u);
  EXPECT_EQ(report.retry_count, 4'000u);
  EXPECT_EQ(report.latency.count(), 4'000u);
  EXPECT_EQ(report.text_bytes, 400'000u);
}

}  // namespace
}  // namespace quire
