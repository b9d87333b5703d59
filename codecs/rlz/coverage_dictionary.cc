// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage_dictionary.h"

#include <algorithm>
#include <string>
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

class CoverageDictionaryBuilder final : public DictionaryBuilder {
 public:
  CoverageDictionaryBuilder(uint64_t dictionary_size, size_t block_size,
                            uint32_t worth_bits_min, uint64_t text_size,
                            const Sizing& sizing)
      : dictionary_size_(dictionary_size),
        block_size_(block_size),
        text_(text_size),
        sizing_(sizing),
        cost_(block_size),
        table_(sizing.repeat_count, sizing.first_count),
        pool_(dictionary_size, block_size, sizing.interval, worth_bits_min,
              &table_) {
    block_.reserve(block_size);
    kmers_.reserve(SampledKmerCountMax(block_size, sizing.interval));
  }

  int pass_count() const override { return 2; }

  size_t MemoryBytesMax() const override {
    return sizeof(*this) + block_size_ +
           SampledKmerCountMax(block_size_, sizing_.interval) *
               sizeof(SampledKmer) +
           BlockCost::MemoryBytesFor(block_size_) +
           RepeatTable::MemoryBytesFor(sizing_.repeat_count,
                                       sizing_.first_count) +
           SegmentPool::MemoryBytesFor(dictionary_size_, block_size_,
                                       sizing_.interval);
  }

  absl::Status Add(ByteView piece) override {
    QUIRE_RETURN_IF_ERROR(text_.Add(piece.size()));
    while (!piece.empty()) {
      const size_t size = std::min(piece.size(), block_size_ - block_.size());
      const ByteView part = piece.first(size);
      block_.insert(block_.end(), part.begin(), part.end());
      piece = piece.subspan(size);
      if (block_.size() == block_size_) {
        EndBlock();
      }
    }
    return absl::OkStatus();
  }

  absl::Status FinishPass() override {
    QUIRE_RETURN_IF_ERROR(text_.FinishPass());
    EndBlock();
    is_counting_ = false;
    return absl::OkStatus();
  }

  std::string Take() override { return pool_.Take(); }

 private:
  void EndBlock() {
    SampleKmers(block_, sizing_.interval, kmers_);
    if (is_counting_) {
      Count();
    } else {
      pool_.Add(block_, kmers_);
    }
    block_.clear();
  }

  void Count() {
    cost_.Estimate(block_);
    for (size_t i = 0; i < kmers_.size(); ++i) {
      if (i + kAheadCount < kmers_.size()) {
        table_.PrefetchAdd(kmers_[i + kAheadCount].hash);
      }
      const size_t begin = kmers_[i].end - kKmerSizeBytes;
      const uint32_t bits = cost_.Bits(begin, kmers_[i].end);
      if (bits >= kWorthBitsMin) {
        table_.Add(kmers_[i].hash, bits);
      }
    }
  }

  const uint64_t dictionary_size_;
  const size_t block_size_;
  AnnouncedText text_;
  const Sizing sizing_;
  bool is_counting_ = true;
  // Added text that does not fill a block yet.
  std::vector<uint8_t> block_;
  std::vector<SampledKmer> kmers_;
  BlockCost cost_;
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
      options.worth_bits_min, text_size_bytes, sizing);
}

}  // namespace quire
