// SPDX-License-Identifier: GPL-3.0-or-later
//
// How fast the blocks of a real archive come out of storage, without gRPC, and
// how fast they can be decoded at all: the two that loadtest/device_bench.py
// compares with what the disk can do. Nothing is cached but by the kernel, and
// with --direct-io not even there.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/file_io.h"
#include "server/service/archive_block_decoder.h"
#include "server/storage/block_store.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

// Decoding holds all stored blocks in memory.
constexpr uint64_t kStoredSizeBytesMax = uint64_t{4} << 30;
// What a scan asks for at once.
constexpr uint64_t kScanStepSizeBytes = 1 << 20;

struct Arguments {
  std::string archive;
  std::string what = "storage";
  std::string mode = "random";
  std::string range_size = "16KiB";
  bool direct_io = false;
  uint32_t in_flight = 64;
  uint32_t device_depth = 32;
  double seconds = 3;
  uint64_t seed = 1;
};

// Of one thread, or of one run.
struct Counts {
  uint64_t requests = 0;
  uint64_t blocks = 0;
  uint64_t text_size_bytes = 0;
};

// What to read: the n-th request for each n. Thread-safe.
class Requests {
 public:
  Requests(const Archive& archive, bool in_order, uint64_t size_bytes,
           uint64_t seed)
      : archive_(archive),
        in_order_(in_order),
        size_bytes_(std::min(size_bytes, archive.info().size_bytes)),
        seed_(seed) {}

  // A scan begins again at its end.
  std::vector<BlockSlice> Next() {
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t total_size_bytes = archive_.info().size_bytes;
    uint64_t offset = 0;
    if (in_order_) {
      const uint64_t steps = (total_size_bytes + size_bytes_ - 1) / size_bytes_;
      offset = number % steps * size_bytes_;
    } else {
      offset = Mix(seed_ + number) % (total_size_bytes - size_bytes_ + 1);
    }
    return archive_
        .Plan({LogicalOffset{offset},
               std::min(size_bytes_, total_size_bytes - offset)})
        .value();
  }

 private:
  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
  static uint64_t Mix(uint64_t number) {
    uint64_t x = number * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  const Archive& archive_;
  const bool in_order_;
  const uint64_t size_bytes_;
  const uint64_t seed_;
  std::atomic<uint64_t> next_ = 0;
};

uint64_t TextSizeBytes(const std::vector<BlockSlice>& slices) {
  uint64_t size_bytes = 0;
  for (const BlockSlice& slice : slices) {
    size_bytes += slice.size_bytes;
  }
  return size_bytes;
}

// Keeps a number of requests in flight; each that ends begins the next, on the
// decode pool's thread, as the service does. Thread-safe.
class ClosedLoop {
 public:
  ClosedLoop(std::shared_ptr<const Archive> archive, Requests& requests,
             FetchClass fetch_class, BlockStore& store, Clock::time_point end)
      : archive_(std::move(archive)),
        decoder_(MakeTextDecoder(
            archive_, std::make_shared<DamageLog>("bench", nullptr), nullptr)),
        requests_(requests),
        fetch_class_(fetch_class),
        store_(store),
        end_(end) {}

