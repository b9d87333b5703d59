// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/scheduler/sweep_queue.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/sanitized.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

// A queue and a record of its requests.
class Driver {
 public:
  void Push(uint64_t id, uint64_t offset, uint64_t client_id = 0) {
    SweepQueue::Entry entry{.id = id,
                            .address = {.fd = 1, .offset = FileOffset{offset}},
                            .client_id = client_id};
    queue_.Push(entry);
    entries_[id] = entry;
  }

  void Erase(uint64_t id) {
    queue_.Erase(entries_.at(id));
    entries_.erase(id);
  }

  // Reads the next request alone.
  SweepQueue::Choice Read() {
    const SweepQueue::Choice choice = queue_.Next();
    const DeviceAddress address = entries_.at(choice.id).address;
    Erase(choice.id);
    queue_.CountRead(address, choice.overdue);
    return choice;
  }

  uint64_t ReadsUntil(uint64_t id) {
    for (uint64_t reads = 1;; ++reads) {
      if (Read().id == id) {
        return reads;
      }
    }
  }

  SweepQueue& queue() { return queue_; }

  const std::map<uint64_t, SweepQueue::Entry>& entries() const {
    return entries_;
  }

 private:
  SweepQueue queue_;
  std::map<uint64_t, SweepQueue::Entry> entries_;
};

TEST(SweepQueueTest, SweepsUpAndWraps) {
  Driver driver;
  for (const uint64_t place : std::vector<uint64_t>{5, 1, 9, 7}) {
    driver.Push(place, place * 100);
  }
  std::vector<uint64_t> order = {driver.Read().id, driver.Read().id};
  driver.Push(2, 200);
  driver.Push(8, 800);
  while (!driver.queue().empty()) {
    ASSERT_LT(order.size(), 6U) << "a request is never served";
    order.push_back(driver.Read().id);
  }
  EXPECT_THAT(order, ElementsAre(1, 5, 7, 8, 9, 2));
}

TEST(SweepQueueTest, ASweepThatHasServedTwiceItsPeakTakesNoMoreIn) {
  Driver driver;
  driver.Push(1, 0);
  driver.Push(2, 1'000'000);
  driver.Read();
  // Always just ahead of the sweep; the peak is two.
  uint64_t joined = 0;
  uint64_t id = 3;
  for (;; ++id) {
    driver.Push(id, id);
    const uint64_t read = driver.Read().id;
    if (read != id) {
      EXPECT_EQ(read, 2);
      break;
    }
    ++joined;
    ASSERT_LE(joined, SweepQueue::kSweepFactor * 2 + SweepQueue::kSweepBase)
        << "the sweep never closes";
  }
  EXPECT_EQ(joined, SweepQueue::kSweepFactor * 2 + SweepQueue::kSweepBase - 1);
  // The deferred request is in the next sweep.
  EXPECT_EQ(driver.Read().id, id);
  EXPECT_TRUE(driver.queue().empty());
}

