// SPDX-License-Identifier: GPL-3.0-or-later
//
// The document ids of a segment in RAM: sorted, front-coded in buckets, the
// rest as FSST codes, searched without decompression.
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

// A sorted sequence of byte strings, possibly repeated. The index of a string
// is its rank, from 0.
//
// Every 64th string, the head of a bucket, is complete; the others store what
// differs from the previous one. A search bisects over the heads, which are
// stored together, then walks one bucket. It passes most strings by the number
// of shared bytes alone, and compares symbols of few others up to the first
// byte that differs. Strings are FSST codes if all ids together are large
// enough to justify a symbol table, trained while building. Movable.
// Thread-safe.
class IdTable {
 public:
  // Empty.
  IdTable() = default;

  // Builds the table from a section (FORMAT.md, "Document ids"), which is
  // untrusted. Sets `repeats`, if given, by rank: true if the id equals the
  // previous one.
  // Errors: DataLoss  not `count` sorted ids of `id_size_bytes` in total.
  static absl::StatusOr<IdTable> Parse(ByteView section, uint64_t count,
                                       uint64_t id_size_bytes,
                                       std::vector<bool>* repeats);

  uint64_t size() const { return size_; }

  // Size of the longest id; 0 for an empty table.
  uint64_t id_size_bytes_max() const { return buckets_.id_size_bytes_max; }

  // REQUIRES: rank < size().
  std::string Get(uint64_t rank) const;

  // Number of ids below `key`: the rank of the first id that is not.
  uint64_t LowerBound(absl::string_view key) const;
  // Number of ids not above `key`.
  uint64_t UpperBound(absl::string_view key) const;

  // Ranks from `begin` to below `end`.
  struct Ranks {
    uint64_t begin = 0;
    uint64_t end = 0;

    uint64_t count() const { return end - begin; }
  };

  // Returns the ranks of all ids equal to `key`: from LowerBound() to
  // UpperBound(). Takes the time of one of them, and of both if the id repeats.
  Ranks Find(absl::string_view key) const;

  uint64_t MemoryBytes() const;
  // Upper bound on MemoryBytes(), from the number of ids, the size of their
  // section and their total length. FSST usually stays below it, by half for
  // URLs or paths.
  static uint64_t EstimateBytes(uint64_t count, uint64_t section_size_bytes,
                                uint64_t id_size_bytes);

  // Walks upwards from a rank; cheaper than Get() for each. Borrows the table.
  // Thread-compatible.
  class Cursor {
   public:
    // REQUIRES: rank <= table.size().
    Cursor(const IdTable& table, uint64_t rank);

    bool at_end() const { return rank_ == table_->size_; }

    // REQUIRES for the following: !at_end().
    uint64_t rank() const { return rank_; }

    // Valid until the cursor moves.
    absl::string_view id() const { return id_.view(); }

    void Next();

   private:
    void EnterBucket();

    const IdTable* table_;
    uint64_t rank_;
    IdBuffer id_;
    // Bucket of the current id; none in an empty table.
    std::optional<IdBucket> bucket_;
    // End of its text in the bucket's texts.
    size_t texts_end_ = 0;
  };

 private:
  // The first id that compares with a key above some order.
  struct Place {
    uint64_t rank = 0;
    // Its order, 1 after the last id.
    int order = 1;
  };

  // `order_max` is -1 for ids not below the key, 0 for ids above it.
  Place FirstAbove(absl::string_view key, int order_max) const;

  uint64_t size_ = 0;
  IdBuckets buckets_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_H_
