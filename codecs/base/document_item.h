// SPDX-License-Identifier: Apache-2.0
//
// Grammar of lines that name documents: output of `quire ls`, input of `quire
// batch`, `quired redact` and `quired serve --withdrawn`.
#ifndef QUIRE_CODECS_BASE_DOCUMENT_ITEM_H_
#define QUIRE_CODECS_BASE_DOCUMENT_ITEM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// An id is used byte for byte, except for a tab, '@' and a number at its end:
// ID<TAB>@N is the N-th of all documents with that id, from 0, in the order of
// the archive.
struct DocumentItem {
  // Part of the text that was parsed.
  absl::string_view id;
  std::optional<uint64_t> occurrence = {};
};

// Accepts any text. Thread-safe.
DocumentItem ParseDocumentItem(absl::string_view item);

// Returns the item for number `occurrence`, from 0, of the documents with that
// id; without `occurrence`, for the id alone. The empty id, whose line would be
// skipped, and ids that end like an item with an occurrence always get an
// occurrence of 0. Thread-safe.
std::string FormatDocumentItem(absl::string_view id,
                               std::optional<uint64_t> occurrence);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_DOCUMENT_ITEM_H_
