// SPDX-License-Identifier: GPL-3.0-or-later
//
// The document ids of a segment in RAM: sorted, front-coded in small buckets,
// searched without being decompressed.
#ifndef QUIRE_SERVER_ARCHIVE_ID_TABLE_H_
#define QUIRE_SERVER_ARCHIVE_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/elias_fano.h"

namespace quire {

// A sorted sequence of byte strings, repetitions allowed. The place of a string
// in it is its rank, from 0.
//
// Every 16th string is whole, those between keep what differs from the one
// before: a search bisects over the whole ones, then walks through one bucket.
// Movable. Thread-safe.
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

  // REQUIRES: rank < size().
  std::string Get(uint64_t rank) const;

  // The number of ids below `key`, which is the rank of the first that is not.
  uint64_t LowerBound(absl::string_view key) const;
  // The number of ids that are not above `key`.
  uint64_t UpperBound(absl::string_view key) const;

  uint64_t MemoryBytes() const;
  // About what MemoryBytes() will be: from the number of ids, the size of their
  // section and their total length.
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

    const std::string& id() const { return id_; }

    void Next();

   private:
    void ReadEntry();

    const IdTable* table_;
    uint64_t rank_;
    // Where the entry after the current one begins.
    size_t position_ = 0;
    std::string id_;
  };

 private:
  class Loader;

  // Of whole ids, which begin the buckets.
  absl::string_view Head(uint64_t bucket) const;
  // The first rank of which `is_past` is true; it must be monotonous.
  template <typename IsPast>
  uint64_t FirstRank(IsPast is_past) const;

  uint64_t size_ = 0;
  // Per bucket: a size and a whole id; then per further id: how many bytes it
  // shares with the one before, how many follow, and these. Sizes are varints.
  std::string entries_;
  // Where in entries_ each bucket begins.
  EliasFano buckets_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ID_TABLE_H_
