// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/parallel_opening.h"

#include <algorithm>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"
#include "server/storage/base/cgroup.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

const std::atomic<bool> kNever = false;

// Current and maximum memory of open archives and openings.
class Ledger {
 public:
  void Begin(const OpeningNeed& need) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++running_;
    running_max_ = std::max(running_max_, running_);
    held_bytes_ += need.kept_bytes + need.working_bytes;
    held_bytes_max_ = std::max(held_bytes_max_, held_bytes_);
    changed_.NotifyAll();
  }

  void End(const OpeningNeed& need) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --running_;
    held_bytes_ -= need.working_bytes;
  }

  void AwaitRunning(int count) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (running_max_ < count) {
      changed_.Wait(&mutex_);
    }
  }

  int running_max() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return running_max_;
  }

  uint64_t held_bytes_max() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return held_bytes_max_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_max_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t held_bytes_max_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ParallelOpeningTest, OpensEachOnceAndSeveralAtATime) {
  const std::vector<OpeningNeed> needs(40, {.kept_bytes = 1});
  Mutex mutex;
  std::multiset<size_t> opened;
  Ledger ledger;
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 1000, kNever, [&](size_t i, OpeningHelpers*) {
        ledger.Begin(needs[i]);
        // Hangs if they run one by one.
        ledger.AwaitRunning(2);
        ledger.End(needs[i]);
        MutexLock lock(&mutex);
        opened.insert(i);
        return absl::OkStatus();
      }));
  EXPECT_EQ(opened.size(), 40u);
  EXPECT_EQ(std::set<size_t>(opened.begin(), opened.end()).size(), 40u);
}

TEST(ParallelOpeningTest, StaysWithinTheMemory) {
  std::vector<OpeningNeed> needs;
  uint64_t kept_bytes = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    needs.push_back({.kept_bytes = 1 + i % 17, .working_bytes = i % 23});
    kept_bytes += needs.back().kept_bytes;
  }
  for (const uint64_t spare_bytes : {0u, 22u, 1000u}) {
    Ledger ledger;
    QUIRE_EXPECT_OK(OpenInParallel(needs, kept_bytes + spare_bytes, kNever,
                                   [&](size_t i, OpeningHelpers*) {
                                     ledger.Begin(needs[i]);
                                     std::this_thread::yield();
                                     ledger.End(needs[i]);
                                     return absl::OkStatus();
                                   }));
    // If the last one's working memory does not fit, it runs alone.
    EXPECT_LE(ledger.held_bytes_max(),
              kept_bytes + std::max(spare_bytes, uint64_t{22}));
  }
}

TEST(ParallelOpeningTest, OpensWhatDoesNotFitAlone) {
  const std::vector<OpeningNeed> needs(
      10, {.kept_bytes = 10, .working_bytes = 1000});
  Ledger ledger;
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 100, kNever, [&](size_t i, OpeningHelpers*) {
        ledger.Begin(needs[i]);
        std::this_thread::yield();
        ledger.End(needs[i]);
        return absl::OkStatus();
      }));
  EXPECT_EQ(ledger.running_max(), 1);
}

TEST(ParallelOpeningTest, BeginsWithTheLargest) {
  const std::vector<OpeningNeed> needs = {
      {.kept_bytes = 5}, {.kept_bytes = 9}, {.kept_bytes = 7}};
  std::vector<size_t> order;
  // No two fit.
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 0, kNever, [&](size_t i, OpeningHelpers*) {
        order.push_back(i);
        return absl::OkStatus();
      }));
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 0));
}

TEST(ParallelOpeningTest, ReturnsAFailureAndBeginsNoOther) {
  const std::vector<OpeningNeed> needs(100, {.kept_bytes = 1});
  std::atomic<int> begun = 0;
  EXPECT_THAT(OpenInParallel(needs, 0, kNever,
                             [&](size_t i, OpeningHelpers*) -> absl::Status {
                               ++begun;
                               return i < 3 ? absl::OkStatus()
                                            : absl::DataLossError(
                                                  absl::StrCat("bad ", i));
                             }),
              FailsWith(absl::StatusCode::kDataLoss, ::testing::Eq("bad 3")));
  EXPECT_EQ(begun, 4);
}

