// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the store under many threads over a device that reorders and fails.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

constexpr uint64_t kThreads = 4;
constexpr uint64_t kStressBlocks = 300;
constexpr uint32_t kStressBlockSize = 4000;

void InThreads(const std::function<void(uint64_t)>& work) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back(work, t);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

ReadFault NoFaults() {
  return [](const DeviceRead&, DeviceResult&) {};
}

// One read in ten fails, ends early or has a bit flipped.
ReadFault RandomFaults(uint64_t seed) {
  return [random = std::mt19937_64(seed)](const DeviceRead& read,
                                          DeviceResult& result) mutable {
    switch (random() % 30) {
      case 0:
        result.size_bytes = random() % read.buffer.size();
        result.status = DeviceErrorStatus(read, EIO);
        break;
      case 1:
        result.size_bytes = random() % read.buffer.size();
        result.status = EndOfFileStatus(read, result.size_bytes);
        break;
      case 2:
        read.buffer[random() % read.buffer.size()] ^=
            static_cast<uint8_t>(1 << random() % 8);
        break;
      default:
        break;
    }
  };
}

absl::StatusOr<std::unique_ptr<BlockStore>> OpenChaos(
    const BlockStoreOptions& options, uint64_t seed, const ReadFault& fault) {
  return BlockStore::Create(
      options, [&](Device::Done done) -> absl::StatusOr<OpenedDevice> {
        return OpenedDevice{
            std::make_unique<ChaosDevice>(seed, fault, std::move(done)), ""};
      });
}

// Fetches of one thread and their results. Outlives the store.
class Client {
 public:
  Client(BlockStore* store, const TestBlocks* blocks, uint64_t seed)
      : store_(store), blocks_(blocks), random_(seed) {}

  // Checks the limits while it runs. Waits for its fetches periodically, or all
  // would end by being refused.
  void Work(int steps, const BlockStoreOptions& options) {
    for (int i = 0; i < steps; ++i) {
      Step();
      if (random_() % 32 == 0) {
        log_.WaitForAll();
      }
      const BlockStoreStats stats = store_->Stats();
      ASSERT_LE(stats.buffers_size_bytes, options.buffers_size_bytes_max);
      ASSERT_LE(stats.cache_size_bytes, options.cache_size_bytes);
      ASSERT_LE(stats.device_reads_in_flight, options.device_depth);
      ASSERT_LE(stats.queued_fetches, options.pending_fetches_max);
    }
  }

  void CheckEnds() const {
    for (size_t i = 0; i < asked_.size(); ++i) {
      const FetchLog::End end = log_.Get(i);
      ASSERT_EQ(end.calls, 1);
      if (end.result.ok()) {
        // Not a matcher, which would be slow for each byte.
        const std::vector<uint8_t> text = blocks_->Text(asked_[i]);
        const ByteView bytes = (*end.result)->bytes();
        ASSERT_TRUE(
            std::equal(bytes.begin(), bytes.end(), text.begin(), text.end()))
            << "block " << asked_[i];
      } else {
        const absl::StatusCode code = end.result.status().code();
        ASSERT_TRUE(code == absl::StatusCode::kCancelled ||
                    code == absl::StatusCode::kDataLoss ||
                    code == absl::StatusCode::kUnavailable ||
                    code == absl::StatusCode::kResourceExhausted)
            << end.result.status();
      }
    }
  }

  uint64_t CountEnds(absl::StatusCode code) const {
    uint64_t count = 0;
    for (size_t i = 0; i < asked_.size(); ++i) {
      count += log_.Get(i).result.status().code() == code ? 1 : 0;
    }
    return count;
  }

  FetchLog& log() { return log_; }

  uint64_t fetches() const { return asked_.size(); }

  uint64_t lookup_hits() const { return lookup_hits_; }

 private:
  void Step() {
    const uint64_t dice = random_() % 16;
    if (dice < 9) {
      const uint64_t block = Draw();
      ids_.push_back(
          store_->Fetch(blocks_->Fetch(block, DrawClass()), Watch(block)));
    } else if (dice < 11) {
      std::vector<BlockStore::FetchItem> items;
      const uint64_t first = Draw();
      for (uint64_t i = first; i < std::min(first + 6, kStressBlocks); ++i) {
        items.push_back({blocks_->Fetch(i, DrawClass()), Watch(i)});
      }
      const auto ids = store_->FetchAll(std::move(items));
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    } else if (dice < 14 && !ids_.empty()) {
      // Usually one of the last few, which may still be queued.
      const uint64_t back = std::min<uint64_t>(1 + random_() % 8, ids_.size());
      store_->Cancel(ids_[ids_.size() - back]);
    } else {
      lookup_hits_ += store_->Lookup(blocks_->Key(Draw())) != nullptr ? 1 : 0;
    }
  }

  BlockStore::Done Watch(uint64_t block) {
    asked_.push_back(block);
    return log_.Watch();
  }

  uint64_t Draw() { return random_() % (1 + random_() % kStressBlocks); }

  FetchClass DrawClass() { return static_cast<FetchClass>(random_() % 3); }

  BlockStore* const store_;
  const TestBlocks* const blocks_;
  std::mt19937_64 random_;
  FetchLog log_;
  std::vector<uint64_t> asked_;
  std::vector<BlockStore::FetchId> ids_;
  uint64_t lookup_hits_ = 0;
};

BlockStoreOptions TightOptions() {
  return {.cache_size_bytes = uint64_t{40} * 8192,
          .buffers_size_bytes_max = 256 << 10,
          .pending_fetches_max = 100,
          .decode_threads = 2,
          .engine = BlockStoreOptions::Engine::kAuto,
          .device_depth = 3};
}

