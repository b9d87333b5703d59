// SPDX-License-Identifier: GPL-3.0-or-later
//
// Items of a deposited file (FORMAT.md, "Deposited files"): how its bytes are
// reproduced from the text of a segment.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_PAGE_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_encoder.h"

namespace quire {

// Items of a page.
inline constexpr size_t kDepositPageItemsMax = 4096;
// Text of a member that is reproduced. Members with more are literals.
inline constexpr uint64_t kDepositMemberTextSizeMax = uint64_t{6} << 20;
// Header of a gzip member that is reproduced.
inline constexpr size_t kDepositHeaderSizeMax = 4096;
inline constexpr size_t kGzipHeaderSizeMin = 10;
// Size of a page.
inline constexpr size_t kDepositPageSizeMax = size_t{1} << 20;

// A part of a deposited file.
struct DepositItem {
  enum class Kind : uint8_t {
    // Bytes that the container has.
    kLiteral,
    // A copy of text.
    kText,
    // A gzip member, reproduced from its text.
    kMember,
  };

  Kind kind = Kind::kLiteral;
  // Bytes in the file, at least 1.
  uint64_t size_bytes = 0;
  // Text that the item is made of. A literal may pass over text.
  uint64_t text_size_bytes = 0;
  // Members: DeflateRecipeKind().
  uint32_t recipe_kind = 0;
  // Members: modification time of the header.
  uint32_t mtime = 0;
  // Members: index of the header in a table.
  uint32_t header = 0;

  bool operator==(const DepositItem&) const = default;
};

// Header of gzip members. The bytes of values that depend on the member are
// zeros.
struct DepositHeader {
  // kGzipHeaderSizeMin to kDepositHeaderSizeMax.
  std::string bytes;
  // Offsets of four bytes with the low bits of the size of the member's text,
  // and of the whole member; 0: there are none.
  uint32_t text_size_at = 0;
  uint32_t member_size_at = 0;

  bool operator==(const DepositHeader&) const = default;
};

// Divides the header of a gzip member: `item.mtime` gets the time. REQUIRES: at
// least kGzipHeaderSizeMin bytes; the sizes of `item` are set.
DepositHeader TakeApartHeader(ByteView bytes, DepositItem& item);

// Sums over consecutive items.
struct DepositTotals {
  uint64_t size_bytes = 0;
  uint64_t text_size_bytes = 0;
  uint64_t literal_size_bytes = 0;

  void Add(const DepositItem& item);

  bool operator==(const DepositTotals&) const = default;
};

// Returns the end of the document that has the byte of the segment's text.
using DocumentEndAt = absl::FunctionRef<uint64_t(uint64_t offset)>;

// Consecutive items and their headers. Immutable.
class DepositPage {
 public:
  // `page` is untrusted. The page begins at `text_offset` of the segment's
  // text, and `totals` are those of its items.
  // REQUIRES: text_offset + totals.text_size_bytes is within the segment.
  // Errors: DataLoss.
  static absl::StatusOr<DepositPage> Parse(ByteView page,
                                           const DepositTotals& totals,
                                           uint64_t text_offset,
                                           DocumentEndAt document_end);

  const std::vector<DepositItem>& items() const { return items_; }

  // DepositItem::header is an index in these.
  const std::vector<DepositHeader>& headers() const { return headers_; }

  uint64_t MemoryBytes() const;

 private:
  std::vector<DepositItem> items_;
  std::vector<DepositHeader> headers_;
};

// Encodes a page. `text_offset` and `document_end` are as in Parse(). REQUIRES:
// 1 to kDepositPageItemsMax items; the result fits a part of the container if
// the headers have at most half of that.
std::string EncodeDepositPage(std::span<const DepositItem> items,
                              std::span<const DepositHeader> headers,
                              uint64_t text_offset, DocumentEndAt document_end);

// Reproduces a gzip member of a page in `out` from its text. Does not verify
// the result. REQUIRES: item.kind is kMember, out.size() == item.size_bytes.
// Errors: DataLoss  the text does not give such a member; `out` is undefined.
//         Cancelled  `cancelled` returned true; those of `source`.
absl::Status RecreateDepositMember(
    const DepositItem& item, const DepositHeader& header,
    DeflateEncoder::Source source, DeflateEncoder& encoder, MutableByteView out,
    absl::FunctionRef<bool()> cancelled = DeflateLimits::Never);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_PAGE_H_
