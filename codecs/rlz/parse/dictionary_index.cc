// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/dictionary_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/memory/huge_pages.h"
#include "codecs/base/status_macros.h"
#include "codecs/rlz/dictionary_builder.h"

namespace quire {
namespace {

// Number of insertions by which the prefetch of a bucket runs ahead.
constexpr size_t kLookahead = 16;

}  // namespace

DictionaryIndex::DictionaryIndex(ByteView dictionary, Detail detail)
    : dictionary_(dictionary) {
  if (detail != Detail::kDense) {
    short_table_ = SizedTable(kLeastStride, kLeastStride, kLeastStride);
    long_table_ = SizedTable(kLeastStride, kLeastStride, kLeastStride);
    longest_table_ =
        SizedTable(2 * kLeastStride, kLeastStride, 2 * kLeastStride);
  }
  if (detail != Detail::kCoarse) {
    // Half as many entries as offsets: short copies pay only from nearby.
    shortest_table_ = SizedTable(1, 1, kLeastStride);
    middle_table_ = SizedTable(kLeastStride, kLeastStride, kLeastStride);
  }
}

DictionaryIndex::Table DictionaryIndex::SizedTable(
    uint32_t stride, uint32_t least_stride, uint32_t bytes_per_entry) const {
  const auto place_bits = std::bit_width(dictionary_.size() / least_stride + 1);
  return {.place_mask = static_cast<uint32_t>((uint64_t{1} << place_bits) - 1),
          .stride = stride,
          .bucket_count = std::max<uint64_t>(
              dictionary_.size() / bytes_per_entry / kWays, 1),
          .entries = nullptr};
}

void DictionaryIndex::Table::Empty() {
  PreferHugePages({reinterpret_cast<const uint8_t*>(entries.get()),
                   entry_count() * sizeof(uint32_t)});
  std::fill_n(entries.get(), entry_count(), kNone);
}

absl::StatusOr<std::unique_ptr<DictionaryIndex>> DictionaryIndex::MakeSized(
    ByteView dictionary, Detail detail) {
  if (dictionary.size() > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("no index for a dictionary of ", dictionary.size(),
                     " bytes; the limit is ", kDictionarySizeBytesMax));
  }
  std::unique_ptr<DictionaryIndex> index(
      new DictionaryIndex(dictionary, detail));
  // On the calling thread, which may be able to go on without the memory.
  for (const TableToFill& filled : index->Tables()) {
    filled.table->entries =
        std::make_unique_for_overwrite<uint32_t[]>(filled.table->entry_count());
  }
  return index;
}

absl::StatusOr<std::unique_ptr<const DictionaryIndex>> DictionaryIndex::Build(
    ByteView dictionary, Detail detail, const RunNumberedWork& run) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DictionaryIndex> index,
                         MakeSized(dictionary, detail));
  const std::vector<TableToFill> tables = index->Tables();
  run(tables.size(), [&](const NextNumber& next) {
    while (const std::optional<uint64_t> i = next()) {
      const TableToFill& filled = tables[*i];
      filled.table->Empty();
      ((*index).*filled.fill)(*filled.table, dictionary.size());
    }
  });
  return index;
}

absl::StatusOr<std::unique_ptr<DictionaryIndex>> DictionaryIndex::MakeEmpty(
    ByteView dictionary, Detail detail) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DictionaryIndex> index,
                         MakeSized(dictionary, detail));
  for (const TableToFill& filled : index->Tables()) {
    filled.table->Empty();
  }
  return index;
}

std::vector<DictionaryIndex::TableToFill> DictionaryIndex::Tables() {
  std::vector<TableToFill> tables;
  for (const TableToFill& filled : {
           TableToFill{&short_table_,
                       &DictionaryIndex::Fill<HashShort, kShortKeySize>},
           {&long_table_, &DictionaryIndex::Fill<HashLong, kLongKeySize>},
           {&longest_table_,
            &DictionaryIndex::Fill<HashLongest, kLongestKeySize>},
           {&shortest_table_,
            &DictionaryIndex::Fill<HashShortest, kShortestKeySize>},
           {&middle_table_, &DictionaryIndex::Fill<HashMiddle, kMiddleKeySize>},
       }) {
    if (filled.table->bucket_count > 0) {
      tables.push_back(filled);
    }
  }
  return tables;
}

void DictionaryIndex::EnterUpTo(size_t end) {
  for (const TableToFill& filled : Tables()) {
    (this->*filled.fill)(*filled.table, end);
  }
}

// Later offsets replace earlier ones: their distances are smaller.
template <uint64_t (*kHash)(const uint8_t*), uint32_t kKeySize>
void DictionaryIndex::Fill(Table& table, size_t end) {
  const size_t count = end < kKeySize ? 0 : (end - kKeySize) / table.stride + 1;
  const size_t first = table.entered;
  if (count <= first) {
    return;
  }
  table.entered = count;
  std::array<uint64_t, kLookahead> ahead = {};
  for (size_t i = first; i < count + kLookahead; ++i) {
    uint64_t& slot = ahead[i % kLookahead];
    if (i >= first + kLookahead) {
      uint32_t* const bucket = table.BucketOf(slot);
      // Not std::copy_backward(), which calls memmove().
      for (size_t way = kWays - 1; way > 0; --way) {
        bucket[way] = bucket[way - 1];
      }
      bucket[0] = table.TagOf(slot) | static_cast<uint32_t>(i - kLookahead);
    }
    if (i < count) {
      slot = kHash(dictionary_.data() + i * table.stride);
      __builtin_prefetch(table.BucketOf(slot), 1);
    }
  }
}

}  // namespace quire
