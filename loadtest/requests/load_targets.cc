// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_targets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "loadtest/requests/random_stream.h"

namespace quire {
namespace {

// Random streams separate from those that draw requests.
constexpr uint64_t kPermutationStream = 0x5EED0001;
constexpr uint64_t kItemStream = 0x5EED0002;

}  // namespace

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

LoadTargets::LoadTargets(const LoadOptions& options, const SourceText* source,
                         uint64_t size_bytes, uint64_t document_count)
    : options_(options),
      source_(source),
      size_bytes_(size_bytes),
      document_count_(document_count) {
  if (options.distribution == LoadDistribution::kZipf) {
    zipf_.emplace(ItemCount(), options.zipf_exponent);
    item_of_rank_.emplace(RandomAt(options.seed, kPermutationStream),
                          ItemCount());
  }
}

uint64_t LoadTargets::ItemCount() const {
  return options_.what == LoadKind::kDocuments
             ? document_count_
             : std::max<uint64_t>(1,
                                  size_bytes_ / options_.range_size_bytes_max);
}

uint64_t LoadTargets::DrawItem(uint64_t index, uint64_t count) const {
  if (!zipf_.has_value()) {
    return RandomAt(options_.seed, 2 * index) % count;
  }
  RandomStream random(RandomAt(options_.seed, 2 * index));
  return (*item_of_rank_)(zipf_->Sample(random) - 1);
}

LoadTarget LoadTargets::DocumentAt(uint64_t ordinal) const {
  if (source_ == nullptr || source_->documents().empty()) {
    return {.ordinal = ordinal};
  }
  const SourceRow& row = source_->documents()[ordinal];
  return {.place = TextSpan{row.offset, row.size_bytes},
          .id = absl::string_view(row.id)};
}

LoadTarget LoadTargets::RangeOfItem(uint64_t item) const {
  const uint64_t spread =
      options_.range_size_bytes_max - options_.range_size_bytes_min + 1;
  const uint64_t stream = RandomAt(options_.seed, kItemStream);
  const uint64_t size =
      options_.range_size_bytes_min + RandomAt(stream, 2 * item + 1) % spread;
  const uint64_t offset =
      item * options_.range_size_bytes_max +
      RandomAt(stream, 2 * item) % options_.range_size_bytes_max;
  return {.place = TextSpan{std::min(offset, size_bytes_ - size), size}};
}

LoadTarget LoadTargets::At(uint64_t index) const {
  if (options_.what == LoadKind::kDocuments) {
    return DocumentAt(DrawItem(index, document_count_));
  }
  if (zipf_.has_value()) {
    return RangeOfItem(DrawItem(index, ItemCount()));
  }
  const uint64_t spread =
      options_.range_size_bytes_max - options_.range_size_bytes_min + 1;
  const uint64_t size = options_.range_size_bytes_min +
                        RandomAt(options_.seed, 2 * index + 1) % spread;
  return {.place = TextSpan{DrawItem(index, size_bytes_ - size + 1), size}};
}

uint64_t LoadTargets::MeanSizeBytes() const {
  return options_.what == LoadKind::kDocuments
             ? size_bytes_ / std::max<uint64_t>(1, document_count_)
             : options_.range_size_bytes_min + (options_.range_size_bytes_max -
                                                options_.range_size_bytes_min) /
                                                   2;
}

}  // namespace quire
