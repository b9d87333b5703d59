// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/segment_pool.h"

#include <algorithm>
#include <utility>

namespace quire {
namespace {

// Above the worth of any k-mer.
constexpr uint32_t kPriceEnd = uint32_t{1} << 31;
// Cost of beginning a segment, in bytes of text; less in a small dictionary.
// README.md has the results of other sizes.
constexpr uint64_t kStartSizeBytesMax = 4096;
constexpr uint32_t kSegmentSizeBytesMin = 256;
// Number of items by which prefetching is ahead.
constexpr size_t kAheadCount = 24;

}  // namespace

SegmentPool::SegmentPool(uint64_t dictionary_size_bytes, size_t block_size_max,
                         uint32_t interval, uint32_t price_min,
                         RepeatTable* table)
    : dictionary_size_(dictionary_size_bytes),
      start_size_(static_cast<uint32_t>(
          std::min(dictionary_size_bytes / 16, kStartSizeBytesMax))),
      table_(table),
      price_(price_min),
      finder_(SampledKmerCountMax(block_size_max, interval)) {
  worthy_.reserve(SampledKmerCountMax(block_size_max, interval));
  worthy_slots_.reserve(worthy_.capacity());
  text_.reserve(TextSizeMax(dictionary_size_, block_size_max));
  segments_.reserve(SegmentCountMax(dictionary_size_, block_size_max));
  kmers_.reserve(KmerCountMax(dictionary_size_, block_size_max, interval));
  slots_.reserve(kmers_.capacity());
}

size_t SegmentPool::TextSizeMax(uint64_t dictionary_size,
                                size_t block_size_max) {
  return 2 * dictionary_size + block_size_max;
}

size_t SegmentPool::KmerCountMax(uint64_t dictionary_size,
                                 size_t block_size_max, uint32_t interval) {
  // Few blocks have more k-mers than one in `interval`; none has all it could.
  return TextSizeMax(dictionary_size, block_size_max) / interval * 2 +
         SampledKmerCountMax(block_size_max, interval);
}

size_t SegmentPool::SegmentCountMax(uint64_t dictionary_size,
                                    size_t block_size_max) {
  return TextSizeMax(dictionary_size, block_size_max) / kSegmentSizeBytesMin +
         1;
}

size_t SegmentPool::MemoryBytesFor(uint64_t dictionary_size_bytes,
                                   size_t block_size_max, uint32_t interval) {
  const size_t block_kmers = SampledKmerCountMax(block_size_max, interval);
  const size_t kmer_size = sizeof(WorthyKmer) + sizeof(RepeatTable::Slot);
  // Old and new segments coexist while some are dropped; then the candidates.
  return sizeof(SegmentPool) + block_kmers * kmer_size +
         RunFinder::MemoryBytesFor(block_kmers) +
         TextSizeMax(dictionary_size_bytes, block_size_max) + 1 +
         SegmentCountMax(dictionary_size_bytes, block_size_max) *
             (2 * sizeof(Segment) + sizeof(Candidate) + sizeof(uint32_t)) +
         KmerCountMax(dictionary_size_bytes, block_size_max, interval) *
             kmer_size;
}

void SegmentPool::FindWorthy(std::span<const SampledKmer> kmers) {
  worthy_.clear();
  worthy_slots_.clear();
  for (size_t i = 0; i < kmers.size(); ++i) {
    if (i + kAheadCount < kmers.size()) {
      table_->PrefetchFind(kmers[i + kAheadCount].hash);
    }
    const RepeatTable::Slot slot = table_->Find(kmers[i].hash);
    if (slot != RepeatTable::kNoSlot && table_->Worth(slot) > 0) {
      worthy_.push_back({.end = kmers[i].end, .worth = table_->Worth(slot)});
      worthy_slots_.push_back(slot);
      // At once, since the block may have it again.
      table_->Take(slot);
    }
  }
}

void SegmentPool::Add(ByteView block, std::span<const SampledKmer> kmers) {
  FindWorthy(kmers);
  size_t next = 0;
  for (const PricedRun& run : finder_.Find(worthy_, price_, start_size_)) {
    const uint32_t size = run.end - run.begin;
    if (size < kSegmentSizeBytesMin) {
      continue;
    }
    for (; next < run.kmer_begin; ++next) {
      table_->GiveBack(worthy_slots_[next]);
    }
    for (; next < run.kmer_end; ++next) {
      kmers_.push_back(
          {.end = worthy_[next].end - run.begin, .worth = worthy_[next].worth});
      slots_.push_back(worthy_slots_[next]);
    }
    text_.append(AsText(block.subspan(run.begin, size)).data(), size);
    segments_.push_back(
        {.size = size,
         .kmer_count = static_cast<uint32_t>(run.kmer_end - run.kmer_begin)});
  }
  for (; next < worthy_.size(); ++next) {
    table_->GiveBack(worthy_slots_[next]);
  }
  const size_t space_left = kmers_.capacity() - kmers_.size();
  if (text_.size() > 2 * dictionary_size_ || space_left < worthy_.capacity()) {
    Shrink();
  }
}

const std::vector<PricedRun>& SegmentPool::RunsOf(const Segment& segment,
                                                  size_t kmer, uint32_t price) {
  return finder_.Find(
      std::span<const WorthyKmer>(kmers_).subspan(kmer, segment.kmer_count),
      price, start_size_);
}

uint64_t SegmentPool::SizeAtPrice(uint32_t price) {
  uint64_t total_size = 0;
  size_t kmer = 0;
  for (const Segment& segment : segments_) {
    for (const PricedRun& run : RunsOf(segment, kmer, price)) {
      const uint32_t size = run.end - run.begin;
      total_size += size < kSegmentSizeBytesMin ? 0 : size;
    }
    kmer += segment.kmer_count;
  }
  return total_size;
}

uint32_t SegmentPool::PriceOfDictionarySize() {
  uint32_t low = price_;
  uint32_t high = kPriceEnd;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (SizeAtPrice(middle) <= dictionary_size_) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void SegmentPool::KeepRun(Place from, const PricedRun& run, Place to) {
  std::copy_n(text_.data() + from.text + run.begin, run.end - run.begin,
              text_.data() + to.text);
  for (size_t i = run.kmer_begin; i < run.kmer_end; ++i) {
    slots_[to.kmer] = slots_[from.kmer + i];
    kmers_[to.kmer] = {.end = kmers_[from.kmer + i].end - run.begin,
                       .worth = kmers_[from.kmer + i].worth};
    ++to.kmer;
  }
}

void SegmentPool::KeepWorthy(uint32_t price) {
  std::vector<Segment> kept;
  kept.reserve(segments_.capacity());
  Place from;
  Place to;
  for (const Segment& segment : segments_) {
    size_t next = 0;
    const auto give_back_until = [&](size_t end) {
      for (; next < end; ++next) {
        table_->GiveBack(slots_[from.kmer + next]);
      }
    };
    for (const PricedRun& run : RunsOf(segment, from.kmer, price)) {
      const uint32_t size = run.end - run.begin;
      if (size < kSegmentSizeBytesMin) {
        continue;
      }
      give_back_until(run.kmer_begin);
      next = run.kmer_end;
      KeepRun(from, run, to);
      kept.push_back(
          {.size = size,
           .kmer_count = static_cast<uint32_t>(run.kmer_end - run.kmer_begin)});
      to.text += size;
      to.kmer += kept.back().kmer_count;
    }
    give_back_until(segment.kmer_count);
    from.text += segment.size;
    from.kmer += segment.kmer_count;
  }
  text_.resize(to.text);
  kmers_.resize(to.kmer);
  slots_.resize(to.kmer);
  segments_ = std::move(kept);
}

std::vector<uint32_t> SegmentPool::SizesThatFit() const {
  std::vector<Candidate> candidates(segments_.size());
  size_t kmer = 0;
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    uint64_t worth = 0;
    for (const size_t end = kmer + segments_[i].kmer_count; kmer < end;
         ++kmer) {
      worth += kmers_[kmer].worth;
    }
    candidates[i] = {.worth = worth * 1024 / segments_[i].size, .segment = i};
  }
  // At equal worth the first segments come first.
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.worth != b.worth ? a.worth > b.worth
                                        : a.segment < b.segment;
            });
  uint64_t space_left = dictionary_size_;
  std::vector<uint32_t> sizes(segments_.size());
  for (const Candidate& candidate : candidates) {
    const uint64_t size =
        std::min<uint64_t>(space_left, segments_[candidate.segment].size);
    sizes[candidate.segment] = static_cast<uint32_t>(size);
    space_left -= size;
  }
  return sizes;
}

