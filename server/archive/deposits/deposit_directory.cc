// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposits/deposit_directory.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// Flags of a portion. The two bits from kStateShift on are its state.
constexpr uint8_t kBegins = 1;
constexpr uint8_t kEnds = 2;
constexpr unsigned kStateShift = 2;
constexpr uint8_t kFlagsMax = kBegins | kEnds |
                              static_cast<uint8_t>(DepositState::kAbandoned)
                                  << kStateShift;

absl::StatusOr<DepositPageEntry> TakePage(ByteView& in, uint64_t& text_left,
                                          uint64_t data_size_bytes) {
  DepositPageEntry page;
  QUIRE_ASSIGN_OR_RETURN(page.totals.size_bytes, TakeVarint(in));
  QUIRE_ASSIGN_OR_RETURN(page.totals.text_size_bytes, TakeVarint(in));
  if (page.totals.size_bytes == 0 ||
      page.totals.size_bytes > kLogicalSizeBytesMax ||
      page.totals.text_size_bytes > text_left) {
    return Damaged(absl::StrCat("a page makes ", page.totals.size_bytes,
                                " bytes of ", page.totals.text_size_bytes,
                                " bytes of text, of which there are ",
                                text_left));
  }
  text_left -= page.totals.text_size_bytes;
  QUIRE_ASSIGN_OR_RETURN(page.part, TakePartReference(in, data_size_bytes));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t literal_count, TakeVarint(in));
  if (literal_count > in.size()) {
    return Damaged(absl::StrCat(literal_count, " parts of literals in ",
                                in.size(), " bytes"));
  }
  for (uint64_t i = 0; i < literal_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(page.literals.emplace_back(),
                           TakePartReference(in, data_size_bytes));
    page.totals.literal_size_bytes += page.literals.back().size_bytes;
  }
  if (page.totals.literal_size_bytes > page.totals.size_bytes) {
    return Damaged(absl::StrCat("a page makes ", page.totals.size_bytes,
                                " bytes, and its literals have ",
                                page.totals.literal_size_bytes));
  }
  return page;
}

absl::StatusOr<DepositPortion> TakePortion(ByteView& in, uint64_t text_begin,
                                           uint64_t text_end,
                                           uint64_t data_size_bytes) {
  DepositPortion portion;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t path_size, TakeVarint(in));
  if (path_size == 0 || path_size > kDepositPathSizeBytesMax) {
    return Damaged(absl::StrCat("the path of a deposited file has ", path_size,
                                " bytes, expected 1 to ",
                                kDepositPathSizeBytesMax));
  }
  QUIRE_ASSIGN_OR_RETURN(const ByteView path,
                         TakeContainerBytes(in, path_size));
  portion.path = std::string(AsText(path));
  QUIRE_ASSIGN_OR_RETURN(const ByteView flag_byte, TakeContainerBytes(in, 1));
  const uint8_t flags = flag_byte[0];
  if (flags > kFlagsMax) {
    return Damaged(absl::StrCat("flags of a deposited file are ", flags));
  }
  portion.begins = (flags & kBegins) != 0;
  portion.ends = (flags & kEnds) != 0;
  portion.state = static_cast<DepositState>(flags >> kStateShift);
  QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped, TakeVarint(in));
  QUIRE_ASSIGN_OR_RETURN(portion.text_size_bytes, TakeVarint(in));
  if (skipped > text_end - text_begin ||
      portion.text_size_bytes > text_end - text_begin - skipped) {
    return Damaged(absl::StrCat(
        "a deposited file has ", portion.text_size_bytes,
        " bytes of text, after ", skipped, ", of ", text_end - text_begin));
  }
  portion.text_offset = text_begin + skipped;
  if (portion.state != DepositState::kKept) {
    return portion;
  }
  if (portion.ends) {
    QUIRE_ASSIGN_OR_RETURN(portion.file_size_bytes, TakeVarint(in));
    QUIRE_ASSIGN_OR_RETURN(const ByteView digest,
                           TakeContainerBytes(in, portion.digest.size()));
    std::ranges::copy(digest, portion.digest.begin());
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t page_count, TakeVarint(in));
  if (page_count == 0 || page_count > in.size()) {
    return Damaged(absl::StrCat(page_count, " pages in ", in.size(), " bytes"));
  }
  uint64_t text_left = portion.text_size_bytes;
  uint64_t size_bytes = 0;
  for (uint64_t i = 0; i < page_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(portion.pages.emplace_back(),
                           TakePage(in, text_left, data_size_bytes));
    size_bytes += portion.pages.back().totals.size_bytes;
    if (size_bytes > kLogicalSizeBytesMax) {
      return Damaged("a deposited file is larger than any archive");
    }
  }
  if (text_left != 0 || (portion.ends && portion.begins &&
                         size_bytes != portion.file_size_bytes)) {
    return Damaged(absl::StrCat("the pages of a deposited file make ",
                                size_bytes, " bytes, and ", text_left,
                                " bytes of text are left"));
  }
  return portion;
}

