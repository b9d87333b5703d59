// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage_dictionary.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/status_macros.h"
#include "codecs/rlz/announced_text.h"
#include "codecs/rlz/coverage/block_cost.h"
#include "codecs/rlz/coverage/kmer_sampler.h"
#include "codecs/rlz/coverage/repeat_table.h"
#include "codecs/rlz/coverage/segment_pool.h"
#include "codecs/rlz/uniform_dictionary.h"

namespace quire {
namespace {

constexpr uint64_t kBlockSizeBytesLeast = 16 << 10;
constexpr uint64_t kBlockSizeBytesMost = 64 << 10;
// A repetition that costs less than this is practically free.
constexpr uint32_t kWorthBitsMin = 8;
// Number of items by which prefetching is ahead.
constexpr size_t kAheadCount = 24;

constexpr uint32_t kIntervalMin = 32;
// Up to this size the interval is constant; above, it grows with the
// dictionary.
constexpr uint64_t kFineDictionarySizeBytesMax = uint64_t{256} << 20;

struct Sizing {
  uint32_t interval = kIntervalMin;
  // Entries of the table.
  uint64_t repeat_count = 0;
  uint64_t first_count = 0;
};

// The dictionary has space for dictionary_size / interval k-mers. Eight times
// as many compete for it; four times as many again have been seen once, or as
// many as there are.
Sizing SizingFor(uint64_t dictionary_size, uint64_t text_size) {
  Sizing sizing;
  while (dictionary_size / sizing.interval >
         kFineDictionarySizeBytesMax / kIntervalMin) {
    sizing.interval *= 2;
  }
  const uint64_t kmer_count = text_size / sizing.interval;
  const uint64_t wanted = dictionary_size / sizing.interval * 8;
  sizing.repeat_count = std::max(std::min(wanted, kmer_count), uint64_t{1024});
  sizing.first_count =
      std::max(std::min(wanted * 4, kmer_count), uint64_t{1024});
  return sizing;
}

// Blocks of each thread that are sampled before their k-mers are counted or
// collected, in order.
constexpr size_t kBlocksPerThread = 8;

// One thread samples each block at once.
size_t BlockCountFor(uint32_t threads) {
  return threads > 1 ? threads * kBlocksPerThread : 1;
}

// A block and its k-mers.
struct SampledBlock {
  SampledBlock(size_t block_size, uint32_t interval) {
    text.reserve(block_size);
    kmers.reserve(SampledKmerCountMax(block_size, interval));
    bits.reserve(kmers.capacity());
  }

  static size_t MemoryBytesFor(size_t block_size, uint32_t interval) {
    return sizeof(SampledBlock) + block_size +
           SampledKmerCountMax(block_size, interval) *
               (sizeof(SampledKmer) + sizeof(uint32_t));
  }

  std::vector<uint8_t> text;
  std::vector<SampledKmer> kmers;
  // The cost of each k-mer, in the first pass.
  std::vector<uint32_t> bits;
};

class CoverageDictionaryBuilder final : public DictionaryBuilder {
 public:
  CoverageDictionaryBuilder(uint64_t dictionary_size, size_t block_size,
                            uint32_t worth_bits_min, const Workers& workers,
                            uint64_t text_size, const Sizing& sizing)
      : dictionary_size_(dictionary_size),
        block_size_(block_size),
        text_(text_size),
        sizing_(sizing),
        workers_(workers),
        table_(sizing.repeat_count, sizing.first_count),
        pool_(dictionary_size, block_size, sizing.interval, worth_bits_min,
              &table_) {
    costs_.reserve(workers.thread_count);
    for (uint32_t i = 0; i < workers.thread_count; ++i) {
      costs_.emplace_back(block_size);
    }
    const size_t block_count = BlockCountFor(workers.thread_count);
    blocks_.reserve(block_count);
    for (size_t i = 0; i < block_count; ++i) {
      blocks_.emplace_back(block_size, sizing.interval);
    }
  }

  int pass_count() const override { return 2; }

  size_t MemoryBytesMax() const override {
    return sizeof(*this) +
           blocks_.size() *
               SampledBlock::MemoryBytesFor(block_size_, sizing_.interval) +
           costs_.size() * BlockCost::MemoryBytesFor(block_size_) +
           RepeatTable::MemoryBytesFor(sizing_.repeat_count,
                                       sizing_.first_count) +
           SegmentPool::MemoryBytesFor(dictionary_size_, block_size_,
                                       sizing_.interval);
  }

