// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/dictionary_index.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"

#include "codecs/base/memory/huge_pages.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {
namespace {

// Number of insertions by which the prefetch of a bucket runs ahead.
constexpr size_t kLookahead = 16;

}  // namespace

DictionaryIndex::DictionaryIndex(ByteView dictionary)
    : dictionary_(dictionary),
      short_table_(SizedTable(kLeastStride, kLeastStride, kLeastStride)),
      long_table_(SizedTable(kLeastStride, kLeastStride, kLeastStride)),
      longest_table_(
          SizedTable(2 * kLeastStride, kLeastStride, 2 * kLeastStride)) {}

DictionaryIndex::Table DictionaryIndex::SizedTable(
    uint32_t stride, uint32_t least_stride, uint32_t bytes_per_entry) const {
  const auto place_bits = std::bit_width(dictionary_.size() / least_stride + 1);
  return {.place_mask = static_cast<uint32_t>((uint64_t{1} << place_bits) - 1),
          .stride = stride,
          .bucket_count = std::max<uint64_t>(
              dictionary_.size() / bytes_per_entry / kWays, 1),
          .entries = nullptr};
}

absl::StatusOr<std::unique_ptr<const DictionaryIndex>> DictionaryIndex::Build(
    ByteView dictionary, Detail detail) {
  if (dictionary.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("no index for a dictionary of ", dictionary.size(),
                     " bytes; the limit is ", kDictionarySizeBytesMax));
  }
  std::unique_ptr<DictionaryIndex> index(new DictionaryIndex(dictionary));
  index->Fill<HashShort, kShortKeySize>(index->short_table_);
  index->Fill<HashLong, kLongKeySize>(index->long_table_);
  index->Fill<HashLongest, kLongestKeySize>(index->longest_table_);
  if (detail == Detail::kFine) {
    // Half as many entries as offsets: short copies pay only from nearby.
    index->shortest_table_ = index->SizedTable(1, 1, kLeastStride);
    index->middle_table_ =
        index->SizedTable(kLeastStride, kLeastStride, kLeastStride);
    index->Fill<HashShortest, kShortestKeySize>(index->shortest_table_);
    index->Fill<HashMiddle, kMiddleKeySize>(index->middle_table_);
  }
  return index;
}

// Later offsets replace earlier ones: their distances are smaller.
template <uint64_t (*kHash)(const uint8_t*), uint32_t kKeySize>
void DictionaryIndex::Fill(Table& table) {
  const size_t entry_count = table.bucket_count * kWays;
  table.entries = std::make_unique_for_overwrite<uint32_t[]>(entry_count);
  PreferHugePages({reinterpret_cast<const uint8_t*>(table.entries.get()),
                   entry_count * sizeof(uint32_t)});
  std::fill_n(table.entries.get(), entry_count, kNone);
  if (dictionary_.size() < kKeySize) {
    return;
  }
  const size_t count = (dictionary_.size() - kKeySize) / table.stride + 1;
  std::array<uint64_t, kLookahead> ahead = {};
  for (size_t i = 0; i < count + kLookahead; ++i) {
    uint64_t& slot = ahead[i % kLookahead];
    if (i >= kLookahead) {
      uint32_t* const bucket = table.BucketOf(slot);
      std::copy_backward(bucket, bucket + kWays - 1, bucket + kWays);
      bucket[0] = table.TagOf(slot) | static_cast<uint32_t>(i - kLookahead);
    }
    if (i < count) {
      slot = kHash(dictionary_.data() + i * table.stride);
      __builtin_prefetch(table.BucketOf(slot), 1);
    }
  }
}

}  // namespace quire