  // Returns when all requests that were begun have ended.
  absl::StatusOr<Counts> Run(uint32_t in_flight) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      in_flight_ = in_flight;
    }
    for (uint32_t i = 0; i < in_flight; ++i) {
      Begin();
    }
    MutexLock lock(&mutex_);
    while (in_flight_ > 0) {
      none_left_.Wait(&mutex_);
    }
    QUIRE_RETURN_IF_ERROR(status_);
    return counts_;
  }

 private:
  struct Request {
    std::vector<BlockSlice> slices;
    std::atomic<size_t> left = 0;
  };

  void Begin() {
    auto request = std::make_shared<Request>();
    request->slices = requests_.Next();
    request->left = request->slices.size();
    std::vector<BlockStore::FetchItem> items;
    for (const BlockSlice& slice : request->slices) {
      BlockFetch fetch;
      fetch.key = {.source_id = 1, .block = slice.block};
      fetch.extent = archive_->BlockExtent(slice.block);
      fetch.raw_size_bytes = archive_->BlockSizeBytes(slice.block);
      fetch.fetch_class = fetch_class_;
      fetch.decoder = decoder_;
      items.push_back(
          {std::move(fetch),
           [this, request](const absl::StatusOr<BlockStore::BlockPtr>& block) {
             EndBlock(*request, block.status());
           }});
    }
    store_.FetchAll(std::move(items));
  }

  void EndBlock(Request& request, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      status_.Update(status);
    }
    if (request.left.fetch_sub(1) != 1) {
      return;
    }
    {
      MutexLock lock(&mutex_);
      ++counts_.requests;
      counts_.blocks += request.slices.size();
      counts_.text_size_bytes += TextSizeBytes(request.slices);
      if (!status_.ok() || Clock::now() >= end_) {
        if (--in_flight_ == 0) {
          none_left_.NotifyAll();
        }
        return;
      }
    }
    Begin();
  }

  const std::shared_ptr<const Archive> archive_;
  const std::shared_ptr<const BlockDecoder> decoder_;
  Requests& requests_;
  const FetchClass fetch_class_;
  BlockStore& store_;
  const Clock::time_point end_;
  Mutex mutex_;
  CondVar none_left_;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// All blocks of an archive as they are stored, in memory.
class StoredBlocks {
 public:
  static absl::StatusOr<StoredBlocks> Load(const Archive& archive) {
    StoredBlocks blocks;
    if (archive.info().stored_size_bytes > kStoredSizeBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the archive has ", archive.info().stored_size_bytes,
          " bytes; at most ", kStoredSizeBytesMax, " are held in memory"));
    }
    for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
      const uint64_t count = archive.SegmentBlockCount(s);
      const Extent first = count > 0 ? archive.BlockExtent({s, 0}) : Extent();
      const Extent last =
          count > 0 ? archive.BlockExtent({s, count - 1}) : Extent();
      blocks.segments_.push_back(
          {first.offset.value,
           std::vector<uint8_t>(last.offset.value + last.size_bytes -
                                first.offset.value)});
      QUIRE_RETURN_IF_ERROR(ReadExactly(first.fd, first.offset.value,
                                        blocks.segments_.back().bytes,
                                        archive.path()));
    }
    return blocks;
  }

  ByteView Get(BlockAddress block, const Extent& extent) const {
    const Segment& segment = segments_[block.segment_index];
    return ByteView(segment.bytes)
        .subspan(extent.offset.value - segment.start, extent.size_bytes);
  }

 private:
  struct Segment {
    uint64_t start = 0;
    std::vector<uint8_t> bytes;
  };

  std::vector<Segment> segments_;
};

absl::StatusOr<Counts> DecodeOnOneThread(const Archive& archive,
                                         const StoredBlocks& stored,
                                         Requests& requests,
                                         Clock::time_point end) {
  Counts counts;
  const auto scratch = archive.codec().NewScratch();
  std::vector<uint8_t> raw(archive.info().block_size_bytes);
  while (Clock::now() < end) {
    const std::vector<BlockSlice> slices = requests.Next();
    for (const BlockSlice& slice : slices) {
      QUIRE_RETURN_IF_ERROR(archive.DecodeBlock(
          slice.block,
          stored.Get(slice.block, archive.BlockExtent(slice.block)),
          MutableByteView(raw).first(archive.BlockSizeBytes(slice.block)),
          *scratch));
    }
    ++counts.requests;
    counts.blocks += slices.size();
    counts.text_size_bytes += TextSizeBytes(slices);
  }
  return counts;
}

