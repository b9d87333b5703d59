// SPDX-License-Identifier: GPL-3.0-or-later
//
// The document ids of a segment in RAM: sorted, front-coded in buckets, the
// rest of each as FSST codes, searched without being decompressed.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/id_bucket.h"

namespace quire {

// A sorted sequence of byte strings, repetitions allowed. The place of a string
// in it is its rank, from 0.
//
// Every 64th string, the head of a bucket, is whole; those between keep what
// differs from the one before. A search bisects over the heads, which lie
// together, then goes through one bucket: there most strings are passed by the
// number of bytes they share with the one before alone, and of the few others
// symbols are compared up to the first byte that differs. What is kept of a
// string is FSST codes, where all ids together are large enough to earn a
// symbol table, which is trained when the table is built. Movable. Thread-safe.
class IdTable {
 public:
  // Empty.
  IdTable() = default;

  // Builds the table from a section (FORMAT.md, "Document ids"), which is
  // untrusted. If `repeats` is given it gets, per rank, whether the id is the
  // same as the one before.
  // Errors: DataLoss  not `count` sorted ids of `id_size_bytes` in all.
  static absl::StatusOr<IdTable> Parse(ByteView section, uint64_t count,
                                       uint64_t id_size_bytes,
                                       std::vector<bool>* repeats);

  uint64_t size() const { return size_; }

  // Of the longest id; 0 for an empty table.
  uint64_t id_size_bytes_max() const { return buckets_.id_size_bytes_max; }

  // REQUIRES: rank < size().
  std::string Get(uint64_t rank) const;

  // The number of ids below `key`, which is the rank of the first that is not.
  uint64_t LowerBound(absl::string_view key) const;
  // The number of ids that are not above `key`.
  uint64_t UpperBound(absl::string_view key) const;

  // Ranks from `begin` to below `end`.
  struct Ranks {
    uint64_t begin = 0;
    uint64_t end = 0;

    uint64_t count() const { return end - begin; }
  };

  // Those of all ids that are equal to `key`: from LowerBound() to
  // UpperBound(), in the time of one of them, and of both if the id repeats.
  Ranks Find(absl::string_view key) const;

  uint64_t MemoryBytes() const;
  // At least what MemoryBytes() will be: from the number of ids, the size of
  // their section and their total length. By how much FSST stays below this is
  // known only when it is done; by half, where ids are URLs or paths.
  static uint64_t EstimateBytes(uint64_t count, uint64_t section_size_bytes,
                                uint64_t id_size_bytes);

  // Walks upwards from some rank; cheaper than Get() for each.
  // Borrows the table. Thread-compatible.
  class Cursor {
   public:
    // REQUIRES: rank <= table.size().
    Cursor(const IdTable& table, uint64_t rank);

    bool at_end() const { return rank_ == table_->size_; }

    // REQUIRES for these: !at_end().
    uint64_t rank() const { return rank_; }

    // Valid until the cursor moves.
    absl::string_view id() const { return id_.view(); }

    void Next();

   private:
    void EnterBucket();

    const IdTable* table_;
    uint64_t rank_;
    IdBuffer id_;
    // Of the current id; none in an empty table.
    std::optional<IdBucket> bucket_;
    // Where its text ends in the bucket's.
    size_t texts_end_ = 0;
  };

 private:
  // The first id that, compared with a key, is above some order.
  struct Place {
    uint64_t rank = 0;
    // How it compares, 1 behind the last.
    int order = 1;
  };

  // `order_max` is -1 for ids that are not below the key, 0 for those above it.
  Place FirstAbove(absl::string_view key, int order_max) const;

  uint64_t size_ = 0;
  IdBuckets buckets_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_H_
