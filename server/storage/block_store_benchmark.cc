// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the store costs above the device: blocks out of its cache, and blocks of
// 8 KiB out of the page cache compared with plain pread of the same bytes.
// "Decoding" copies, so that nothing else is measured.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/mutex.h"
#include "server/storage/block_store.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSizeBytes = 8 * kKiB;
constexpr uint64_t kBlocks = 8192;

class CopyingDecoder : public BlockDecoder {
 public:
  absl::Status Decode(BlockAddress /*block*/, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    std::copy(stored.begin(), stored.end(), parts[0].text.begin());
    return absl::OkStatus();
  }
};

// 64 MiB that the page cache holds, since they were just written.
int OpenFile() {
  std::string path =
      std::filesystem::temp_directory_path() / "quire_benchmark_XXXXXX";
  const int fd = mkstemp(path.data());
  QUIRE_CHECK(fd >= 0, "cannot write the file to read: ",
              std::generic_category().message(errno));
  unlink(path.c_str());
  std::vector<uint8_t> block(kBlockSizeBytes);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    std::fill(block.begin(), block.end(), static_cast<uint8_t>(i));
    QUIRE_CHECK(pwrite(fd, block.data(), block.size(),
                       static_cast<off_t>(i * kBlockSizeBytes)) >= 0,
                "cannot write the file to read: ",
                std::generic_category().message(errno));
  }
  return fd;
}

int File() {
  static const int fd = OpenFile();
  return fd;
}

BlockFetch FetchOf(uint64_t block_index) {
  static const auto decoder = std::make_shared<CopyingDecoder>();
  return {.key = {.source_id = 1, .block = {.block_index = block_index}},
          .extent = {.fd = File(),
                     .offset = FileOffset{block_index * kBlockSizeBytes},
                     .size_bytes = kBlockSizeBytes},
          .raw_size_bytes = kBlockSizeBytes,
          .fetch_class = FetchClass::kInteractive,
          .decoder = decoder};
}

std::vector<uint64_t> ShuffledBlocks(uint64_t seed) {
  std::vector<uint64_t> order(kBlocks);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    order[i] = i;
  }
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  return order;
}

// Counts fetches down to zero.
class Countdown {
 public:
  explicit Countdown(uint64_t left) : left_(left) {}

  void Done() {
    MutexLock lock(&mutex_);
    if (--left_ == 0) {
      zero_.NotifyAll();
    }
  }

  void Wait() {
    MutexLock lock(&mutex_);
    while (left_ > 0) {
      zero_.Wait(&mutex_);
    }
  }

 private:
  Mutex mutex_;
  CondVar zero_;
  uint64_t left_ ABSL_GUARDED_BY(mutex_);
};

void PlainPread(benchmark::State& state) {
  const std::vector<uint64_t> order =
      ShuffledBlocks(static_cast<uint64_t>(state.thread_index()));
  std::vector<uint8_t> buffer(kBlockSizeBytes);
  uint64_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    const uint64_t offset = order[next++ % kBlocks] * kBlockSizeBytes;
    benchmark::DoNotOptimize(pread(File(), buffer.data(), buffer.size(),
                                   static_cast<off_t>(offset)));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(PlainPread)->ThreadRange(1, 2)->UseRealTime();

// All blocks in its cache.
BlockStore& FilledStore() {
  static const std::unique_ptr<BlockStore> filled = [] {
    auto store = BlockStore::Create({}).value();
    Countdown left(kBlocks);
    for (uint64_t i = 0; i < kBlocks; ++i) {
      store->Fetch(FetchOf(i), [&left](const auto&) { left.Done(); });
    }
    left.Wait();
    return store;
  }();
  return *filled;
}

void CachedLookup(benchmark::State& state) {
  BlockStore& store = FilledStore();
  const std::vector<uint64_t> order =
      ShuffledBlocks(static_cast<uint64_t>(state.thread_index()));
  uint64_t next = 0;
  uint64_t found = 0;
  for ([[maybe_unused]] auto _ : state) {
    const BlockKey key{.source_id = 1,
                       .block = {.block_index = order[next++ % kBlocks]}};
    found += store.Lookup(key) != nullptr ? 1 : 0;
  }
  if (found != static_cast<uint64_t>(state.iterations())) {
    state.SkipWithError("a block was not in the cache");
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(CachedLookup)->ThreadRange(1, 4)->UseRealTime();

// Arguments: 0 io_uring if it works, 1 pread; fetches in flight together. They
// lie 1 MiB apart or more, so that none are joined.
void ColdFetch(benchmark::State& state) {
  BlockStoreOptions options;
  options.cache_size_bytes = 0;
  options.engine = state.range(0) == 0 ? BlockStoreOptions::Engine::kAuto
                                       : BlockStoreOptions::Engine::kPread;
  auto store = BlockStore::Create(options);
  const auto together = static_cast<uint64_t>(state.range(1));
  state.SetLabel((*store)->engine_name());
  uint64_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    Countdown left(together);
    for (uint64_t i = 0; i < together; ++i) {
      const uint64_t block_index = (i * (kBlocks / 64) + next * 37) % kBlocks;
      (*store)->Fetch(FetchOf(block_index),
                      [&left](const auto&) { left.Done(); });
    }
    ++next;
    left.Wait();
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
  const BlockStoreStats stats = (*store)->Stats();
  state.counters["blocks_per_read"] =
      static_cast<double>(stats.blocks_decoded) /
      static_cast<double>(stats.device_reads);
}

BENCHMARK(ColdFetch)->ArgsProduct({{0, 1}, {1, 8, 64}})->UseRealTime();

// 64 neighbours, asked for in one step.
void ColdFetchOfNeighbours(benchmark::State& state) {
  BlockStoreOptions options;
  options.cache_size_bytes = 0;
  auto store = BlockStore::Create(options);
  uint64_t first = 0;
  for ([[maybe_unused]] auto _ : state) {
    Countdown left(64);
    std::vector<BlockStore::FetchItem> items;
    for (uint64_t i = 0; i < 64; ++i) {
      items.push_back({FetchOf((first + i) % kBlocks),
                       [&left](const auto&) { left.Done(); }});
    }
    (*store)->FetchAll(std::move(items));
    first += 64;
    left.Wait();
  }
  state.SetItemsProcessed(state.iterations() * 64);
}

BENCHMARK(ColdFetchOfNeighbours)->UseRealTime();

}  // namespace
}  // namespace quire