TEST(SweepQueueTest, WhoHasLittleDoesNotWaitForWhoHasMuch) {
  Driver driver;
  for (uint64_t i = 0; i < 10'000; ++i) {
    driver.Push(i, i * 10, /*client_id=*/1);
  }
  // The sweep is past these positions.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(driver.Read().overdue);
  }
  for (uint64_t i = 0; i < 5; ++i) {
    driver.Push(20'000 + i, i, /*client_id=*/2);
  }
  std::vector<uint64_t> overdue;
  uint64_t reads = 0;
  const uint64_t reads_max = SweepQueue::kOverdueBase +
                             SweepQueue::kOverdueFactor * 10 +
                             SweepQueue::kOverdueInterval * 5;
  while (overdue.size() < 5) {
    ASSERT_LT(reads, reads_max) << overdue.size() << " of 5 were overdue";
    ++reads;
    const SweepQueue::Choice choice = driver.Read();
    if (choice.overdue) {
      overdue.push_back(choice.id);
    } else {
      // The sweep continues at its position.
      EXPECT_GE(choice.id, 100);
      EXPECT_LT(choice.id, 10'000);
    }
  }
  EXPECT_THAT(overdue, ElementsAre(20'000, 20'001, 20'002, 20'003, 20'004));
}

TEST(SweepQueueTest, EqualsKeepTheSweep) {
  for (const uint64_t clients : {uint64_t{1}, uint64_t{2}, uint64_t{50}}) {
    Driver driver;
    for (uint64_t i = 0; i < 5'000; ++i) {
      driver.Push(i, (i * 7'919) % 5'000, i % clients);
    }
    for (int i = 0; i < 5'000; ++i) {
      ASSERT_FALSE(driver.queue().empty()) << clients;
      EXPECT_FALSE(driver.Read().overdue) << clients;
    }
    EXPECT_TRUE(driver.queue().empty()) << clients;
  }
}

TEST(SweepQueueTest, TellsHowDenseTheNextRequestsLie) {
  Driver driver;
  for (uint64_t i = 0; i < 32; ++i) {
    driver.Push(i, i * 1'000);
  }
  EXPECT_EQ(driver.queue().MeanGapAhead(), std::nullopt);
  driver.Push(32, 64'000);
  EXPECT_EQ(driver.queue().MeanGapAhead(), 2'000);
  driver.Read();
  EXPECT_EQ(driver.queue().MeanGapAhead(), std::nullopt);
}

TEST(SweepQueueTest, TellsHowDenselyTheyLieOnTheDevice) {
  SweepQueue queue;
  for (uint64_t i = 0; i <= 32; ++i) {
    SweepQueue::Entry entry{.id = i,
                            .address = {.fd = static_cast<int>(i % 2),
                                        .offset = FileOffset{(32 - i) * 77'000},
                                        .physical = i * 3'000}};
    queue.Push(entry);
  }
  EXPECT_EQ(queue.MeanGapAhead(), 3'000);
  // The mean gap is unknown if one request has no position.
  SweepQueue::Entry entry{.id = 99,
                          .address = {.fd = 1, .offset = FileOffset{0}}};
  queue.Push(entry);
  EXPECT_EQ(queue.MeanGapAhead(), std::nullopt);
}

TEST(SweepQueueTest, KeepsItsPromisesOnRandomRequests) {
  for (uint64_t seed = 1; seed <= Fewer(60u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    Driver driver;

    struct Waiting {
      uint64_t reads_before = 0;
      size_t waiting_max = 0;
    };

    std::map<uint64_t, Waiting> waiting;
    const uint64_t span = uint64_t{1} << (4 + random() % 20);
    const uint64_t clients = 1 + random() % 9;
    uint64_t reads = 0;
    uint64_t next_id = 1;
    uint64_t last_offset = 0;
    for (int step = 0; step < 4'000 || !waiting.empty(); ++step) {
      const uint64_t dice = random() % 100;
      if (step < 4'000 && dice < 50 && waiting.size() < 300) {
        // Half of them just ahead of the sweep, where they always join.
        const uint64_t offset = random() % 2 == 0
                                    ? random() % span
                                    : last_offset + 1 + random() % 4;
        driver.Push(next_id, offset, (random() % clients) * (random() % 2));
        waiting[next_id++] = {reads, 0};
        for (auto& [id, w] : waiting) {
          w.waiting_max = std::max(w.waiting_max, waiting.size());
        }
      } else if (dice < 55 && !waiting.empty()) {
        auto it = waiting.lower_bound(random() % next_id);
        it = it == waiting.end() ? waiting.begin() : it;
        driver.Erase(it->first);
        waiting.erase(it);
      } else if (!waiting.empty()) {
        const auto before = driver.entries();
        const SweepQueue::Choice choice = driver.Read();
        ++reads;
        if (!choice.overdue) {
          last_offset = before.at(choice.id).address.offset.value;
        }
        const auto it = waiting.find(choice.id);
        ASSERT_NE(it, waiting.end());
        ASSERT_LE(reads - it->second.reads_before,
                  SweepQueue::ReadsUntilServedMax(it->second.waiting_max));
        waiting.erase(it);
      }
      ASSERT_EQ(driver.queue().size(), waiting.size());
    }
  }
}

}  // namespace
}  // namespace quire
