// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the whole store over a device that fails as a FaultPlan says: each
// fetch ends once, with the result of its own block. QUIRE_SIMULATION_SEEDS=n
// runs n seeds, QUIRE_SIMULATION_SEED=n only that one.
#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/fault_plan.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

constexpr uint64_t kBlocks = 400;
constexpr uint32_t kRawSizeBytes = 2000;

// Keeps reads until the test serves them, on the test's thread. The plan
// determines the results. Thread-safe.
class FaultyDevice final : public Device {
 public:
  FaultyDevice(const FaultPlan* plan, Done done)
      : plan_(plan), done_(std::move(done)) {}

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    waiting_.insert(waiting_.end(), reads.begin(), reads.end());
  }

  std::string name() const override { return "faulty"; }

  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }

  // Serves up to `count` waiting reads, drawn by `random`; the others stall.
  void Serve(size_t count, std::mt19937_64& random)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<DeviceRead> served;
    {
      MutexLock lock(&mutex_);
      for (; count > 0 && !waiting_.empty(); --count) {
        std::swap(waiting_[random() % waiting_.size()], waiting_.back());
        served.push_back(waiting_.back());
        waiting_.pop_back();
      }
    }
    std::vector<DeviceResult> results;
    for (const DeviceRead& read : served) {
      results.push_back(ReadForTest(read));
      plan_->Apply(read, random(), results.back());
    }
    if (!results.empty()) {
      done_(results);
    }
  }

 private:
  const FaultPlan* const plan_;
  const Done done_;
  mutable Mutex mutex_;
  std::vector<DeviceRead> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Runs one store with one seed, step by step. The decode pool is idle after
