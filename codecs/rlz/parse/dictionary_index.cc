// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/dictionary_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "absl/strings/str_cat.h"

#include "codecs/rlz/dictionary_builder.h"

namespace quire {
namespace {

// How many places ahead of the one that is entered a bucket is fetched.
constexpr size_t kLookahead = 16;

}  // namespace

DictionaryIndex::DictionaryIndex(ByteView dictionary)
    : dictionary_(dictionary),
      bucket_count_(std::max<uint64_t>(dictionary.size() / kStride / kWays, 1)),
      // One more than the places need, so that no entry is kNone.
      place_mask_(
          (uint32_t{1} << std::bit_width(dictionary.size() / kStride + 1)) -
          1) {}

DictionaryIndex::Table DictionaryIndex::MakeTable() const {
  const size_t size = bucket_count_ * kWays;
  Table table(new (std::nothrow) uint32_t[size]);
  if (table != nullptr) {
    std::fill_n(table.get(), size, kNone);
  }
  return table;
}

absl::StatusOr<std::unique_ptr<const DictionaryIndex>> DictionaryIndex::Build(
    ByteView dictionary) {
  if (dictionary.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("no index for a dictionary of ", dictionary.size(),
                     " bytes; the limit is ", kDictionarySizeBytesMax));
  }
  std::unique_ptr<DictionaryIndex> index(new DictionaryIndex(dictionary));
  index->short_table_ = index->MakeTable();
  index->long_table_ = index->MakeTable();
  if (index->short_table_ == nullptr || index->long_table_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not enough memory to index a dictionary of ", dictionary.size(),
        " bytes: ", index->MemoryBytes(), " bytes are needed"));
  }
  index->Fill<HashShort, kShortKeySize>(index->short_table_.get());
  index->Fill<HashLong, kLongKeySize>(index->long_table_.get());
  return index;
}

// Later places push out earlier ones: their distances are smaller.
template <uint64_t (*kHash)(const uint8_t*), uint32_t kKeySize>
void DictionaryIndex::Fill(uint32_t* table) {
  if (dictionary_.size() < kKeySize) {
    return;
  }
  const size_t count = (dictionary_.size() - kKeySize) / kStride + 1;
  std::array<uint64_t, kLookahead> ahead = {};
  for (size_t i = 0; i < count + kLookahead; ++i) {
    uint64_t& slot = ahead[i % kLookahead];
    if (i >= kLookahead) {
      uint32_t* const bucket = BucketOf(table, slot);
      std::copy_backward(bucket, bucket + kWays - 1, bucket + kWays);
      bucket[0] = TagOf(slot) | static_cast<uint32_t>(i - kLookahead);
    }
    if (i < count) {
      slot = kHash(dictionary_.data() + i * kStride);
      __builtin_prefetch(BucketOf(table, slot), 1);
    }
  }
}

}  // namespace quire