void AppendPage(const DepositPageEntry& page, std::string& out) {
  AppendVarint(page.totals.size_bytes, out);
  AppendVarint(page.totals.text_size_bytes, out);
  AppendPartReference(page.part, out);
  AppendVarint(page.literals.size(), out);
  for (const ContainerPart& literal : page.literals) {
    AppendPartReference(literal, out);
  }
}

}  // namespace

DepositTotals DepositPortion::Totals() const {
  DepositTotals totals;
  for (const DepositPageEntry& page : pages) {
    totals.size_bytes += page.totals.size_bytes;
    totals.text_size_bytes += page.totals.text_size_bytes;
    totals.literal_size_bytes += page.totals.literal_size_bytes;
  }
  return totals;
}

absl::StatusOr<SegmentDeposits> SegmentDeposits::Parse(
    ByteView head, uint64_t text_size_bytes, uint64_t data_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(head));
  if (count == 0 || count > head.size()) {
    return Damaged(
        absl::StrCat(count, " deposited files in ", head.size(), " bytes"));
  }
  SegmentDeposits deposits;
  uint64_t text_begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        DepositPortion portion,
        TakePortion(head, text_begin, text_size_bytes, data_size_bytes));
    text_begin = portion.text_offset + portion.text_size_bytes;
    if ((!portion.begins && portion.text_offset != 0) ||
        (!portion.ends && text_begin != text_size_bytes)) {
      return Damaged(
          "a deposited file continues in another segment, and its text does "
          "not");
    }
    deposits.portions_.push_back(std::move(portion));
  }
  if (!head.empty()) {
    return Damaged(absl::StrCat(head.size(), " bytes follow deposited files"));
  }
  return deposits;
}

std::string SegmentDeposits::Encode() const {
  std::string head;
  AppendVarint(portions_.size(), head);
  uint64_t text_begin = 0;
  for (const DepositPortion& portion : portions_) {
    AppendVarint(portion.path.size(), head);
    head.append(portion.path);
    head.push_back(static_cast<char>(
        (portion.begins ? kBegins : 0) | (portion.ends ? kEnds : 0) |
        static_cast<uint8_t>(portion.state) << kStateShift));
    AppendVarint(portion.text_offset - text_begin, head);
    AppendVarint(portion.text_size_bytes, head);
    text_begin = portion.text_offset + portion.text_size_bytes;
    if (portion.state != DepositState::kKept) {
      continue;
    }
    if (portion.ends) {
      AppendVarint(portion.file_size_bytes, head);
      head.append(AsText(portion.digest).data(), portion.digest.size());
    }
    AppendVarint(portion.pages.size(), head);
    for (const DepositPageEntry& page : portion.pages) {
      AppendPage(page, head);
    }
  }
  return head;
}

uint64_t SegmentDeposits::MemoryBytes() const {
  uint64_t size_bytes = portions_.capacity() * sizeof(DepositPortion);
  for (const DepositPortion& portion : portions_) {
    size_bytes += portion.path.capacity() +
                  portion.pages.capacity() * sizeof(DepositPageEntry);
    for (const DepositPageEntry& page : portion.pages) {
      size_bytes += page.literals.capacity() * sizeof(ContainerPart);
    }
  }
  return size_bytes;
}

}  // namespace quire