absl::StatusOr<Counts> Decode(const Archive& archive,
                              const StoredBlocks& stored, Requests& requests,
                              Clock::time_point end) {
  std::vector<absl::StatusOr<Counts>> results(
      std::max(1U, std::thread::hardware_concurrency()), Counts());
  std::vector<std::thread> threads;
  for (absl::StatusOr<Counts>& result : results) {
    threads.emplace_back(
        [&] { result = DecodeOnOneThread(archive, stored, requests, end); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  Counts sum;
  for (const absl::StatusOr<Counts>& result : results) {
    QUIRE_RETURN_IF_ERROR(result.status());
    sum.requests += result->requests;
    sum.blocks += result->blocks;
    sum.text_size_bytes += result->text_size_bytes;
  }
  return sum;
}

BlockStoreOptions StoreOptions(const Arguments& arguments) {
  BlockStoreOptions options;
  options.cache_size_bytes = 0;
  options.device_depth = arguments.device_depth;
  options.direct_io = arguments.direct_io;
  return options;
}

void Print(const Counts& counts, const BlockStoreStats& stats, double seconds) {
  absl::PrintF(
      "{\"requests\": %d, \"blocks\": %d, \"text_bytes\": %d, \"seconds\": "
      "%.6f, \"device_reads\": %d, \"device_read_bytes\": %d}\n",
      counts.requests, counts.blocks, counts.text_size_bytes, seconds,
      stats.device_reads, stats.device_read_bytes);
}

absl::Status Run(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const Archive> archive,
      Archive::Open(
          arguments.archive,
          {.direct_io = arguments.direct_io ? DirectIo::kOn : DirectIo::kOff}));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t range_size_bytes,
                         ParseByteSize(arguments.range_size));
  if (archive->info().size_bytes == 0 || range_size_bytes == 0) {
    return absl::InvalidArgumentError("there is nothing to read");
  }
  const bool scan = arguments.mode == "scan";
  Requests requests(*archive, scan,
                    scan ? kScanStepSizeBytes : range_size_bytes,
                    arguments.seed);
  const auto duration = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(arguments.seconds));
  Counts counts;
  BlockStoreStats stats;
  Clock::time_point start;
  if (arguments.what == "decode") {
    QUIRE_ASSIGN_OR_RETURN(const StoredBlocks stored,
                           StoredBlocks::Load(*archive));
    start = Clock::now();
    QUIRE_ASSIGN_OR_RETURN(
        counts, Decode(*archive, stored, requests, start + duration));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<BlockStore> store,
                           BlockStore::Create(StoreOptions(arguments)));
    start = Clock::now();
    ClosedLoop loop(archive, requests,
                    scan ? FetchClass::kScan : FetchClass::kInteractive, *store,
                    start + duration);
    QUIRE_ASSIGN_OR_RETURN(counts, loop.Run(arguments.in_flight));
    stats = store->Stats();
  }
  Print(counts, stats,
        std::chrono::duration<double>(Clock::now() - start).count());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Reads an archive's blocks for some seconds and prints how many came, as "
      "JSON.",
      "archive_bench");
  Arguments arguments;
  app.add_option("ARCHIVE", arguments.archive)->required();
  app.add_option("--what", arguments.what,
                 "storage (read and decode) or decode (out of memory)")
      ->check(CLI::IsMember({"storage", "decode"}))
      ->capture_default_str();
  app.add_option("--mode", arguments.mode,
                 "random (unaligned ranges) or scan (all, in order)")
      ->check(CLI::IsMember({"random", "scan"}))
      ->capture_default_str();
  app.add_option("--range-size", arguments.range_size)->capture_default_str();
  app.add_flag("--direct-io", arguments.direct_io, "past the page cache");
  app.add_option("--in-flight", arguments.in_flight, "requests")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--device-depth", arguments.device_depth)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds)->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const absl::Status status = Run(arguments); !status.ok()) {
    std::cerr << "archive_bench: " << status << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  try {
    return quire::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "archive_bench: " << error.what() << "\n";
    return 1;
  }
}