TEST(BlockStoreStressTest, EachFetchEndsOnceWhateverTheDeviceDoes) {
  TestBlocks blocks(kStressBlocks, kStressBlockSize);
  uint64_t recovered_blocks = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const BlockStoreOptions options = TightOptions();
    QUIRE_ASSERT_OK_AND_ASSIGN(auto store,
                               OpenChaos(options, seed, RandomFaults(seed)));
    std::deque<Client> clients;
    for (uint64_t t = 0; t < kThreads; ++t) {
      clients.emplace_back(store.get(), &blocks, seed * 100 + t);
    }
    InThreads([&](uint64_t t) { clients[t].Work(800, options); });
    uint64_t fetches = 0;
    uint64_t lookup_hits = 0;
    uint64_t cancelled = 0;
    uint64_t good = 0;
    for (Client& client : clients) {
      client.log().WaitForAll();
      client.CheckEnds();
      fetches += client.fetches();
      lookup_hits += client.lookup_hits();
      cancelled += client.CountEnds(absl::StatusCode::kCancelled);
      good += client.CountEnds(absl::StatusCode::kOk);
    }
    const BlockStoreStats stats = store->Stats();
    EXPECT_EQ(stats.cache_hits + stats.cache_misses, fetches + lookup_hits);
    EXPECT_EQ(stats.cancelled_fetches, cancelled);
    EXPECT_GT(stats.device_errors, 0);
    // The number withdrawn in time depends on the load of the machine.
    EXPECT_GT(good, 0);
    recovered_blocks += stats.recovered_blocks;
    EXPECT_EQ(stats.queued_fetches, 0);
    EXPECT_EQ(stats.device_reads_in_flight, 0);
    EXPECT_EQ(stats.buffers_size_bytes, 0);
  }
  EXPECT_GT(recovered_blocks, 0);
}

TEST(BlockStoreStressTest, EachBlockIsDecodedOnceHoweverManyAsk) {
  TestBlocks blocks(kStressBlocks, kStressBlockSize);
  QUIRE_ASSERT_OK_AND_ASSIGN(auto store,
                             OpenChaos({.decode_threads = 2}, 1, NoFaults()));
  FetchLog log;
  InThreads([&](uint64_t t) {
    std::mt19937_64 random(t);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < kStressBlocks; ++i) {
      order.push_back(i);
      order.push_back(i);
    }
    // Near each other, so that threads meet.
    for (size_t i = 0; i < order.size(); i += 20) {
      const auto first = order.begin() + static_cast<ptrdiff_t>(i);
      std::shuffle(first, first + 20, random);
    }
    for (const uint64_t block : order) {
      store->Fetch(blocks.Fetch(block), log.Watch());
    }
  });
  log.WaitForAll();
  for (uint64_t i = 0; i < kStressBlocks; ++i) {
    EXPECT_EQ(blocks.DecodeCount(i), 1);
  }
  for (uint64_t i = 0; i < kThreads * kStressBlocks * 2; ++i) {
    QUIRE_ASSERT_OK(log.Get(i).result);
  }
  const BlockStoreStats stats = store->Stats();
  EXPECT_EQ(stats.blocks_decoded, kStressBlocks);
  EXPECT_EQ(stats.cache_misses, kStressBlocks + stats.joined_fetches);
  EXPECT_EQ(stats.cache_hits + stats.cache_misses,
            kThreads * kStressBlocks * 2);
}

TEST(BlockStoreStressTest, RealEnginesServeManyThreads) {
  TestBlocks blocks(kStressBlocks, kStressBlockSize);
  for (const auto engine :
       {BlockStoreOptions::Engine::kAuto, BlockStoreOptions::Engine::kPread}) {
    BlockStoreOptions options = TightOptions();
    options.engine = engine;
    QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
    SCOPED_TRACE(store->engine_name());
    std::deque<Client> clients;
    for (uint64_t t = 0; t < kThreads; ++t) {
      clients.emplace_back(store.get(), &blocks, t);
    }
    InThreads([&](uint64_t t) { clients[t].Work(800, options); });
    for (Client& client : clients) {
      client.log().WaitForAll();
      client.CheckEnds();
      EXPECT_EQ(client.CountEnds(absl::StatusCode::kDataLoss), 0);
      EXPECT_EQ(client.CountEnds(absl::StatusCode::kUnavailable), 0);
    }
  }
}

TEST(BlockStoreStressTest, CanBeDestroyedAtAnyMoment) {
  TestBlocks blocks(kStressBlocks, kStressBlockSize);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        auto store, OpenChaos(TightOptions(), seed, RandomFaults(seed)));
    // Fetched again from a callback, also from the destructor's.
    FetchLog refetched;
    BlockStore* const raw = store.get();
    Client client(raw, &blocks, seed);
    client.Work(static_cast<int>(seed * 20), TightOptions());
    for (uint64_t i = 0; i < 50; ++i) {
      raw->Fetch(blocks.Fetch(i),
                 [&, i, done = refetched.Watch(),
                  again = client.log().ended()](const auto& end) {
                   if (!end.ok() && again % 2 == 0) {
                     raw->Fetch(blocks.Fetch(i), done);
                   } else {
                     done(end);
                   }
                 });
    }
    store.reset();
    EXPECT_EQ(client.log().ended(), client.fetches());
    EXPECT_EQ(refetched.ended(), 50);
    client.CheckEnds();
  }
}

}  // namespace
}  // namespace quire
