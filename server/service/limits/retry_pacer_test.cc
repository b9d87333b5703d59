// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/retry_pacer.h"

#include <algorithm>
#include <set>
#include <string>

#include "codecs/base/byte_size.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint64_t kTotalBytes = 32 * kMiB;
constexpr absl::Duration kMin = RetryPacer::kWaitMin;
constexpr absl::Duration kMax = RetryPacer::kWaitMax;

// Rates are fractions in floating point.
MATCHER_P(IsAbout, expected, absl::FormatDuration(expected)) {
  return absl::AbsDuration(arg - expected) < absl::Microseconds(1);
}

// A pacer that has just measured `mib_per_second`; `now` is the time.
struct Measured {
  explicit Measured(uint64_t mib_per_second) {
    pacer.Refuse("other", 0, 0, now);
    now += absl::Seconds(1);
    freed_bytes = mib_per_second * kMiB;
  }

  absl::Duration Refuse(const std::string& client, uint64_t size_bytes) {
    return pacer.Refuse(client, size_bytes, freed_bytes, now);
  }

  RetryPacer pacer{kTotalBytes};
  absl::Time now = absl::UnixEpoch();
  uint64_t freed_bytes = 0;
};

TEST(RetryPacerTest, WaitsAreTheBytesAheadOverTheRateOfLate) {
  Measured slow(10);
  Measured fast(100);
  EXPECT_THAT(slow.Refuse("a", kMiB), IsAbout(kMin + absl::Milliseconds(100)));
  EXPECT_THAT(slow.Refuse("a", kMiB), IsAbout(kMin + absl::Milliseconds(200)));
  EXPECT_THAT(slow.Refuse("a", 5 * kMiB),
              IsAbout(kMin + absl::Milliseconds(700)));
  EXPECT_THAT(fast.Refuse("a", kMiB), IsAbout(kMin + absl::Milliseconds(10)));
  // The line gets shorter with time.
  slow.now += absl::Milliseconds(50);
  EXPECT_THAT(slow.Refuse("a", kMiB), IsAbout(kMin + absl::Milliseconds(750)));
}

TEST(RetryPacerTest, ClientsWaitInLinesOfTheirOwn) {
  Measured state(10);
  for (int i = 0; i < 1000; ++i) {
    state.Refuse("one that does not wait as told", kMiB);
  }
  // There are two clients, so each has half of the released bytes.
  EXPECT_THAT(state.Refuse("a", kMiB), IsAbout(kMin + absl::Milliseconds(200)));
  EXPECT_THAT(state.Refuse("b", kMiB), IsAbout(kMin + absl::Milliseconds(300)));
  // Calls whose time has passed no longer count.
  state.now += kMax;
  EXPECT_THAT(state.Refuse("a", 2 * kMiB),
              IsAbout(kMin + absl::Seconds(2.0 * kMiB / kTotalBytes)));
}

TEST(RetryPacerTest, KnowsNothingAtFirstAndAfterARest) {
  RetryPacer pacer(kTotalBytes);
  absl::Time now = absl::UnixEpoch();
  const absl::Duration turn = absl::Milliseconds(31.25);
  EXPECT_THAT(pacer.Refuse("a", kMiB, 0, now), IsAbout(kMin + turn));
  // Too soon for a measurement.
  EXPECT_THAT(pacer.Refuse("b", kMiB, 5 * kMiB, now + absl::Milliseconds(99)),
              IsAbout(kMin + 2 * turn));
  now += absl::Hours(1);
  EXPECT_THAT(pacer.Refuse("a", kMiB, 6 * kMiB, now), IsAbout(kMin + turn));
  // The clock was set back.
  EXPECT_THAT(pacer.Refuse("c", 0, 7 * kMiB, now - absl::Hours(2)),
              IsAbout(kMin));
}

TEST(RetryPacerTest, MeasuresAnewWhenTheClockWasSetBack) {
  Measured state(10);
  state.Refuse("b", 0);
  state.now -= absl::Hours(1);
  // A half of all bytes, not of 10 MiB, as nothing was measured by this clock.
  EXPECT_THAT(state.Refuse("a", kMiB),
              IsAbout(kMin + absl::Seconds(2.0 * kMiB / kTotalBytes)));
}

TEST(RetryPacerTest, StaysWithinBoundsWhereNothingIsSetFree) {
  Measured state(0);
  std::set<absl::Duration> waits;
  absl::Duration longest;
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration wait = state.Refuse("a", 64 * kKiB);
    EXPECT_GE(wait, kMin);
    EXPECT_LE(wait, kMax);
    waits.insert(wait);
    longest = std::max(longest, wait);
  }
  EXPECT_GT(longest, kMax * 0.95);
  // Calls with the longest waits do not return at the same time either.
  EXPECT_EQ(waits.size(), 1000u);
}

}  // namespace
}  // namespace quire
