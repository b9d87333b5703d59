// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposits/deposit_page.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/deflate/deflate_recipe.h"
#include "server/archive/container/container_part.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/column.h"

namespace quire {
namespace {

// Kinds of a page's column; that of a member is its number in the table of
// recipes after these.
constexpr uint64_t kLiteralCode = 0;
constexpr uint64_t kTextCode = 1;
constexpr uint64_t kFirstMemberCode = 2;

// Positions in the header of a gzip member (RFC 1952, section 2.3).
constexpr size_t kFlagsAt = 3;
constexpr size_t kTimeAt = 4;
constexpr uint8_t kHasExtra = 4;
constexpr size_t kExtraAt = 12;
// Size of the header of a subfield, and of the two sizes in subfield "sl".
constexpr size_t kSubfieldHeaderSize = 4;
constexpr size_t kSkipLengthSize = 8;

// Offset of the value of subfield "sl", which programs of the Internet Archive
// and wget write; 0 without one.
size_t FindSkipLength(ByteView header) {
  if (header.size() < kExtraAt || (header[kFlagsAt] & kHasExtra) == 0) {
    return 0;
  }
  const size_t end = std::min<size_t>(
      header.size(),
      kExtraAt + LoadLittleEndian<uint16_t>(&header[kExtraAt - 2]));
  size_t at = kExtraAt;
  while (at + kSubfieldHeaderSize <= end) {
    const size_t size = LoadLittleEndian<uint16_t>(&header[at + 2]);
    if (header[at] == 's' && header[at + 1] == 'l' && size == kSkipLengthSize &&
        at + kSubfieldHeaderSize + size <= end) {
      return at + kSubfieldHeaderSize;
    }
    at += kSubfieldHeaderSize + size;
  }
  return 0;
}

absl::StatusOr<uint32_t> TakeOffset(ByteView& page, size_t header_size) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t offset, TakeVarint(page));
  if (offset != 0 && (offset < kGzipHeaderSizeMin ||
                      offset + sizeof(uint32_t) > header_size)) {
    return Damaged(absl::StrCat("a size is at byte ", offset,
                                " of a header of ", header_size, " bytes"));
  }
  return static_cast<uint32_t>(offset);
}

absl::StatusOr<DepositHeader> TakeHeader(ByteView& page) {
  DepositHeader header;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size, TakeVarint(page));
  if (size < kGzipHeaderSizeMin || size > kDepositHeaderSizeMax) {
    return Damaged(absl::StrCat("the header of a member has ", size, " bytes"));
  }
  QUIRE_ASSIGN_OR_RETURN(const ByteView bytes, TakeContainerBytes(page, size));
  header.bytes = std::string(AsText(bytes));
  QUIRE_ASSIGN_OR_RETURN(header.text_size_at, TakeOffset(page, size));
  QUIRE_ASSIGN_OR_RETURN(header.member_size_at, TakeOffset(page, size));
  return header;
}

absl::StatusOr<std::vector<DepositHeader>> TakeHeaders(ByteView& page,
                                                       uint64_t item_count) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(page));
  if (count > item_count) {
    return Damaged(absl::StrCat(count, " headers of ", item_count, " items"));
  }
  std::vector<DepositHeader> headers;
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(headers.emplace_back(), TakeHeader(page));
  }
  return headers;
}

absl::StatusOr<std::vector<uint32_t>> TakeRecipeKinds(ByteView& page) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(page));
  if (count > kDepositPageItemsMax || count > page.size()) {
    return Damaged(absl::StrCat(count, " kinds of recipes in ", page.size(),
                                " bytes of a page"));
  }
  std::vector<uint32_t> kinds;
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t kind, TakeVarint(page));
    DeflateRecipe recipe;
    if (kind >= kDeflateRecipeKindEnd ||
        !SetDeflateRecipeKind(static_cast<uint32_t>(kind), recipe).ok() ||
        recipe.container != DeflateContainer::kGzip) {
      return Damaged(absl::StrCat("no gzip member is of kind ", kind));
    }
    kinds.push_back(static_cast<uint32_t>(kind));
  }
  return kinds;
}

