// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/column.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace quire {

void AppendColumn(std::span<const uint64_t> values, std::string& out) {
  uint64_t all_bits = 0;
  for (const uint64_t value : values) {
    all_bits |= value;
  }
  const int width_bytes = (static_cast<int>(std::bit_width(all_bits)) + 7) / 8;
  out.reserve(out.size() + 1 +
              values.size() * static_cast<size_t>(width_bytes));
  out.push_back(static_cast<char>(width_bytes));
  for (int plane = 0; plane < width_bytes; ++plane) {
    for (const uint64_t value : values) {
      out.push_back(static_cast<char>((value >> (8 * plane)) & 0xFF));
    }
  }
}

absl::StatusOr<ColumnView> ColumnView::Parse(ByteView bytes, uint64_t count) {
  if (bytes.empty() || bytes[0] > 8) {
    return absl::DataLossError(absl::StrCat(
        "column is ", bytes.empty() ? "empty" : "more than 8 bytes wide"));
  }
  const uint64_t width_bytes = bytes[0];
  const ByteView planes = bytes.subspan(1);
  // The division keeps a huge count from overflowing the product.
  const bool fits = width_bytes == 0 ? planes.empty()
                                     : planes.size() / width_bytes == count &&
                                           planes.size() % width_bytes == 0;
  if (!fits) {
    return absl::DataLossError(absl::StrCat("column has ", planes.size(),
                                            " bytes, expected ", count,
                                            " times ", width_bytes));
  }
  return ColumnView(planes, count, width_bytes);
}

absl::StatusOr<ColumnView> ColumnView::Take(ByteView& section, uint64_t count) {
  const uint64_t size_bytes = 1 + (section.empty() ? 0 : section[0]) * count;
  if (size_bytes > section.size()) {
    return absl::DataLossError(absl::StrCat("column has ", section.size(),
                                            " bytes, expected ", size_bytes));
  }
  absl::StatusOr<ColumnView> column = Parse(section.first(size_bytes), count);
  section = section.subspan(size_bytes);
  return column;
}

}  // namespace quire