TEST(ParallelOpeningTest, CountsFailuresOfOthers) {
  const std::vector<OpeningNeed> needs(2, {.kept_bytes = 1});
  Ledger ledger;
  EXPECT_THAT(
      OpenInParallel(needs, 100, kNever,
                     [&](size_t i, OpeningHelpers*) -> absl::Status {
                       ledger.Begin(needs[i]);
                       ledger.AwaitRunning(2);
                       return absl::NotFoundError(absl::StrCat("no ", i));
                     }),
      FailsWith(absl::StatusCode::kNotFound,
                ::testing::Eq("no 0 (and 1 more could not be opened)")));
}

TEST(ParallelOpeningTest, LendsHelpersTheMemoryThatIsLeft) {
  const std::vector<OpeningNeed> needs = {
      {.kept_bytes = 10, .working_bytes = 5}};
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 20, kNever, [](size_t, OpeningHelpers* helpers) {
        EXPECT_FALSE(helpers->Begin(6));
        EXPECT_TRUE(helpers->Begin(5));
        EXPECT_FALSE(helpers->Begin(1));
        helpers->End(5);
        EXPECT_TRUE(helpers->Begin(4));
        helpers->End(4);
        return absl::OkStatus();
      }));
  // One that takes more than there is runs alone.
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 14, kNever, [](size_t, OpeningHelpers* helpers) {
        EXPECT_FALSE(helpers->Begin(0));
        return absl::OkStatus();
      }));
}

TEST(ParallelOpeningTest, BoundsTheThreadsOfHelpers) {
  const size_t threads_max = 2 * size_t{UsableCores()};
  for (const size_t count : {size_t{1}, threads_max - 1, threads_max}) {
    Ledger ledger;
    std::atomic<size_t> allowed = 0;
    const std::vector<OpeningNeed> needs(count, OpeningNeed());
    QUIRE_EXPECT_OK(OpenInParallel(
        needs, 100, kNever, [&](size_t i, OpeningHelpers* helpers) {
          while (helpers->Begin(0)) {
            ++allowed;
          }
          // No thread has ended yet.
          ledger.Begin(needs[i]);
          ledger.AwaitRunning(static_cast<int>(count));
          return absl::OkStatus();
        }));
    EXPECT_EQ(allowed, threads_max - count);
  }
}

TEST(ParallelOpeningTest, LendsNothingWhileAnArchiveWaitsForMemory) {
  const std::vector<OpeningNeed> needs(2, {.kept_bytes = 10});
  QUIRE_EXPECT_OK(
      OpenInParallel(needs, 15, kNever, [](size_t i, OpeningHelpers* helpers) {
        bool is_lent = i == 0;
        // Until the other one waits.
        for (int turn = 0; is_lent && turn < 1'000'000; ++turn) {
          is_lent = helpers->Begin(1);
          if (is_lent) {
            helpers->End(1);
            std::this_thread::yield();
          }
        }
        EXPECT_FALSE(is_lent);
        return absl::OkStatus();
      }));
}

TEST(ParallelOpeningTest, EndsWhenItIsCancelled) {
  const std::vector<OpeningNeed> needs(100, {.kept_bytes = 1});
  std::atomic<bool> cancel = false;
  std::atomic<int> begun = 0;
  EXPECT_THAT(OpenInParallel(needs, 0, cancel,
                             [&](size_t, OpeningHelpers*) {
                               ++begun;
                               cancel = true;
                               return absl::CancelledError("in the middle");
                             }),
              HasCode(absl::StatusCode::kCancelled));
  EXPECT_EQ(begun, 1);
  EXPECT_THAT(OpenInParallel({}, 0, kNever, {}),
              HasCode(absl::StatusCode::kOk));
}

}  // namespace
}  // namespace quire
