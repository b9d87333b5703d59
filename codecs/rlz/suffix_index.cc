// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/suffix_index.h"

#include <divsufsort.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {
namespace {

constexpr size_t kBucketCount = size_t{1} << 16;
// At 8 the keys take one byte per byte of text.
constexpr size_t kKeyStride = 8;

size_t KeyCount(size_t text_size) {
  return (text_size + kKeyStride - 1) / kKeyStride;
}

// Returns the number of bytes that `a` and `b` have in common, at least
// `known`.
size_t CommonPrefix(ByteView a, ByteView b, size_t known) {
  const size_t size = std::min(a.size(), b.size());
  size_t i = known;
  while (i + sizeof(uint64_t) <= size) {
    const uint64_t difference = LoadLittleEndian<uint64_t>(a.data() + i) ^
                                LoadLittleEndian<uint64_t>(b.data() + i);
    if (difference != 0) {
      return i + static_cast<size_t>(std::countr_zero(difference)) / 8;
    }
    i += sizeof(uint64_t);
  }
  while (i < size && a[i] == b[i]) {
    ++i;
  }
  return i;
}

// The first eight bytes as a number that sorts as they do.
uint64_t KeyOf(ByteView bytes) {
  if (bytes.size() >= sizeof(uint64_t)) {
    return __builtin_bswap64(LoadLittleEndian<uint64_t>(bytes.data()));
  }
  uint64_t key = 0;
  for (size_t i = 0; i < sizeof(uint64_t); ++i) {
    key = key << 8 | (i < bytes.size() ? bytes[i] : 0);
  }
  return key;
}

}  // namespace

size_t SuffixIndex::MemoryBytesFor(size_t text_size) {
  return sizeof(SuffixIndex) + text_size * sizeof(int32_t) +
         (kBucketCount + 1) * sizeof(uint32_t) +
         KeyCount(text_size) * sizeof(uint64_t);
}

absl::StatusOr<std::unique_ptr<const SuffixIndex>> SuffixIndex::Build(
    ByteView text) {
  if (text.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dictionary of ", text.size(),
                     " bytes is too large to be indexed; the limit is ",
                     kDictionarySizeBytesMax));
  }
  std::unique_ptr<SuffixIndex> index(new SuffixIndex(text));
  index->suffixes_ = std::make_unique_for_overwrite<int32_t[]>(text.size());
  index->keys_ =
      std::make_unique_for_overwrite<uint64_t[]>(KeyCount(text.size()));
  // libdivsufsort rejects empty input. Otherwise it fails only if out of
  // memory.
  QUIRE_CHECK(text.empty() ||
              divsufsort(text.data(), index->suffixes_.get(),
                         static_cast<saidx_t>(text.size())) == 0);
  index->FillBuckets();
  index->FillKeys();
  return index;
}

void SuffixIndex::FillBuckets() {
  bucket_begin_.assign(kBucketCount + 1, 0);
  for (size_t i = 0; i < text_.size(); ++i) {
    const size_t second = i + 1 < text_.size() ? text_[i + 1] : 0;
    ++bucket_begin_[(static_cast<size_t>(text_[i]) << 8 | second) + 1];
  }
  for (size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    bucket_begin_[bucket + 1] += bucket_begin_[bucket];
  }
}

void SuffixIndex::FillKeys() {
  for (size_t i = 0; i < KeyCount(text_.size()); ++i) {
    keys_[i] = KeyOf(Suffix(static_cast<uint32_t>(i * kKeyStride)));
  }
}

SuffixIndex::Match SuffixIndex::LongestMatch(ByteView pattern) const {
  if (pattern.empty()) {
    return {};
  }
  const size_t first = size_t{pattern[0]} << 8;
  if (pattern.size() >= 2) {
    const size_t bucket = first | pattern[1];
    Ranks ranks = {.begin = bucket_begin_[bucket],
                   .end = bucket_begin_[bucket + 1]};
    // The suffix of one byte is the first of its bucket, where it does not
    // belong.
    if (pattern[1] == 0 && ranks.begin != ranks.end &&
        static_cast<size_t>(suffixes_[ranks.begin]) == text_.size() - 1) {
      ++ranks.begin;
    }
    if (ranks.begin != ranks.end) {
      return LongestMatchInBucket(pattern, ranks);
    }
  }
  const uint32_t rank = bucket_begin_[first];
  if (rank == bucket_begin_[first + 256]) {
    return {};
  }
  return {.offset = static_cast<uint32_t>(suffixes_[rank]), .length = 1};
}

