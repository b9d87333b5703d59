// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/document_item.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr absl::string_view kOccurrenceMark = "\t@";

}  // namespace

DocumentItem ParseDocumentItem(absl::string_view item) {
  const size_t mark = item.rfind(kOccurrenceMark);
  if (mark == absl::string_view::npos) {
    return {item};
  }
  const absl::string_view number = item.substr(mark + kOccurrenceMark.size());
  uint64_t occurrence = 0;
  // SimpleAtoi() also accepts blanks and signs.
  if (!std::all_of(number.begin(), number.end(),
                   [](char c) {
                     return absl::ascii_isdigit(static_cast<unsigned char>(c));
                   }) ||
      !absl::SimpleAtoi(number, &occurrence)) {
    return {item};
  }
  return {item.substr(0, mark), occurrence};
}

std::string FormatDocumentItem(absl::string_view id,
                               std::optional<uint64_t> occurrence) {
  if (!occurrence.has_value() && !id.empty() &&
      !ParseDocumentItem(id).occurrence.has_value()) {
    return std::string(id);
  }
  return absl::StrCat(id, kOccurrenceMark, occurrence.value_or(0));
}

}  // namespace quire
