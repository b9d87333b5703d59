// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests that the limits hold for the process, not only for the store's own
// counters. Measures resident memory, so it is not run under sanitizers.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"
#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

uint64_t AnonymousResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "RssAnon:") {
      uint64_t kib = 0;
      status >> kib;
      return kib * kKiB;
    }
  }
  return 0;
}

TEST(BlockStoreMemoryTest, ResidentMemoryStaysWithinTheBounds) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  // Sizes of different classes, which cannot reuse each other's memory.
  std::vector<std::unique_ptr<TestBlocks>> archives;
  const std::vector<uint32_t> raw_sizes = {5000, 16 << 10, 40000, 64 << 10,
                                           150000};
  for (size_t i = 0; i < raw_sizes.size(); ++i) {
    archives.push_back(std::make_unique<TestBlocks>(
        (uint64_t{8} << 20) / raw_sizes[i], raw_sizes[i], i));
  }
  BlockStoreOptions options;
  options.cache_size_bytes = 12 * kMiB;
  options.buffers_size_bytes_max = 4 * kMiB;
  // The same on any machine: each has a stack and an arena of malloc.
  options.decode_threads = 2;
  const uint64_t before = AnonymousResidentBytes();
  ASSERT_GT(before, 0);
  uint64_t most = 0;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
    std::mt19937_64 random(kSeed);
    for (int round = 0; round < 200; ++round) {
      // One archive is read more than others, each for a while.
      const size_t favourite = static_cast<size_t>(round) / 10 % 5;
      FetchLog log;
      for (int i = 0; i < 64; ++i) {
        const TestBlocks& blocks =
            *archives[random() % 4 == 0 ? random() % 5 : favourite];
        store->Fetch(blocks.Fetch(random() % blocks.count()),
                     [done = log.Watch()](auto result) {
                       // Without the block: blocks that callers hold are
                       // outside the limits.
                       done(result.ok() ? absl::StatusOr<BlockStore::BlockPtr>(
                                              BlockStore::BlockPtr())
                                        : std::move(result));
                     });
      }
      log.WaitForAll();
      for (size_t i = 0; i < 64; ++i) {
        QUIRE_ASSERT_OK(log.Get(i).result);
      }
      most = std::max(most, AnonymousResidentBytes());
    }
    EXPECT_GT(store->Stats().cache_evictions, 1000);
    EXPECT_GT(store->Stats().cache_size_bytes, 10 * kMiB);
  }
  // Stacks of threads, overhead of malloc, hash tables.
  constexpr uint64_t kOtherBytes = 2 * kMiB;
  EXPECT_LE(most - before, options.cache_size_bytes +
                               options.buffers_size_bytes_max + kOtherBytes);
}

}  // namespace
}  // namespace quire