// The suffixes before and after the rank at which `pattern` would be inserted
// share the longest prefixes with it. Finds that rank by bisection, and keeps
// the sizes of the prefixes that the suffixes at both ends share with the
// pattern. All suffixes between them share at least the smaller of the two,
// which need not be compared again.
SuffixIndex::Match SuffixIndex::LongestMatchInBucket(ByteView pattern,
                                                     Ranks bucket) const {
  // begin - 1 and end are known to be below and above the pattern, or outside
  // the bucket; the prefix that they share with the pattern is known only after
  // a comparison.
  Ranks ranks = NarrowByKeys(pattern, bucket);
  constexpr size_t kShared = 2;
  size_t below = kShared;
  size_t above = kShared;
  bool below_known = false;
  bool above_known = false;
  while (ranks.begin < ranks.end) {
    const uint32_t middle = ranks.begin + (ranks.end - ranks.begin) / 2;
    const ByteView suffix = Suffix(middle);
    const size_t common = CommonPrefix(pattern, suffix, std::min(below, above));
    if (common < pattern.size() &&
        (common == suffix.size() || suffix[common] < pattern[common])) {
      ranks.begin = middle + 1;
      below = common;
      below_known = true;
    } else {
      ranks.end = middle;
      above = common;
      above_known = true;
    }
  }
  const uint32_t place = ranks.begin;
  if (!below_known && place > bucket.begin) {
    below = CommonPrefix(pattern, Suffix(place - 1), kShared);
  }
  if (!above_known && place < bucket.end) {
    above = CommonPrefix(pattern, Suffix(place), kShared);
  }
  // At the bucket's edges one of the two does not exist, but the other does,
  // and shares no less than the bucket's two bytes.
  if (place == bucket.begin || (place < bucket.end && above > below)) {
    return {.offset = static_cast<uint32_t>(suffixes_[place]),
            .length = static_cast<uint32_t>(above)};
  }
  const uint32_t first =
      FirstRankWithPrefix(pattern.first(below), bucket.begin, place - 1);
  return {.offset = static_cast<uint32_t>(suffixes_[first]),
          .length = static_cast<uint32_t>(below)};
}

// Returns an interval that contains the pattern's rank, its end included.
SuffixIndex::Ranks SuffixIndex::NarrowByKeys(ByteView pattern,
                                             Ranks bucket) const {
  if (pattern.size() < sizeof(uint64_t) ||
      bucket.end - bucket.begin < kKeyStride) {
    return bucket;
  }
  const uint64_t* const begin =
      keys_.get() + (bucket.begin + kKeyStride - 1) / kKeyStride;
  const uint64_t* const end =
      keys_.get() + (bucket.end + kKeyStride - 1) / kKeyStride;
  const uint64_t key = KeyOf(pattern);
  const uint64_t* const not_below = std::lower_bound(begin, end, key);
  // Usually few keys are equal: gallop instead of bisecting the whole rest.
  const uint64_t* above = not_below;
  for (ptrdiff_t step = 1; above != end && *above == key; step *= 2) {
    const ptrdiff_t left = end - above;
    if (step >= left || above[step] != key) {
      above = std::upper_bound(above, above + std::min(step, left), key);
      break;
    }
    above += step;
  }
  const auto rank_of = [this](const uint64_t* sampled) {
    return static_cast<uint32_t>(sampled - keys_.get()) * uint32_t{kKeyStride};
  };
  Ranks ranks = bucket;
  if (not_below != begin) {
    ranks.begin = rank_of(not_below - 1) + 1;
  }
  if (above != end) {
    ranks.end = rank_of(above);
  }
  return ranks;
}

// Returns the first of the suffixes from `lowest` on that start with `prefix`,
// as `known` does.
uint32_t SuffixIndex::FirstRankWithPrefix(ByteView prefix, uint32_t lowest,
                                          uint32_t known) const {
  const auto has_prefix = [&](uint32_t rank) {
    return CommonPrefix(prefix, Suffix(rank), 0) == prefix.size();
  };
  // Suffixes below `low` do not have the prefix, `known` always does. Usually
  // few have it: gallop.
  uint32_t low = lowest;
  for (uint32_t step = 1; known - lowest >= step; step *= 2) {
    if (!has_prefix(known - step)) {
      low = known - step + 1;
      break;
    }
    known -= step;
  }
  while (low < known) {
    const uint32_t middle = low + (known - low) / 2;
    if (has_prefix(middle)) {
      known = middle;
    } else {
      low = middle + 1;
    }
  }
  return known;
}

}  // namespace quire