  absl::Status Add(ByteView piece) override {
    QUIRE_RETURN_IF_ERROR(text_.Add(piece.size()));
    while (!piece.empty()) {
      std::vector<uint8_t>& text = blocks_[full_count_].text;
      const size_t size = std::min(piece.size(), block_size_ - text.size());
      const ByteView part = piece.first(size);
      text.insert(text.end(), part.begin(), part.end());
      piece = piece.subspan(size);
      if (text.size() == block_size_ && ++full_count_ == blocks_.size()) {
        EndBlocks();
      }
    }
    return absl::OkStatus();
  }

  absl::Status FinishPass() override {
    QUIRE_RETURN_IF_ERROR(text_.FinishPass());
    // The last block may not be full.
    ++full_count_;
    EndBlocks();
    is_counting_ = false;
    return absl::OkStatus();
  }

  std::string Take() override { return pool_.Take(); }

 private:
  // Counts or collects the k-mers of the full blocks, and empties these.
  void EndBlocks() {
    const std::span<SampledBlock> blocks =
        std::span(blocks_).first(std::exchange(full_count_, 0));
    std::atomic<size_t> thread_count = 0;
    workers_.run(blocks.size(), [&](const NextNumber& next) {
      BlockCost& cost = costs_[thread_count++];
      while (const std::optional<uint64_t> i = next()) {
        Sample(blocks[*i], cost);
      }
    });
    for (SampledBlock& block : blocks) {
      if (is_counting_) {
        Count(block);
      } else {
        pool_.Add(block.text, block.kmers);
      }
      block.text.clear();
    }
  }

  void Sample(SampledBlock& block, BlockCost& cost) const {
    SampleKmers(block.text, sizing_.interval, block.kmers);
    if (!is_counting_) {
      return;
    }
    cost.Estimate(block.text);
    block.bits.clear();
    for (const SampledKmer& kmer : block.kmers) {
      block.bits.push_back(cost.Bits(kmer.end - kKmerSizeBytes, kmer.end));
    }
  }

  void Count(const SampledBlock& block) {
    const std::vector<SampledKmer>& kmers = block.kmers;
    for (size_t i = 0; i < kmers.size(); ++i) {
      if (i + kAheadCount < kmers.size()) {
        table_.PrefetchAdd(kmers[i + kAheadCount].hash);
      }
      if (block.bits[i] >= kWorthBitsMin) {
        table_.Add(kmers[i].hash, block.bits[i]);
      }
    }
  }

  const uint64_t dictionary_size_;
  const size_t block_size_;
  AnnouncedText text_;
  const Sizing sizing_;
  const Workers workers_;
  bool is_counting_ = true;
  std::vector<SampledBlock> blocks_;
  // Blocks before this one are full; the others, from the next on, are empty.
  size_t full_count_ = 0;
  // One for each thread.
  std::vector<BlockCost> costs_;
  RepeatTable table_;
  SegmentPool pool_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DictionaryBuilder>>
MakeCoverageDictionaryBuilder(const CoverageDictionaryOptions& options,
                              uint64_t text_size_bytes) {
  if (options.worth_bits_min == 0) {
    return absl::InvalidArgumentError(
        "the least worth of dictionary text must be at least 1 bit, got 0");
  }
  // Checks the size too.
  if (options.dictionary_size_bytes > kDictionarySizeBytesMax ||
      options.dictionary_size_bytes >= text_size_bytes) {
    return MakeUniformDictionaryBuilder(
        {.dictionary_size_bytes = options.dictionary_size_bytes},
        text_size_bytes);
  }
  const Sizing sizing =
      SizingFor(options.dictionary_size_bytes, text_size_bytes);
  return std::make_unique<CoverageDictionaryBuilder>(
      options.dictionary_size_bytes,
      static_cast<size_t>(std::clamp(
          options.block_size_bytes, kBlockSizeBytesLeast, kBlockSizeBytesMost)),
      options.worth_bits_min, options.workers, text_size_bytes, sizing);
}

}  // namespace quire
