// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the list of watched calls; server_life_test.cc tests that stalled calls
// end.
#include "server/service/limits/stall_guard.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/mutex.h"

namespace quire {
namespace {

using EntryPtr = std::unique_ptr<StallGuard::Entry>;

// Entries that one thread creates and any thread ends, like calls.
class Exchange {
 public:
  void Put(EntryPtr entry) {
    MutexLock lock(&mutex_);
    entries_.push_back(std::move(entry));
  }

  // Null if there is none.
  EntryPtr Take(size_t at) {
    MutexLock lock(&mutex_);
    if (entries_.empty()) {
      return nullptr;
    }
    const auto it =
        entries_.begin() + static_cast<std::ptrdiff_t>(at % entries_.size());
    EntryPtr entry = std::move(*it);
    entries_.erase(it);
    return entry;
  }

 private:
  Mutex mutex_;
  std::deque<EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);
};

TEST(StallGuardTest, EntriesComeAndGoInAnyOrderOnAnyThread) {
  StallGuard guard(absl::Minutes(1));
  // Sweeps its lists continuously.
  StallGuard busy_guard(absl::Microseconds(8));
  // More threads than shards, so that some share one.
  constexpr size_t kThreads = kThreadShardCount + 3;
  grpc::CallbackServerContext context;
  Exchange exchange;
  std::vector<std::thread> threads;
  for (size_t seed = 0; seed < kThreads; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 300; ++i) {
        auto entry = std::make_unique<StallGuard::Entry>(
            random() % 2 == 0 ? guard : busy_guard, context);
        // Not armed where it may be swept: there is no call to cancel.
        entry->Disarm();
        exchange.Put(std::move(entry));
        if (random() % 3 > 0) {
          exchange.Take(random());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  while (exchange.Take(/*at=*/1) != nullptr) {
  }
  EXPECT_EQ(guard.stalled_count(), 0U);
  EXPECT_EQ(busy_guard.stalled_count(), 0U);
}

}  // namespace
}  // namespace quire
