// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/id_table.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/archive_format.h"

namespace quire {
namespace {

constexpr uint64_t kBucketSize = 16;

size_t VarintSizeBytes(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

// As TakeVarint(), for bytes that we wrote ourselves.
uint64_t ReadTrustedVarint(const std::string& in, size_t& position) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(in[position++]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

absl::Status BadIds(uint64_t rank, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the id of rank ", rank, " ", what));
}

}  // namespace

// Reads the three runs of a section side by side: once to add up the sizes, so
// that the table is allocated once and exactly, and once to fill it.
class IdTable::Loader {
 public:
  Loader(ByteView section, uint64_t count)
      : shared_sizes_(section), count_(count) {}

  absl::Status Measure(uint64_t id_size_bytes) {
    suffix_sizes_ = shared_sizes_;
    for (uint64_t i = 0; i < count_; ++i) {
      QUIRE_RETURN_IF_ERROR(TakeVarint(suffix_sizes_).status());
    }
    QUIRE_RETURN_IF_ERROR(AddUpSizes(id_size_bytes));
    return absl::OkStatus();
  }

  absl::StatusOr<IdTable> Fill(std::vector<bool>* repeats) {
    IdTable table;
    table.size_ = count_;
    table.entries_.reserve(entries_size_bytes_);
    EliasFano::Builder buckets((count_ + kBucketSize - 1) / kBucketSize,
                               entries_size_bytes_);
    std::string id;
    for (uint64_t rank = 0; rank < count_; ++rank) {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t shared, TakeVarint(shared_sizes_));
      QUIRE_ASSIGN_OR_RETURN(const uint64_t more, TakeVarint(suffix_sizes_));
      const absl::string_view suffix = AsText(suffixes_.first(more));
      suffixes_ = suffixes_.subspan(more);
      QUIRE_RETURN_IF_ERROR(CheckOrder(rank, id, shared, suffix));
      if (repeats != nullptr) {
        repeats->push_back(rank != 0 && shared == id.size() && more == 0);
      }
      id.resize(shared);
      id.append(suffix.data(), suffix.size());
      if (rank % kBucketSize == 0) {
        buckets.Add(table.entries_.size());
        AppendVarint(id.size(), table.entries_);
        table.entries_.append(id);
      } else {
        AppendVarint(shared, table.entries_);
        AppendVarint(more, table.entries_);
        table.entries_.append(suffix.data(), suffix.size());
      }
    }
    table.buckets_ = std::move(buckets).Build();
    return table;
  }

 private:
  absl::Status AddUpSizes(uint64_t id_size_bytes) {
    ByteView shared_sizes = shared_sizes_;
    suffixes_ = suffix_sizes_;
    uint64_t previous = 0;
    uint64_t total = 0;
    uint64_t suffixes_size_bytes = 0;
    for (uint64_t rank = 0; rank < count_; ++rank) {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t shared, TakeVarint(shared_sizes));
      QUIRE_ASSIGN_OR_RETURN(const uint64_t more, TakeVarint(suffixes_));
      if (shared > previous) {
        return BadIds(rank, "shares more than there is");
      }
      if (more > kDocumentIdSizeBytesMax - shared) {
        return BadIds(rank, absl::StrCat("is longer than ",
                                         kDocumentIdSizeBytesMax, " bytes"));
      }
      previous = shared + more;
      total += previous;
      suffixes_size_bytes += more;
      entries_size_bytes_ +=
          rank % kBucketSize == 0
              ? VarintSizeBytes(previous) + previous
              : VarintSizeBytes(shared) + VarintSizeBytes(more) + more;
    }
    if (total != id_size_bytes || suffixes_size_bytes != suffixes_.size()) {
      return absl::DataLossError(absl::StrCat(
          "ids have ", total, " bytes, expected ", id_size_bytes, "; ",
          suffixes_.size(), " stored, expected ", suffixes_size_bytes));
    }
    return absl::OkStatus();
  }

