// SPDX-License-Identifier: Apache-2.0
#include "client/cli/batch_items.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kShownSizeBytesMax = 100;
// Consumed input is erased in pieces of at least this size.
constexpr size_t kDropSizeBytes = size_t{64} << 10;

std::string Shown(absl::string_view item) {
  return QuotedText(item, kShownSizeBytesMax);
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ItemSplitter::Next() {
  const char delimiter = null_separated_ ? '\0' : '\n';
  for (;;) {
    const size_t found = input_.find(delimiter, searched_);
    const bool has_end = found != std::string::npos;
    const size_t end = has_end ? found : input_.size();
    if (end - start_ > kBatchItemSizeBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("an item must be at most ", kBatchItemSizeBytesMax,
                       " bytes long, got ", end - start_,
                       " without an end; do the items end with ",
                       null_separated_ ? "NUL bytes, as --null says?"
                                       : "newlines? --null is for NUL bytes"));
    }
    if (!has_end && (!finished_ || end == start_)) {
      searched_ = end;
      return std::optional<std::string>();
    }
    std::string item = input_.substr(start_, end - start_);
    start_ = has_end ? end + 1 : end;
    if (start_ >= kDropSizeBytes) {
      input_.erase(0, start_);
      start_ = 0;
    }
    searched_ = start_;
    if (!item.empty() || null_separated_) {
      return std::optional<std::string>(std::move(item));
    }
  }
}

void ItemCounter::Feed(absl::string_view input) {
  const char delimiter = null_separated_ ? '\0' : '\n';
  for (size_t end = input.find(delimiter); end != absl::string_view::npos;
       end = input.find(delimiter)) {
    ended_count_ += null_separated_ || in_item_ || end > 0 ? 1 : 0;
    in_item_ = false;
    input.remove_prefix(end + 1);
  }
  in_item_ |= !input.empty();
}

absl::StatusOr<ReadTarget> ParseBatchItem(ItemForm form,
                                          absl::string_view item) {
  if (form == ItemForm::kId) {
    const DocumentItem parts = ParseDocumentItem(item);
    DocumentKey key = DocumentKey::Id(std::string(parts.id));
    key.occurrence = parts.occurrence;
    return key;
  }
  if (form == ItemForm::kOrdinal) {
    uint64_t ordinal = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(item), &ordinal)) {
      return absl::InvalidArgumentError(
          absl::StrCat("an item must be the number of a document, a whole ",
                       "number from 0, got ", Shown(item)));
    }
    return DocumentKey::Ordinal(ordinal);
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(item, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty());
  if (words.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an item must be OFFSET LENGTH, as in 1GiB 64KiB, got ", Shown(item)));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t offset, ParseByteSize(words[0]));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, ParseByteSize(words[1]));
  return ByteSpan{offset, size_bytes};
}

}  // namespace quire
