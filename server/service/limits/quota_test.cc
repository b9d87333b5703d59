// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/quota.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "proto/error_details.h"

#include "server/service/base/service_error.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

Quota Calls(uint64_t per_second) {
  Quota quota;
  quota.calls_per_second = per_second;
  return quota;
}

Quota Bytes(uint64_t per_second) {
  Quota quota;
  quota.bytes_per_second = per_second;
  return quota;
}

Quota Streams(uint64_t count) {
  Quota quota;
  quota.streams = count;
  return quota;
}

class QuotaTest : public ::testing::Test {
 protected:
  // Returns the wait that a refused call is given.
  static absl::Duration WaitOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(status), v1::QUOTA_EXCEEDED);
    const auto details =
        ParseErrorDetails(ToGrpcStatus(status).error_details());
    return details->retry_delay.value_or(absl::ZeroDuration());
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  QuotaBook book_{[this] { return now_; }};
};

// A stream that began before the client had a limit on streams counts.
TEST_F(QuotaTest, CountsStreamsThatBeganUnderAnotherQuota) {
  const auto first = book_.Begin("a", Calls(100), /*is_stream=*/true);
  QUIRE_ASSERT_OK(first);
  EXPECT_THAT(book_.Begin("a", Streams(1), /*is_stream=*/true),
              HasCode(absl::StatusCode::kResourceExhausted));
  QUIRE_EXPECT_OK(book_.Begin("a", Streams(2), /*is_stream=*/true));
}

// Time that several calls observe is credited to the client once.
TEST(QuotaBookTest, CallsThatComeTogetherBringNothingTwice) {
  constexpr int kThreads = 8;
  constexpr uint64_t kCallsPerSecond = 2'000;
  QuotaBook book;
  std::atomic<uint64_t> served{0};
  const absl::Time began = absl::Now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        while (absl::Now() < began + absl::Milliseconds(500)) {
          served += book.Begin("client", Calls(kCallsPerSecond), false).ok();
        }
      });
    }
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  EXPECT_LE(served, kCallsPerSecond * (seconds + 1) + 1);
}

TEST_F(QuotaTest, ALimitReplacesOnlyTheDefaultOfItsKey) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Quota defaults,
                             ParseQuota("calls=2,streams=1"));
  QUIRE_ASSERT_OK_AND_ASSIGN(Quota own, ParseQuota("bytes=7,streams=none"));
  const Quota merged = own.WithDefaults(defaults);
  EXPECT_EQ(merged.calls_per_second, 2U);
  EXPECT_EQ(merged.bytes_per_second, 7U);
  EXPECT_FALSE(merged.streams.has_value());
  EXPECT_EQ(Quota().WithDefaults(defaults).streams, 1U);
  EXPECT_EQ(Streams(5).WithDefaults(defaults).streams, 5U);
}

TEST_F(QuotaTest, ReadsWhatAQuotaIs) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const Quota quota,
                             ParseQuota("calls=10,bytes=2KiB,streams=3"));
  EXPECT_EQ(quota.calls_per_second, 10U);
  EXPECT_EQ(quota.bytes_per_second, 2048U);
  EXPECT_EQ(quota.streams, 3U);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Quota one, ParseQuota("bytes=7"));
  EXPECT_FALSE(one.calls_per_second.has_value());
  QUIRE_ASSERT_OK_AND_ASSIGN(const Quota none, ParseQuota("streams=none"));
  EXPECT_EQ(none.streams, kUnlimited);
  EXPECT_FALSE(ChangingQuota(none).Get().is_set());
  for (const char* text :
       {"", "calls", "calls=", "calls=0", "calls=None", "calls=-1", "calls=1.5",
        "calls=1KiB", "bytes=lots", "colour=1", "calls=1,", "calls=1,calls=2",
        "calls=99999999999999999999"}) {
    EXPECT_EQ(ParseQuota(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST_F(QuotaTest, CallsComeAtTheirRate) {
  const Quota quota = Calls(10);
  for (int i = 0; i < 10; ++i) {
    QUIRE_EXPECT_OK(book_.Begin("a", quota, false).status());
  }
  EXPECT_EQ(WaitOf(book_.Begin("a", quota, false).status()),
            absl::Milliseconds(100));
  // Another client has its own quota.
  QUIRE_EXPECT_OK(book_.Begin("b", quota, false).status());
  now_ += absl::Milliseconds(100);
  QUIRE_EXPECT_OK(book_.Begin("a", quota, false).status());
  EXPECT_FALSE(book_.Begin("a", quota, false).ok());
  // The bucket holds at most one second's worth.
  now_ += absl::Hours(1);
  int count = 0;
  while (book_.Begin("a", quota, false).ok()) {
    ++count;
  }
  EXPECT_EQ(count, 10);
}

TEST_F(QuotaTest, BytesArePaidForAfterwards) {
  const Quota quota = Bytes(1000);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(QuotaBook::Use use,
                               book_.Begin("a", quota, true));
    use.Sent(1500);
    // A stream continues while it owes less than a second's worth.
    QUIRE_EXPECT_OK(use.Check());
    use.Sent(1000);
    EXPECT_EQ(WaitOf(use.Check()), absl::Milliseconds(1500));
  }
  EXPECT_EQ(WaitOf(book_.Begin("a", quota, false).status()),
            absl::Milliseconds(1500));
  now_ += absl::Milliseconds(1500);
  QUIRE_EXPECT_OK(book_.Begin("a", quota, false).status());
}

TEST_F(QuotaTest, StreamsAreCountedUntilTheyEnd) {
  const Quota quota = Streams(2);
  std::vector<QuotaBook::Use> open;
  for (int i = 0; i < 2; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(open.emplace_back(),
                               book_.Begin("a", quota, true));
  }
  EXPECT_EQ(WaitOf(book_.Begin("a", quota, true).status()), absl::Seconds(1));
  QUIRE_EXPECT_OK(book_.Begin("a", quota, false).status());
  open.pop_back();
  QUIRE_EXPECT_OK(book_.Begin("a", quota, true).status());
}

TEST_F(QuotaTest, ANewQuotaCountsAtOnce) {
  QUIRE_EXPECT_OK(book_.Begin("a", Calls(1), false).status());
  EXPECT_FALSE(book_.Begin("a", Calls(1), false).ok());
  QUIRE_EXPECT_OK(book_.Begin("a", Calls(2), false).status());
}

TEST_F(QuotaTest, ForgetsClientsThatHaveGone) {
  const Quota quota = Calls(1);
  for (int i = 0; i < 10'000; ++i) {
    QUIRE_EXPECT_OK(book_.Begin(absl::StrCat(i), quota, false).status());
    now_ += absl::Milliseconds(100);
  }
  EXPECT_LE(book_.size(), 64U);
  // A client in debt is kept.
  QUIRE_EXPECT_OK(book_.Begin("x", quota, false).status());
  for (int i = 0; i < 1000; ++i) {
    QUIRE_EXPECT_OK(book_.Begin(absl::StrCat("y", i), quota, false).status());
  }
  EXPECT_FALSE(book_.Begin("x", quota, false).ok());
}

TEST_F(QuotaTest, WithoutAQuotaThereIsNoAccount) {
  for (int i = 0; i < 100; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(QuotaBook::Use use, book_.Begin("a", {}, true));
    use.Sent(1'000'000'000);
    QUIRE_EXPECT_OK(use.Check());
  }
  EXPECT_EQ(book_.size(), 0U);
}

}  // namespace
}  // namespace quire