// each step, so that equal seeds give equal runs.
class Steps {
 public:
  Steps(const TestBlocks& blocks, uint64_t seed)
      : blocks_(blocks),
        random_(seed),
        plan_(seed, kBlocks, blocks.stored_size_bytes(),
              blocks.OffsetOf(1) - blocks.OffsetOf(0)),
        options_{
            .cache_size_bytes = random_() % 3 * (random_() % 500'000),
            .buffers_size_bytes_max = 2'000 + random_() % 200'000,
            .pending_fetches_max = static_cast<uint32_t>(5 + random_() % 200),
            .decode_threads = 1,
            .device_depth = static_cast<uint32_t>(1 + random_() % 16),
            .drives = {{.name = "faulty",
                        .kind = random_() % 2 == 0 ? DriveKind::kRotational
                                                   : DriveKind::kSolidState}}} {
  }

  void Run(int steps) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, BlockStore::Create(
                    options_,
                    [this](Device::Done done) -> absl::StatusOr<OpenedDevice> {
                      auto device = std::make_unique<FaultyDevice>(
                          &plan_, std::move(done));
                      device_ = device.get();
                      return OpenedDevice{std::move(device), ""};
                    }));
    for (int i = 0; i < steps; ++i) {
      Step();
      SettleDecoding(*store_);
      ASSERT_NO_FATAL_FAILURE(CheckLevels());
    }
    while (device_->waiting() > 0) {
      device_->Serve(4, random_);
      SettleDecoding(*store_);
    }
    CheckEnd();
  }

  // Status codes of all fetches, in order, and the counters of the device.
  std::vector<uint64_t> Trace() const {
    std::vector<uint64_t> trace;
    for (size_t i = 0; i < asked_.size(); ++i) {
      trace.push_back(
          static_cast<uint64_t>(log_.Get(i).result.status().code()));
    }
    trace.push_back(end_stats_.device_reads);
    trace.push_back(end_stats_.device_read_bytes);
    trace.push_back(end_stats_.cache_hits);
    trace.push_back(end_stats_.recovered_blocks);
    return trace;
  }

  const BlockStoreStats& end_stats() const { return end_stats_; }

  uint64_t fetches() const { return asked_.size(); }

 private:
  void Step() {
    const uint64_t dice = random_() % 16;
    if (dice < 5) {
      const uint64_t block = Draw();
      ids_.push_back(store_->Fetch(Fetch(block), Watch(block)));
    } else if (dice < 8) {
      std::vector<BlockStore::FetchItem> items;
      const uint64_t first = Draw();
      const uint64_t last = std::min(first + 1 + random_() % 40, kBlocks);
      for (uint64_t i = first; i < last; ++i) {
        items.push_back({Fetch(i), Watch(i)});
      }
      const auto ids = store_->FetchAll(std::move(items));
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    } else if (dice < 10 && !ids_.empty()) {
      const uint64_t back = std::min<uint64_t>(1 + random_() % 30, ids_.size());
      store_->Cancel(ids_[ids_.size() - back]);
    } else {
      device_->Serve(1 + random_() % 3, random_);
    }
  }

  BlockFetch Fetch(uint64_t block) {
    BlockFetch fetch =
        blocks_.Fetch(block, static_cast<FetchClass>(random_() % 3));
    fetch.client_id = random_() % 3;
    return fetch;
  }

  BlockStore::Done Watch(uint64_t block) {
    asked_.push_back(block);
    return log_.Watch();
  }

  uint64_t Draw() { return random_() % (1 + random_() % kBlocks); }

  void CheckLevels() {
    const BlockStoreStats stats = store_->Stats();
    ASSERT_LE(stats.device_reads_in_flight, options_.device_depth);
    ASSERT_EQ(stats.device_reads_in_flight, device_->waiting());
    ASSERT_LE(stats.queued_fetches, options_.pending_fetches_max);
    ASSERT_LE(stats.cache_size_bytes, options_.cache_size_bytes);
    // A single read may take more.
    ASSERT_TRUE(stats.buffers_size_bytes <= options_.buffers_size_bytes_max ||
                stats.device_reads_in_flight <= 1);
    // The device is not idle while a fetch waits.
    ASSERT_TRUE(stats.queued_fetches == 0 || stats.device_reads_in_flight > 0);
  }

  void CheckEnd() {
    uint64_t cancelled = 0;
    for (size_t i = 0; i < asked_.size(); ++i) {
      const FetchLog::End end = log_.Get(i);
      ASSERT_EQ(end.calls, 1) << "fetch " << i;
      const absl::StatusCode code = end.result.status().code();
      cancelled += code == absl::StatusCode::kCancelled ? 1 : 0;
      ASSERT_TRUE(code == absl::StatusCode::kCancelled ||
                  code == absl::StatusCode::kResourceExhausted ||
                  plan_.Allows(asked_[i], code))
          << "block " << asked_[i] << ": " << end.result.status();
      if (end.result.ok()) {
        const std::vector<uint8_t> text = blocks_.Text(asked_[i]);
        const ByteView bytes = (*end.result)->bytes();
        ASSERT_TRUE(
            std::equal(bytes.begin(), bytes.end(), text.begin(), text.end()));
      }
    }
    const BlockStoreStats stats = store_->Stats();
    end_stats_ = stats;
    ASSERT_EQ(stats.queued_fetches, 0);
    ASSERT_EQ(stats.device_reads_in_flight, 0);
    ASSERT_EQ(stats.buffers_size_bytes, 0);
    ASSERT_EQ(stats.cancelled_fetches, cancelled);
    ASSERT_EQ(stats.cache_hits + stats.cache_misses, asked_.size());
  }

  const TestBlocks& blocks_;
  std::mt19937_64 random_;
  const FaultPlan plan_;
  const BlockStoreOptions options_;
  FetchLog log_;
  std::vector<uint64_t> asked_;
  std::vector<BlockStore::FetchId> ids_;
  FaultyDevice* device_ = nullptr;
  BlockStoreStats end_stats_;
  std::unique_ptr<BlockStore> store_;
};

