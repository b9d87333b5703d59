// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_targets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "loadtest/requests/random_stream.h"

namespace quire {
std::string DescribeTarget(const LoadTarget& target) {
  std::string text = target.is_document() ? "document " : "range ";
  if (target.id.has_value()) {
    absl::StrAppend(&text, "'", *target.id, "'");
  } else if (target.ordinal.has_value()) {
    absl::StrAppend(&text, "number ", *target.ordinal);
  }
  if (target.place.has_value()) {
    absl::StrAppend(&text, target.is_document() ? " at [" : "[",
                    target.place->offset, ", +", target.place->size_bytes, ")");
  }
  return text;
}

LoadTarget LoadTargets::At(uint64_t index) const {
  const uint64_t number = RandomAt(options_.seed, 2 * index);
  if (options_.what == LoadKind::kRanges) {
    const uint64_t size = options_.range_size_bytes;
    return {.place = TextSpan{number % (size_bytes_ - size + 1), size}};
  }
  const uint64_t ordinal = number % document_count_;
  if (source_ == nullptr || source_->documents().empty()) {
    return {.ordinal = ordinal};
  }
  const SourceRow& row = source_->documents()[ordinal];
  return {.place = TextSpan{row.offset, row.size_bytes},
          .id = absl::string_view(row.id)};
}

uint64_t LoadTargets::MeanSizeBytes() const {
  return options_.what == LoadKind::kDocuments
             ? size_bytes_ / std::max<uint64_t>(1, document_count_)
             : options_.range_size_bytes;
}

}  // namespace quire
