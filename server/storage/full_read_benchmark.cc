// SPDX-License-Identifier: GPL-3.0-or-later
//
// FULL: a file of 128 MiB in blocks of 64 KiB, read through the store as a scan
// of the service reads it (chunks fetched ahead within a window, taken in
// order), compared with the two things that bound it: reading the file in a row
// and "decoding" alone, which here is a checksum and a copy. O_DIRECT where the
// file system has it; the label says. For figures, in one run:
//
//   full_read_benchmark --benchmark_repetitions=3
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/mutex.h"
#include "server/storage/block_store.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSizeBytes = 64 * kKiB;
constexpr uint64_t kBlocks = 2048;
constexpr uint64_t kFileSizeBytes = kBlocks * kBlockSizeBytes;
constexpr uint64_t kReadSizeBytes = kMiB;
constexpr uint32_t kThreads = 2;

class CheckingDecoder : public BlockDecoder {
 public:
  absl::Status Decode(BlockAddress /*block*/, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    benchmark::DoNotOptimize(Checksum64(stored));
    std::copy(stored.begin(), stored.end(), parts[0].text.begin());
    return absl::OkStatus();
  }
};

struct File {
  int fd = -1;
  bool direct = false;
};

File OpenFile() {
  std::string path = "/var/tmp/quire_benchmark_XXXXXX";
  int fd = mkstemp(path.data());
  QUIRE_CHECK(fd >= 0, "cannot write the file to read: ",
              std::generic_category().message(errno));
  const std::vector<uint8_t> zeroes(kReadSizeBytes, 'q');
  for (uint64_t offset = 0; offset < kFileSizeBytes; offset += kReadSizeBytes) {
    QUIRE_CHECK(pwrite(fd, zeroes.data(), zeroes.size(),
                       static_cast<off_t>(offset)) >= 0,
                "cannot write the file to read: ",
                std::generic_category().message(errno));
  }
  fsync(fd);
  const int direct_fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  unlink(path.c_str());
  return direct_fd >= 0 ? File{direct_fd, true} : File{fd, false};
}

const File& TheFile() {
  static const File file = OpenFile();
  return file;
}

void Label(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(kFileSizeBytes));
  state.SetLabel(TheFile().direct ? "O_DIRECT" : "page cache");
}

// Four readers, each of every fourth MiB: what the device gives in a row.
void DiskAlone(benchmark::State& state) {
  constexpr uint64_t kReaders = 4;
  for ([[maybe_unused]] auto _ : state) {
    std::vector<std::thread> readers;
    for (uint64_t r = 0; r < kReaders; ++r) {
      readers.emplace_back([r] {
        void* const buffer = std::aligned_alloc(4096, kReadSizeBytes);
        for (uint64_t at = r * kReadSizeBytes; at < kFileSizeBytes;
             at += kReaders * kReadSizeBytes) {
          benchmark::DoNotOptimize(pread(TheFile().fd, buffer, kReadSizeBytes,
                                         static_cast<off_t>(at)));
        }
        std::free(buffer);
      });
    }
    for (std::thread& reader : readers) {
      reader.join();
    }
  }
  Label(state);
}

BENCHMARK(DiskAlone)->UseRealTime()->Unit(benchmark::kMillisecond);

void DecodeAlone(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        const CheckingDecoder decoder;
        const std::vector<uint8_t> stored(kReadSizeBytes, 'q');
        std::vector<uint8_t> raw(kReadSizeBytes);
        for (uint64_t i = 0; i < kBlocks / kThreads; ++i) {
          const size_t at = i * kBlockSizeBytes % kReadSizeBytes;
          (void)decoder.Decode(
              {}, ByteView(stored).subspan(at, kBlockSizeBytes),
              MutableByteView(raw).subspan(at, kBlockSizeBytes));
          benchmark::ClobberMemory();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Label(state);
}

BENCHMARK(DecodeAlone)->UseRealTime()->Unit(benchmark::kMillisecond);

// Chunks in flight, taken in order by the thread that runs this.
class Scan {
 public:
  Scan(BlockStore& store, uint64_t chunk_blocks)
      : store_(store), chunk_blocks_(chunk_blocks) {}

  void StartChunk() {
    auto chunk = std::make_shared<Chunk>();
    chunk->left = chunk_blocks_;
    chunk->blocks.resize(chunk_blocks_);
    chunks_.push_back(chunk);
    std::vector<BlockStore::FetchItem> items;
    for (uint64_t i = 0; i < chunk_blocks_; ++i) {
      items.push_back(
          {FetchOf(next_block_++),
           [this, chunk, i](absl::StatusOr<BlockStore::BlockPtr> b) {
             MutexLock lock(&mutex_);
             chunk->blocks[i] = std::move(b).value();
             if (--chunk->left == 0) {
               changed_.NotifyAll();
             }
           }});
    }
    store_.FetchAll(std::move(items));
  }

  void TakeChunk() {
    const std::shared_ptr<Chunk> chunk = chunks_.front();
    chunks_.pop_front();
    MutexLock lock(&mutex_);
    while (chunk->left > 0) {
      changed_.Wait(&mutex_);
    }
  }

  bool has_more() const { return next_block_ < kBlocks; }

  bool has_chunks() const { return !chunks_.empty(); }

 private:
  struct Chunk {
    uint64_t left = 0;
    std::vector<BlockStore::BlockPtr> blocks;
  };

  static BlockFetch FetchOf(uint64_t block_index) {
    static const auto decoder = std::make_shared<CheckingDecoder>();
    return {.key = {.source_id = 1, .block = {.block_index = block_index}},
            .extent = {.fd = TheFile().fd,
                       .offset = FileOffset{block_index * kBlockSizeBytes},
                       .size_bytes = kBlockSizeBytes},
            .raw_size_bytes = kBlockSizeBytes,
            .fetch_class = FetchClass::kScan,
            .decoder = decoder};
  }

  BlockStore& store_;
  const uint64_t chunk_blocks_;
  uint64_t next_block_ = 0;
  std::deque<std::shared_ptr<Chunk>> chunks_;
  Mutex mutex_;
  CondVar changed_;
};

// Arguments: KiB of a chunk; KiB of the window. The service's are 256 and from
// 2,560 on, as its memory has it.
void FullThroughTheStore(benchmark::State& state) {
  BlockStoreOptions options;
  options.cache_size_bytes = 0;
  options.decode_threads = kThreads;
  const auto store = BlockStore::Create(options).value();
  const auto chunk_blocks =
      static_cast<uint64_t>(state.range(0)) * kKiB / kBlockSizeBytes;
  const int64_t window_chunks = state.range(1) / state.range(0);
  for ([[maybe_unused]] auto _ : state) {
    Scan scan(*store, chunk_blocks);
    for (int64_t i = 0; i < window_chunks; ++i) {
      scan.StartChunk();
    }
    while (scan.has_chunks()) {
      scan.TakeChunk();
      if (scan.has_more()) {
        scan.StartChunk();
      }
    }
  }
  Label(state);
  const BlockStoreStats stats = store->Stats();
  state.counters["kib_per_read"] =
      static_cast<double>(stats.device_read_bytes) / kKiB /
      static_cast<double>(stats.device_reads);
}

BENCHMARK(FullThroughTheStore)
    ->ArgsProduct({{256, 1024}, {2048, 4096, 16384}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quire