  // `id` is still the one before. Sharing must be as long as possible, so one
  // byte decides.
  static absl::Status CheckOrder(uint64_t rank, const std::string& id,
                                 uint64_t shared, absl::string_view suffix) {
    if (shared < id.size() &&
        (suffix.empty() ||
         static_cast<uint8_t>(suffix[0]) <= static_cast<uint8_t>(id[shared]))) {
      return BadIds(rank, "is not above the one before");
    }
    return absl::OkStatus();
  }

  ByteView shared_sizes_;
  ByteView suffix_sizes_;
  ByteView suffixes_;
  uint64_t count_;
  uint64_t entries_size_bytes_ = 0;
};

absl::StatusOr<IdTable> IdTable::Parse(ByteView section, uint64_t count,
                                       uint64_t id_size_bytes,
                                       std::vector<bool>* repeats) {
  if (count == 0) {
    if (!section.empty() || id_size_bytes != 0) {
      return absl::DataLossError("ids without documents");
    }
    return IdTable();
  }
  Loader loader(section, count);
  QUIRE_RETURN_IF_ERROR(loader.Measure(id_size_bytes));
  return loader.Fill(repeats);
}

absl::string_view IdTable::Head(uint64_t bucket) const {
  size_t position = buckets_[bucket];
  const uint64_t size = ReadTrustedVarint(entries_, position);
  return absl::string_view(entries_).substr(position, size);
}

std::string IdTable::Get(uint64_t rank) const {
  return Cursor(*this, rank).id();
}

template <typename IsPast>
uint64_t IdTable::FirstRank(IsPast is_past) const {
  uint64_t low = 0;
  uint64_t high = buckets_.size();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (is_past(Head(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == 0) {
    return 0;
  }
  Cursor cursor(*this, (low - 1) * kBucketSize);
  const uint64_t end = std::min(size_, low * kBucketSize);
  do {
    cursor.Next();
  } while (cursor.rank() < end && !is_past(cursor.id()));
  return cursor.rank();
}

uint64_t IdTable::LowerBound(absl::string_view key) const {
  return FirstRank([key](absl::string_view id) { return id >= key; });
}

uint64_t IdTable::UpperBound(absl::string_view key) const {
  return FirstRank([key](absl::string_view id) { return id > key; });
}

uint64_t IdTable::MemoryBytes() const {
  return entries_.capacity() + buckets_.MemoryBytes();
}

uint64_t IdTable::EstimateBytes(uint64_t count, uint64_t section_size_bytes,
                                uint64_t id_size_bytes) {
  // The heads' shared parts are the only bytes that the section does not have.
  const uint64_t entries_size_bytes =
      section_size_bytes + id_size_bytes / kBucketSize + count / kBucketSize;
  return entries_size_bytes + kDocumentIdSizeBytesMax / kBucketSize +
         EliasFano::EstimateBytes(count / kBucketSize + 1, entries_size_bytes);
}

IdTable::Cursor::Cursor(const IdTable& table, uint64_t rank)
    : table_(&table), rank_(rank) {
  if (at_end()) {
    return;
  }
  rank_ -= rank % kBucketSize;
  position_ = table.buckets_[rank_ / kBucketSize];
  ReadEntry();
  while (rank_ != rank) {
    Next();
  }
}

void IdTable::Cursor::Next() {
  ++rank_;
  if (!at_end()) {
    ReadEntry();
  }
}

void IdTable::Cursor::ReadEntry() {
  const std::string& entries = table_->entries_;
  uint64_t shared = 0;
  if (rank_ % kBucketSize != 0) {
    shared = ReadTrustedVarint(entries, position_);
  }
  const uint64_t more = ReadTrustedVarint(entries, position_);
  id_.resize(shared);
  id_.append(entries, position_, more);
  position_ += more;
}

}  // namespace quire