DeflateRecipe RecipeOf(const DepositItem& item, size_t header_size) {
  DeflateRecipe recipe;
  // Items have valid kinds.
  QUIRE_CHECK(SetDeflateRecipeKind(item.recipe_kind, recipe).ok());
  recipe.text_size = item.text_size_bytes;
  recipe.member_size = item.size_bytes - header_size;
  return recipe;
}

absl::Status CheckMember(const DepositItem& item, const DepositHeader& header) {
  if (item.size_bytes <= header.bytes.size() ||
      item.text_size_bytes > kDepositMemberTextSizeMax) {
    return Damaged(absl::StrCat(
        "a member of ", item.size_bytes, " bytes has a header of ",
        header.bytes.size(), ", and ", item.text_size_bytes, " bytes of text"));
  }
  return CheckDeflateRecipe(RecipeOf(item, header.bytes.size()));
}

// Makes items of the integers of a page.
class ItemParser {
 public:
  // All must outlive it.
  ItemParser(const std::vector<uint32_t>& recipes,
             const std::vector<DepositHeader>& headers,
             const DepositTotals& totals, uint64_t text_offset,
             DocumentEndAt document_end)
      : recipes_(recipes),
        headers_(headers),
        left_(totals),
        text_offset_(text_offset),
        document_end_(document_end) {}

  // Those of one item.
  struct Codes {
    uint64_t kind = 0;
    uint64_t size = 0;
    uint64_t text = 0;
  };

  absl::StatusOr<DepositItem> Next(const Codes& codes) {
    DepositItem item = {.size_bytes = codes.size};
    if (item.size_bytes == 0 || item.size_bytes > left_.size_bytes) {
      return Damaged(absl::StrCat("an item has ", item.size_bytes, " bytes of ",
                                  left_.size_bytes));
    }
    QUIRE_ASSIGN_OR_RETURN(item.text_size_bytes, TextSize(codes));
    if (item.text_size_bytes > left_.text_size_bytes) {
      return Damaged(absl::StrCat("an item has ", item.text_size_bytes,
                                  " bytes of text, of ",
                                  left_.text_size_bytes));
    }
    if (codes.kind == kLiteralCode) {
      if (item.size_bytes > left_.literal_size_bytes) {
        return Damaged(absl::StrCat("a literal has ", item.size_bytes,
                                    " bytes of ", left_.literal_size_bytes));
      }
      left_.literal_size_bytes -= item.size_bytes;
    } else {
      item.kind = codes.kind == kTextCode ? DepositItem::Kind::kText
                                          : DepositItem::Kind::kMember;
    }
    left_.size_bytes -= item.size_bytes;
    left_.text_size_bytes -= item.text_size_bytes;
    text_offset_ += item.text_size_bytes;
    return item;
  }

  absl::Status SetMember(uint64_t kind, uint64_t header, uint64_t time,
                         DepositItem& item) {
    if (kind - kFirstMemberCode >= recipes_.size() ||
        header >= headers_.size() || time > UINT32_MAX) {
      return Damaged("a member has a recipe, header or time that cannot exist");
    }
    item.recipe_kind = recipes_[kind - kFirstMemberCode];
    item.header = static_cast<uint32_t>(header);
    mtime_ += static_cast<uint32_t>(UnZigZag(time));
    item.mtime = mtime_;
    return CheckMember(item, headers_[header]);
  }

  // Sums over the items that are still to come.
  const DepositTotals& left() const { return left_; }

 private:
  absl::StatusOr<uint64_t> TextSize(const Codes& codes) const {
    if (codes.kind == kTextCode) {
      return codes.text == 0
                 ? absl::StatusOr<uint64_t>(codes.size)
                 : Damaged("a text item has another size of its text");
    }
    if (codes.text > 0) {
      return codes.text - 1;
    }
    return left_.text_size_bytes > 0
               ? absl::StatusOr<uint64_t>(document_end_(text_offset_) -
                                          text_offset_)
               : Damaged("an item has the text of no document");
  }

