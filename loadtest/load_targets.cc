// SPDX-License-Identifier: Apache-2.0
#include "loadtest/load_targets.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quire {
namespace {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators"): any number of its stream at once, by its position.
uint64_t RandomAt(uint64_t seed, uint64_t position) {
  uint64_t z = seed + (position + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

ReadTarget TargetOfRequest(const SourceText& source, const LoadOptions& options,
                           uint64_t read_size_bytes_max,
                           uint64_t request_index) {
  const uint64_t first = RandomAt(options.seed, 2 * request_index);
  const uint64_t second = RandomAt(options.seed, 2 * request_index + 1);
  if (options.what == LoadKind::kDocuments) {
    const std::vector<SourceRow>& rows = source.documents();
    const SourceRow& row = rows[first % rows.size()];
    return {row.offset, row.size_bytes, &row};
  }
  const uint64_t spread =
      options.range_size_bytes_max - options.range_size_bytes_min + 1;
  const uint64_t size =
      std::min(options.range_size_bytes_min + second % spread,
               std::min(source.size_bytes(), read_size_bytes_max));
  return {first % (source.size_bytes() - size + 1), size, nullptr};
}

uint64_t ExpectedSizeBytes(const SourceText& source,
                           const LoadOptions& options) {
  const uint64_t size =
      options.what == LoadKind::kRanges
          ? (options.range_size_bytes_min + options.range_size_bytes_max) / 2
          : source.size_bytes() / source.documents().size();
  return options.request_count.has_value() ? *options.request_count * size
                                           : UINT64_MAX;
}

}  // namespace quire
