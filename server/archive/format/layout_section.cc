// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/layout_section.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"

namespace quire {

void TextChecksummer::Add(ByteView text) {
  while (!text.empty()) {
    if (checksum_ == nullptr) {
      checksum_ = std::make_unique<Checksummer64>();
    }
    const ByteView part = text.first(static_cast<size_t>(
        std::min<uint64_t>(text.size(), kPieceSizeBytes - piece_size_bytes_)));
    checksum_->Add(part);
    piece_size_bytes_ += part.size();
    if (piece_size_bytes_ == kPieceSizeBytes) {
      EndPiece();
    }
    text = text.subspan(part.size());
  }
}

void TextChecksummer::EndPiece() {
  checksums_.push_back({piece_size_bytes_, checksum_->Get()});
  checksum_.reset();
  piece_size_bytes_ = 0;
}

std::vector<TextChecksum> TextChecksummer::Take() {
  if (piece_size_bytes_ > 0) {
    EndPiece();
  }
  return std::exchange(checksums_, {});
}

std::string EncodeTextChecksums(std::span<const TextChecksum> checksums) {
  std::string section;
  AppendVarint(checksums.size(), section);
  std::vector<uint64_t> column(checksums.size());
  std::ranges::transform(checksums, column.begin(), &TextChecksum::size_bytes);
  AppendColumn(column, section);
  std::ranges::transform(checksums, column.begin(), &TextChecksum::checksum);
  AppendColumn(column, section);
  return section;
}

absl::StatusOr<std::vector<TextChecksum>> ParseTextChecksums(
    ByteView section, uint64_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(section));
  // Each run has a size, so that the column of sizes has a byte for it.
  if (count > section.size()) {
    return absl::DataLossError(
        absl::StrCat(count, " checksums in ", section.size(), " bytes"));
  }
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Take(section, count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView values,
                         ColumnView::Parse(section, count));
  std::vector<TextChecksum> checksums;
  checksums.reserve(count);
  uint64_t left = size_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    if (sizes[i] == 0 || sizes[i] > left) {
      return absl::DataLossError(absl::StrCat("checksum ", i, " is of ",
                                              sizes[i], " bytes of ", left));
    }
    checksums.push_back({sizes[i], values[i]});
    left -= sizes[i];
  }
  if (left != 0) {
    return absl::DataLossError(absl::StrCat("checksums are of ",
                                            size_bytes - left,
                                            " bytes, expected ", size_bytes));
  }
  return checksums;
}

std::string EncodeLayout(const LayoutSection& layout) {
  std::string section;
  AppendVarint(layout.stored_text_size_bytes, section);
  AppendVarint(layout.runs.size(), section);
  std::vector<uint64_t> column;
  column.reserve(layout.runs.size());
  // The kind of run: all are copies of stored text.
  section.push_back('\0');
  for (const StoredRun& run : layout.runs) {
    column.push_back(run.size_bytes);
  }
  AppendColumn(column, section);
  column.clear();
  uint64_t expected_offset = 0;
  for (const StoredRun& run : layout.runs) {
    column.push_back(
        ZigZag(static_cast<int64_t>(run.stored_offset - expected_offset)));
    expected_offset = run.stored_offset + run.size_bytes;
  }
  AppendColumn(column, section);
  return section;
}

}  // namespace quire