  const std::vector<uint32_t>& recipes_;
  const std::vector<DepositHeader>& headers_;
  DepositTotals left_;
  uint64_t text_offset_;
  const DocumentEndAt document_end_;
  uint32_t mtime_ = 0;
};

// Returns the index of the value in the table, to which it is added once.
uint64_t NumberIn(uint64_t value,
                  absl::flat_hash_map<uint64_t, uint64_t>& numbers,
                  std::vector<uint64_t>& table) {
  const auto [entry, is_new] = numbers.try_emplace(value, table.size());
  if (is_new) {
    table.push_back(value);
  }
  return entry->second;
}

void AppendHeader(const DepositHeader& header, std::string& page) {
  AppendVarint(header.bytes.size(), page);
  page.append(header.bytes);
  AppendVarint(header.text_size_at, page);
  AppendVarint(header.member_size_at, page);
}

}  // namespace

void DepositTotals::Add(const DepositItem& item) {
  size_bytes += item.size_bytes;
  text_size_bytes += item.text_size_bytes;
  literal_size_bytes +=
      item.kind == DepositItem::Kind::kLiteral ? item.size_bytes : 0;
}

DepositHeader TakeApartHeader(ByteView bytes, DepositItem& item) {
  DepositHeader header;
  header.bytes = std::string(AsText(bytes));
  const auto at = [&header](size_t offset) {
    return AsMutableBytes(header.bytes).subspan(offset).data();
  };
  item.mtime = LoadLittleEndian<uint32_t>(at(kTimeAt));
  StoreLittleEndian(uint32_t{0}, at(kTimeAt));
  const size_t sizes_at = FindSkipLength(bytes);
  if (sizes_at != 0) {
    const auto text_size = static_cast<uint32_t>(item.text_size_bytes);
    const auto member_size = static_cast<uint32_t>(item.size_bytes);
    for (const size_t offset : {sizes_at, sizes_at + sizeof(uint32_t)}) {
      const auto found = LoadLittleEndian<uint32_t>(at(offset));
      if (found == text_size && header.text_size_at == 0) {
        header.text_size_at = static_cast<uint32_t>(offset);
        StoreLittleEndian(uint32_t{0}, at(offset));
      } else if (found == member_size && header.member_size_at == 0) {
        header.member_size_at = static_cast<uint32_t>(offset);
        StoreLittleEndian(uint32_t{0}, at(offset));
      }
    }
  }
  return header;
}

absl::StatusOr<DepositPage> DepositPage::Parse(ByteView page,
                                               const DepositTotals& totals,
                                               uint64_t text_offset,
                                               DocumentEndAt document_end) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(page));
  if (count == 0 || count > kDepositPageItemsMax) {
    return Damaged(absl::StrCat("a page has ", count, " items, expected 1 to ",
                                kDepositPageItemsMax));
  }
  DepositPage parsed;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> recipes,
                         TakeRecipeKinds(page));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView kinds, ColumnView::Take(page, count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes, ColumnView::Take(page, count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView texts, ColumnView::Take(page, count));
  QUIRE_ASSIGN_OR_RETURN(parsed.headers_, TakeHeaders(page, count));
  uint64_t member_count = 0;
  for (uint64_t i = 0; i < count; ++i) {
    member_count += kinds[i] >= kFirstMemberCode ? 1 : 0;
  }
  QUIRE_ASSIGN_OR_RETURN(const ColumnView headers,
                         ColumnView::Take(page, member_count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView times,
                         ColumnView::Take(page, member_count));
  ItemParser items(recipes, parsed.headers_, totals, text_offset, document_end);
  uint64_t member = 0;
  parsed.items_.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(
        DepositItem item,
        items.Next({.kind = kinds[i], .size = sizes[i], .text = texts[i]}));
    if (item.kind == DepositItem::Kind::kMember) {
      QUIRE_RETURN_IF_ERROR(
          items.SetMember(kinds[i], headers[member], times[member], item));
      ++member;
    }
    parsed.items_.push_back(item);
  }
  const DepositTotals& left = items.left();
  if (!page.empty() || left != DepositTotals()) {
    return Damaged(absl::StrCat(
        "the items of a page lack ", left.size_bytes, " bytes of the file, ",
        left.text_size_bytes, " of text and ", left.literal_size_bytes,
        " of literals, and ", page.size(), " bytes follow"));
  }
  return parsed;
}

