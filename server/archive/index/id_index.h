// SPDX-License-Identifier: GPL-3.0-or-later
//
// The document ids of a segment in RAM, by rank and by ordinal: stored ones,
// and those that are computed from runs.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_INDEX_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/decimal_range.h"
#include "server/archive/index/id_table.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

// Documents in the order of (id, ordinal); the index of one is its rank. The
// entries are stored ids: each is the id of one document, or the lowest id of a
// run, whose other ids follow it in rank and are computed. No other id lies
// between those of a run, which are all different. Movable. Thread-safe.
class IdIndex {
  struct Run;

 public:
  using Ranks = IdTable::Ranks;

  // Empty.
  IdIndex() = default;

  // Sections of a segment (FORMAT.md), without those that are absent.
  struct Sections {
    ByteView ids;
    std::optional<ByteView> order;
    std::optional<ByteView> runs;
  };

  struct Counts {
    // Documents, and those of them without an entry.
    uint64_t document_count = 0;
    uint64_t derived_id_count = 0;
    // Total length of the entries.
    uint64_t id_size_bytes = 0;
  };

  // All sections are untrusted. Sets `repeats`, by entry: true if the id equals
  // the previous one.
  // Errors: DataLoss  the message names the section.
  static absl::StatusOr<IdIndex> Parse(const Sections& sections,
                                       const Counts& counts,
                                       std::vector<bool>& repeats);

  uint64_t size() const { return size_; }

  // Upper bound on the size of an id; 0 without ids.
  uint64_t id_size_bytes_max() const { return id_size_bytes_max_; }

  // REQUIRES: rank < size().
  std::string Get(uint64_t rank) const;

  // Returns the document of a rank, and the inverse. Ordinals increase with the
  // rank among equal ids. REQUIRES: below size().
  uint64_t OrdinalAt(uint64_t rank) const;
  uint64_t RankOf(uint64_t ordinal) const;

  // Rank of an entry; size() for the number of entries. REQUIRES: entry is not
  // above it.
  uint64_t RankOfEntry(uint64_t entry) const;

  // Number of ids below `key`: the rank of the first id that is not.
  uint64_t LowerBound(absl::string_view key) const { return Find(key).begin; }

  // Number of ids not above `key`.
  uint64_t UpperBound(absl::string_view key) const { return Find(key).end; }

  // Returns the ranks of all ids equal to `key`: from LowerBound() to
  // UpperBound().
  Ranks Find(absl::string_view key) const;

  uint64_t MemoryBytes() const;
  // Upper bound on the part of MemoryBytes() for runs.
  static uint64_t EstimateRunsBytes(uint64_t section_size_bytes);

  // Walks upwards from a rank; cheaper than Get() for each. Borrows the index.
  // Thread-compatible.
  class Cursor {
   public:
    // REQUIRES: rank <= index.size().
    Cursor(const IdIndex& index, uint64_t rank);

    bool at_end() const { return rank_ == index_->size_; }

    // REQUIRES for the following: !at_end().
    uint64_t rank() const { return rank_; }

    // Valid until the cursor moves.
    absl::string_view id() const {
      return run_end_ > rank_ ? absl::string_view(run_id_) : entries_.id();
    }

    void Next();

   private:
    // Sets the id to that of a run if the rank is in one.
    void EnterRun();

    const IdIndex* index_;
    uint64_t rank_;
    // At the entry of the rank.
    IdTable::Cursor entries_;
    // Rank after the current run; otherwise not above rank_.
    uint64_t run_end_ = 0;
    std::string run_id_;
    size_t prefix_size_ = 0;
    const Run* run_ = nullptr;
  };

 private:
  friend class Cursor;

  // All positions are below 2^32, as those of documents are.
  struct Run {
    uint64_t first_number = 0;
    uint32_t count = 0;
    uint32_t entry = 0;
    uint32_t rank = 0;
    uint32_t ordinal = 0;

    DecimalRange numbers() const { return {first_number, count}; }

    uint64_t rank_end() const { return uint64_t{rank} + count; }

    uint64_t ordinal_end() const { return uint64_t{ordinal} + count; }
  };

  absl::Status ParseOrder(ByteView section, const std::vector<bool>& repeats);
  absl::Status ParseRuns(ByteView section, const Counts& counts,
                         const std::vector<bool>& repeats);
  // Checks that only ids of the run lie between its ids.
  absl::Status CheckRun(const Run& run, const std::vector<bool>& repeats) const;

  // Returns the last run that begins at or before the rank; null if none does.
  const Run* RunUpTo(uint64_t rank) const;
  uint64_t EntryOf(uint64_t rank) const;
  // Part of the run's ids before the numbers.
  std::string PrefixOf(const Run& run) const;

  uint64_t size_ = 0;
  uint64_t id_size_bytes_max_ = 0;
  IdTable entries_;
  // Rank of an entry to its ordinal, among entries.
  InvertiblePermutation order_;
  // By rank.
  std::vector<Run> runs_;
  // Indexes of the runs, by ordinal.
  std::vector<uint32_t> runs_by_ordinal_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_INDEX_H_