void SegmentPool::DropLeastWorthy() {
  const std::vector<uint32_t> sizes = SizesThatFit();
  Place from;
  Place to;
  size_t kept_count = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Segment segment = segments_[i];
    const Place next = {.text = from.text + segment.size,
                        .kmer = from.kmer + segment.kmer_count};
    std::copy_n(text_.data() + from.text, sizes[i], text_.data() + to.text);
    uint32_t kmer_count = 0;
    for (; from.kmer < next.kmer; ++from.kmer) {
      if (kmers_[from.kmer].end > sizes[i]) {
        table_->GiveBack(slots_[from.kmer]);
        continue;
      }
      kmers_[to.kmer] = kmers_[from.kmer];
      slots_[to.kmer] = slots_[from.kmer];
      ++to.kmer;
      ++kmer_count;
    }
    if (sizes[i] > 0) {
      segments_[kept_count++] = {.size = sizes[i], .kmer_count = kmer_count};
    }
    from = next;
    to.text += sizes[i];
  }
  segments_.resize(kept_count);
  text_.resize(to.text);
  kmers_.resize(to.kmer);
  slots_.resize(to.kmer);
}

void SegmentPool::Shrink() {
  // At that price all fits, at one less more than fits, and the least worthy
  // of it goes: so all that is there is worth the price, even where all of it
  // is worth the same. If all fits at the old price, that is because a part of
  // a segment may not be worth the start of one, and stays nevertheless.
  const uint32_t price = PriceOfDictionarySize();
  if (price > price_) {
    price_ = price - 1;
    KeepWorthy(price_);
  }
  DropLeastWorthy();
}

std::string SegmentPool::Take() {
  Shrink();
  return std::move(text_);
}

}  // namespace quire