TEST(BlockStoreFaultTest, EachFetchEndsAsItsOwnBlockSays) {
  const std::vector<uint64_t> seeds = SimulationSeeds(40);
  BlockStoreStats sum;
  uint64_t fetches = 0;
  for (const uint64_t seed : seeds) {
    const TestBlocks blocks(kBlocks, kRawSizeBytes, /*source_id=*/1,
                            seed % 3 * 3'000);
    Steps steps(blocks, seed);
    steps.Run(200);
    ASSERT_FALSE(HasFatalFailure()) << HowToRepeat(seed);
    sum.device_errors += steps.end_stats().device_errors;
    sum.decode_failures += steps.end_stats().decode_failures;
    sum.recovered_blocks += steps.end_stats().recovered_blocks;
    sum.joined_fetches += steps.end_stats().joined_fetches;
    sum.cancelled_fetches += steps.end_stats().cancelled_fetches;
    fetches += steps.fetches();
  }
  if (seeds.size() > 20) {
    EXPECT_GT(fetches, 500 * seeds.size());
    EXPECT_GT(sum.device_errors, seeds.size());
    EXPECT_GT(sum.decode_failures, seeds.size());
    EXPECT_GT(sum.recovered_blocks, seeds.size());
    EXPECT_GT(sum.joined_fetches, seeds.size());
    EXPECT_GT(sum.cancelled_fetches, seeds.size());
  }
}

TEST(BlockStoreFaultTest, ASeedIsOneRun) {
  const TestBlocks blocks(kBlocks, kRawSizeBytes);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Steps once(blocks, seed);
    once.Run(150);
    Steps again(blocks, seed);
    again.Run(150);
    EXPECT_EQ(once.Trace(), again.Trace());
  }
}

// The same faults on the device's own thread with several decode threads: the
// order varies, but not the result of each fetch.
TEST(BlockStoreFaultTest, ThreadsDoNotChangeHowFetchesEnd) {
  const TestBlocks blocks(kBlocks, kRawSizeBytes);
  for (const uint64_t seed : SimulationSeeds(8)) {
    const FaultPlan plan(seed, kBlocks, blocks.stored_size_bytes(),
                         blocks.OffsetOf(1) - blocks.OffsetOf(0));
    auto fault = [&plan, random = std::mt19937_64(seed)](
                     const DeviceRead& read, DeviceResult& result) mutable {
      plan.Apply(read, random(), result);
    };
    FetchLog log;
    std::vector<uint64_t> asked;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        auto store, BlockStore::Create(
                        {.cache_size_bytes = 200'000,
                         .buffers_size_bytes_max = 150'000,
                         .decode_threads = 3,
                         .device_depth = 4},
                        [&](Device::Done done) -> absl::StatusOr<OpenedDevice> {
                          return OpenedDevice{std::make_unique<ChaosDevice>(
                                                  seed, fault, std::move(done)),
                                              ""};
                        }));
    std::mt19937_64 random(seed);
    for (int i = 0; i < 100; ++i) {
      std::vector<BlockStore::FetchItem> items;
      const uint64_t first = random() % kBlocks;
      const uint64_t last = std::min(first + 1 + random() % 30, kBlocks);
      for (uint64_t block = first; block < last; ++block) {
        asked.push_back(block);
        items.push_back(
            {blocks.Fetch(block, static_cast<FetchClass>(random() % 3)),
             log.Watch()});
      }
      store->FetchAll(std::move(items));
    }
    log.WaitForAll();
    for (size_t i = 0; i < asked.size(); ++i) {
      const FetchLog::End end = log.Get(i);
      ASSERT_EQ(end.calls, 1) << HowToRepeat(seed);
      ASSERT_TRUE(plan.Allows(asked[i], end.result.status().code()))
          << "block " << asked[i] << ": " << end.result.status() << "; "
          << HowToRepeat(seed);
    }
    const BlockStoreStats stats = store->Stats();
    EXPECT_EQ(stats.queued_fetches, 0);
    EXPECT_EQ(stats.device_reads_in_flight, 0);
    EXPECT_EQ(stats.buffers_size_bytes, 0);
  }
}

}  // namespace
}  // namespace quire
