// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_table.h"

#include <algorithm>
#include <bit>

#include "absl/status/status.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {

absl::StatusOr<IdTable> IdTable::Parse(ByteView section, uint64_t count,
                                       uint64_t id_size_bytes,
                                       std::vector<bool>* repeats) {
  IdTable table;
  if (count == 0) {
    if (!section.empty() || id_size_bytes != 0) {
      return absl::DataLossError("ids without documents");
    }
    return table;
  }
  QUIRE_ASSIGN_OR_RETURN(table.buckets_,
                         LoadIdBuckets(section, count, id_size_bytes, repeats));
  table.size_ = count;
  return table;
}

std::string IdTable::Get(uint64_t rank) const {
  IdBuffer id;
  buckets_.At(rank / kIdBucketSize, size_).Read(rank % kIdBucketSize, id);
  return std::string(id.view());
}

IdTable::Place IdTable::FirstAbove(absl::string_view key, int order_max) const {
  // The first bucket whose head is above, and the order of its head.
  uint64_t low = 0;
  uint64_t high = (size_ + kIdBucketSize - 1) / kIdBucketSize;
  IdOrder below;
  Place head_above = {.rank = size_};
  // The prefix that the heads on both sides share with the key is shared by all
  // between them.
  IdPlace place_below;
  IdPlace place_above;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    IdPlace place = place_below.key_offset < place_above.key_offset
                        ? place_below
                        : place_above;
    const IdOrder compared = buckets_.CompareHead(middle, key, place);
    if (compared.order > order_max) {
      high = middle;
      place_above = place;
      head_above = {.rank = middle * kIdBucketSize, .order = compared.order};
    } else {
      low = middle + 1;
      below = compared;
      place_below = place;
    }
  }
  if (low == 0) {
    return head_above;
  }
  const IdBucket bucket = buckets_.At(low - 1, size_);
  const uint64_t first_rank = (low - 1) * kIdBucketSize;
  Place place;
  const size_t index =
      bucket.FirstAbove(key, below.shared_size_bytes, order_max, &place.order);
  if (index == std::min(kIdBucketSize, size_ - first_rank)) {
    return head_above;
  }
  place.rank = first_rank + index;
  return place;
}

uint64_t IdTable::LowerBound(absl::string_view key) const {
  return FirstAbove(key, -1).rank;
}

uint64_t IdTable::UpperBound(absl::string_view key) const {
  return FirstAbove(key, 0).rank;
}

IdTable::Ranks IdTable::Find(absl::string_view key) const {
  const Place first = FirstAbove(key, -1);
  if (first.order != 0) {
    return {first.rank, first.rank};
  }
  const uint64_t next = first.rank + 1;
  const bool is_next_known = next == size_ || next % kIdBucketSize != 0;
  if (is_next_known &&
      (next == size_ || !buckets_.At(next / kIdBucketSize, size_)
                             .IsRepeat(next % kIdBucketSize))) {
    return {first.rank, next};
  }
  return {first.rank, UpperBound(key)};
}

uint64_t IdTable::MemoryBytes() const {
  return buckets_.MemoryBytes();
}

uint64_t IdTable::EstimateBytes(uint64_t count, uint64_t section_size_bytes,
                                uint64_t id_size_bytes) {
  // The section lacks only the shared parts of the heads and the flags.
  const uint64_t bucket_count = count / kIdBucketSize + 1;
  const uint64_t texts_size_bytes =
      section_size_bytes + id_size_bytes / kIdBucketSize + bucket_count;
  const auto begin_bits =
      2 * static_cast<uint64_t>(std::bit_width(texts_size_bytes));
  return texts_size_bytes + kDocumentIdSizeBytesMax / kIdBucketSize +
         bucket_count * begin_bits / 8 + sizeof(IdCoding) + 256;
}

IdTable::Cursor::Cursor(const IdTable& table, uint64_t rank)
    : table_(&table), rank_(rank) {
  EnterBucket();
}

void IdTable::Cursor::Next() {
  ++rank_;
  if (rank_ % kIdBucketSize == 0 || at_end()) {
    EnterBucket();
  } else {
    texts_end_ = bucket_->ReadNext(rank_ % kIdBucketSize, texts_end_, id_);
  }
}

void IdTable::Cursor::EnterBucket() {
  if (!at_end()) {
    bucket_ = table_->buckets_.At(rank_ / kIdBucketSize, table_->size_);
    texts_end_ = bucket_->Read(rank_ % kIdBucketSize, id_);
  }
}

}  // namespace quire
