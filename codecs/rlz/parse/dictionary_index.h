// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_DICTIONARY_INDEX_H_
#define QUIRE_CODECS_RLZ_PARSE_DICTIONARY_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/numbered_work.h"

namespace quire {

// Index of a dictionary by hash: a few candidates each for the next 8, 24 and
// 64 bytes. The longer keys exist because a web page's frequent 8 bytes, and
// 24, have far more occurrences than a bucket can hold.
//
// Only every second offset of the dictionary is in the index, and every fourth
// for 64 bytes. A copy from another offset is found some bytes later; the
// caller extends it backwards.
//
// An entry is an offset and, in the free bits, a few bits of the key's hash.
// Most false candidates are thus rejected without reading the dictionary, whose
// cache misses dominate the cost. For the same reason the caller spreads a
// search over three steps: hash, prefetch, look.
//
// Three tables of 2, 2 and 1 bytes per byte of dictionary. A fine index has two
// more of 2 bytes each, for the next 5 bytes, of all offsets, and the next 12;
// a dense one has only these. Thread-safe if const, as Build() returns it.
class DictionaryIndex {
 public:
  // In a fine or dense index only.
  static constexpr uint32_t kShortestKeySize = 5;
  static constexpr uint32_t kMiddleKeySize = 12;
  static constexpr uint32_t kShortKeySize = 8;
  static constexpr uint32_t kLongKeySize = 24;
  static constexpr uint32_t kLongestKeySize = 64;
  // Entries per bucket, in each table.
  static constexpr size_t kWays = 4;

  // kFine serves FineDictionarySearch as well; its results cost more time.
  // kDense serves only that: for texts in which short copies are as good, as
  // their parts repeat nowhere else.
  enum class Detail { kCoarse, kFine, kDense };

  // Takes about 10 ms of CPU per MiB, twice that if fine; each of its tables is
  // a piece of work. `dictionary` must outlive the index; it may be empty.
  // Errors: InvalidArgument  dictionary.size() > kDictionarySizeBytesMax.
  static absl::StatusOr<std::unique_ptr<const DictionaryIndex>> Build(
      ByteView dictionary, Detail detail = Detail::kCoarse,
      const RunNumberedWork& run = WorkAlone);

  // The same with no offsets in it yet. Errors: as Build().
  static absl::StatusOr<std::unique_ptr<DictionaryIndex>> MakeEmpty(
      ByteView dictionary, Detail detail = Detail::kCoarse);

  // Enters the offsets of all keys that end at `end` or earlier and are not in
  // the index. REQUIRES: end <= dictionary().size().
  void EnterUpTo(size_t end);

  ByteView dictionary() const { return dictionary_; }

  // Memory of the index, without the dictionary.
  size_t MemoryBytes() const {
    return (short_table_.bucket_count + long_table_.bucket_count +
            longest_table_.bucket_count + shortest_table_.bucket_count +
            middle_table_.bucket_count) *
           kWays * sizeof(uint32_t);
  }

  // True if it has the shortest and the middle key: also if it is dense.
  bool is_fine() const { return shortest_table_.entries != nullptr; }

  // True if it has the other three keys: unless it is dense.
  bool has_long_keys() const { return long_table_.entries != nullptr; }

  // REQUIRES: the size of the key in readable bytes at `text`.
  static uint64_t HashShortest(const uint8_t* text) {
    return Mix(LoadLittleEndian<uint32_t>(text) | uint64_t{text[4]} << 32);
  }

  static uint64_t HashMiddle(const uint8_t* text) {
    const uint64_t front = LoadLittleEndian<uint64_t>(text) * kFactor;
    return Mix((front ^ front >> 32) +
               LoadLittleEndian<uint64_t>(text + kMiddleKeySize - 8));
  }

  static uint64_t HashShort(const uint8_t* text) {
    return Mix(LoadLittleEndian<uint64_t>(text));
  }

  static uint64_t HashLong(const uint8_t* text) {
    const uint64_t front = LoadLittleEndian<uint64_t>(text) * kFactor;
    return Mix((front ^ front >> 32) + LoadLittleEndian<uint64_t>(text + 8)) ^
           Mix(LoadLittleEndian<uint64_t>(text + 16));
  }

  static uint64_t HashLongest(const uint8_t* text) {
    uint64_t hash = LoadLittleEndian<uint64_t>(text);
    for (uint32_t i = 8; i < kLongestKeySize; i += 8) {
      hash =
          (hash ^ hash >> 29) * kFactor + LoadLittleEndian<uint64_t>(text + i);
    }
    return Mix(hash);
  }