uint64_t DepositPage::MemoryBytes() const {
  uint64_t size_bytes = sizeof(*this) + items_.capacity() * sizeof(DepositItem);
  for (const DepositHeader& header : headers_) {
    size_bytes += sizeof(header) + header.bytes.capacity();
  }
  return size_bytes;
}

std::string EncodeDepositPage(std::span<const DepositItem> items,
                              std::span<const DepositHeader> headers,
                              uint64_t text_offset,
                              DocumentEndAt document_end) {
  std::vector<uint64_t> recipes;
  std::vector<uint64_t> used_headers;
  std::vector<uint64_t> kinds;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> texts;
  std::vector<uint64_t> header_numbers;
  std::vector<uint64_t> times;
  absl::flat_hash_map<uint64_t, uint64_t> recipe_numbers;
  absl::flat_hash_map<uint64_t, uint64_t> numbers_of_headers;
  uint32_t mtime = 0;
  for (const DepositItem& item : items) {
    sizes.push_back(item.size_bytes);
    const bool is_text = item.kind == DepositItem::Kind::kText;
    const bool is_derived = is_text || (item.text_size_bytes > 0 &&
                                        document_end(text_offset) ==
                                            text_offset + item.text_size_bytes);
    texts.push_back(is_derived ? 0 : item.text_size_bytes + 1);
    text_offset += item.text_size_bytes;
    if (item.kind == DepositItem::Kind::kMember) {
      kinds.push_back(kFirstMemberCode +
                      NumberIn(item.recipe_kind, recipe_numbers, recipes));
      header_numbers.push_back(
          NumberIn(item.header, numbers_of_headers, used_headers));
      times.push_back(ZigZag(static_cast<int32_t>(item.mtime - mtime)));
      mtime = item.mtime;
    } else {
      kinds.push_back(is_text ? kTextCode : kLiteralCode);
    }
  }
  std::string page;
  AppendVarint(items.size(), page);
  AppendVarint(recipes.size(), page);
  for (const uint64_t recipe : recipes) {
    AppendVarint(recipe, page);
  }
  AppendColumn(kinds, page);
  AppendColumn(sizes, page);
  AppendColumn(texts, page);
  AppendVarint(used_headers.size(), page);
  for (const uint64_t header : used_headers) {
    AppendHeader(headers[header], page);
  }
  AppendColumn(header_numbers, page);
  AppendColumn(times, page);
  return page;
}

absl::Status RecreateDepositMember(const DepositItem& item,
                                   const DepositHeader& header,
                                   DeflateEncoder::Source source,
                                   DeflateEncoder& encoder, MutableByteView out,
                                   absl::FunctionRef<bool()> cancelled) {
  const size_t header_size = header.bytes.size();
  std::ranges::copy(AsBytes(header.bytes), out.begin());
  StoreLittleEndian(item.mtime, &out[kTimeAt]);
  if (header.text_size_at != 0) {
    StoreLittleEndian(static_cast<uint32_t>(item.text_size_bytes),
                      &out[header.text_size_at]);
  }
  if (header.member_size_at != 0) {
    StoreLittleEndian(static_cast<uint32_t>(item.size_bytes),
                      &out[header.member_size_at]);
  }
  return RecreateDeflateMember(RecipeOf(item, header_size), source, encoder,
                               out.subspan(header_size), cancelled);
}

}  // namespace quire
