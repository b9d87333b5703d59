// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/spilled_clusters.h"

#include <array>
#include <optional>

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/first_number_table.h"
#include "codecs/reorder/super_features.h"

namespace quire {
namespace {

constexpr char kSpoolContents[] = "the super-features of the text";
// Of the index of a super-feature, below the number of its chunk.
constexpr int kIndexBits = 2;
static_assert(kSuperFeatureCount <= 1 << kIndexBits);

uint64_t PlaceOf(uint32_t number, size_t index) {
  return uint64_t{number} << kIndexBits | index;
}

uint32_t NumberAt(uint64_t place) {
  return static_cast<uint32_t>(place >> kIndexBits);
}

}  // namespace

SpilledClusters::SpilledClusters(const std::string& directory,
                                 size_t memory_bytes)
    : features_(directory, kSpoolContents, memory_bytes / 2),
      firsts_(directory, kSpoolContents, memory_bytes / 2) {}

absl::Status SpilledClusters::Add(absl::Span<const uint64_t> features) {
  QUIRE_CHECK(features.size() <= kSuperFeatureCount,
              "more super-features than a record can tell apart");
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i] != 0) {
      QUIRE_RETURN_IF_ERROR(
          features_.Add({.key = FirstNumberTable::KeptBits(features[i]),
                         .value = PlaceOf(chunk_count_, i)}));
    }
  }
  ++chunk_count_;
  return absl::OkStatus();
}

absl::Status SpilledClusters::FindFirsts() {
  QUIRE_RETURN_IF_ERROR(features_.EndAdding());
  std::optional<SortRecord> first;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<SortRecord> record,
                           features_.Next());
    if (!record.has_value()) {
      break;
    }
    if (!first.has_value() || first->key != record->key) {
      first = record;
    } else if (NumberAt(first->value) != NumberAt(record->value)) {
      QUIRE_RETURN_IF_ERROR(
          firsts_.Add({.key = record->value, .value = NumberAt(first->value)}));
    }
  }
  return firsts_.EndAdding();
}

absl::StatusOr<ChunkClusters> SpilledClusters::Take() {
  QUIRE_RETURN_IF_ERROR(FindFirsts());
  ChunkClusters clusters;
  QUIRE_ASSIGN_OR_RETURN(std::optional<SortRecord> known, firsts_.Next());
  for (uint32_t number = 0; number < chunk_count_; ++number) {
    std::array<uint32_t, kSuperFeatureCount> firsts;
    firsts.fill(number);
    while (known.has_value() && NumberAt(known->key) == number) {
      firsts[known->key - PlaceOf(number, 0)] =
          static_cast<uint32_t>(known->value);
      QUIRE_ASSIGN_OR_RETURN(known, firsts_.Next());
    }
    clusters.AddFirsts(firsts);
  }
  return clusters;
}

}  // namespace quire