  // Those of the shortest and the middle key. REQUIRES: is_fine().
  void PrefetchShortest(uint64_t hash) const {
    __builtin_prefetch(shortest_table_.BucketOf(hash));
  }

  void PrefetchMiddle(uint64_t hash) const {
    __builtin_prefetch(middle_table_.BucketOf(hash));
  }

  void PrefetchShort(uint64_t hash) const {
    __builtin_prefetch(short_table_.BucketOf(hash));
  }

  void PrefetchLong(uint64_t hash) const {
    __builtin_prefetch(long_table_.BucketOf(hash));
  }

  void PrefetchLongest(uint64_t hash) const {
    __builtin_prefetch(longest_table_.BucketOf(hash));
  }

  // Writes to `places` the dictionary offsets at which the key may begin;
  // returns their number, at most kWays. At least the size of the key follows
  // each offset.
  // Those of the shortest and the middle key. REQUIRES: is_fine().
  size_t FindShortest(uint64_t hash, uint32_t* places) const {
    return Find(shortest_table_, hash, places);
  }

  size_t FindMiddle(uint64_t hash, uint32_t* places) const {
    return Find(middle_table_, hash, places);
  }

  size_t FindShort(uint64_t hash, uint32_t* places) const {
    return Find(short_table_, hash, places);
  }

  size_t FindLong(uint64_t hash, uint32_t* places) const {
    return Find(long_table_, hash, places);
  }

  size_t FindLongest(uint64_t hash, uint32_t* places) const {
    return Find(longest_table_, hash, places);
  }

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
  // Stride of the tables for short and long keys.
  static constexpr uint32_t kLeastStride = 2;

  struct Table {
    // Scales the upper half of the hash to the number of buckets.
    uint32_t* BucketOf(uint64_t hash) const {
      return entries.get() + kWays * ((hash >> 32) * bucket_count >> 32);
    }

    // The lower half gives the tag, which is above the offset in an entry.
    uint32_t TagOf(uint64_t hash) const {
      return static_cast<uint32_t>(hash) & ~place_mask;
    }

    size_t entry_count() const { return bucket_count * kWays; }

    // Writes entries that hold nothing.
    void Empty();

    // Bits of an entry that hold the offset, in strides. One more than the
    // largest offset fits in, so that no entry is kNone.
    uint32_t place_mask = 0;
    // Interval of the dictionary offsets in the table.
    uint32_t stride = 0;
    uint64_t bucket_count = 0;
    // Number of offsets entered.
    size_t entered = 0;
    std::unique_ptr<uint32_t[]> entries;
  };

  struct TableToFill {
    Table* table = nullptr;
    // Enters all keys up to an offset.
    void (DictionaryIndex::*fill)(Table& table, size_t end) = nullptr;
  };

  DictionaryIndex(ByteView dictionary, Detail detail);

  // With tables whose entries are not written yet. Errors: as Build().
  static absl::StatusOr<std::unique_ptr<DictionaryIndex>> MakeSized(
      ByteView dictionary, Detail detail);

  // Those that the index has.
  std::vector<TableToFill> Tables();

  // The offsets of a table are at least `least_stride` apart.
  Table SizedTable(uint32_t stride, uint32_t least_stride,
                   uint32_t bytes_per_entry) const;

  template <uint64_t (*kHash)(const uint8_t*), uint32_t kKeySize>
  void Fill(Table& table, size_t end);

  static uint64_t Mix(uint64_t key) {
    key *= kFactor;
    return (key ^ key >> 32) * kFactor;
  }

  size_t Find(const Table& table, uint64_t hash, uint32_t* places) const {
    const uint32_t* const bucket = table.BucketOf(hash);
    const uint32_t mask = table.place_mask;
    const uint32_t tag = table.TagOf(hash);
    size_t count = 0;
    for (size_t way = 0; way < kWays; ++way) {
      const uint32_t entry = bucket[way];
      places[count] = (entry & mask) * table.stride;
      count += (entry & ~mask) == tag && entry != kNone ? 1 : 0;
    }
    return count;
  }

  // No offset has this number; see Table.
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  const ByteView dictionary_;
  // Without entries unless the index is fine or dense.
  Table shortest_table_;
  Table middle_table_;
  // Without entries if it is dense.
  Table short_table_;
  Table long_table_;
  Table longest_table_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_DICTIONARY_INDEX_H_
