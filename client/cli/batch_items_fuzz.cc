// SPDX-License-Identifier: Apache-2.0
//
// Splits any input of `quire batch` in any pieces: the items are the same, and
// each parses to what it says.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/batch_items.h"
#include "client/cli/shown_text.h"
#include "codecs/base/check.h"
#include "codecs/base/document_item.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Returns nothing if the input is rejected.
std::optional<std::vector<std::string>> Split(bool null_separated,
                                              absl::string_view input,
                                              size_t piece_size) {
  ItemSplitter splitter(null_separated);
  std::vector<std::string> items;
  bool finished = false;
  while (!finished) {
    finished = input.empty();
    if (finished) {
      splitter.Finish();
    } else {
      splitter.Feed(input.substr(0, piece_size));
      input.remove_prefix(std::min(piece_size, input.size()));
    }
    for (;;) {
      auto item = splitter.Next();
      if (!item.ok()) {
        return std::nullopt;
      }
      if (!item->has_value()) {
        break;
      }
      items.push_back(**std::move(item));
    }
  }
  return items;
}

void CheckItem(absl::string_view item) {
  const auto key = std::get<DocumentKey>(*ParseBatchItem(ItemForm::kId, item));
  const auto& id = std::get<std::string>(key.name);
  QUIRE_CHECK(key.occurrence.has_value() ? item.size() > id.size()
                                         : id == std::string(item));
  for (const std::optional<uint64_t> occurrence :
       {std::optional<uint64_t>(), std::optional<uint64_t>(item.size())}) {
    const std::string formatted = FormatDocumentItem(item, occurrence);
    const auto again =
        std::get<DocumentKey>(*ParseBatchItem(ItemForm::kId, formatted));
    QUIRE_CHECK(std::get<std::string>(again.name) == std::string(item));
    QUIRE_CHECK(again.occurrence.value_or(0) == occurrence.value_or(0));
  }
  for (const ItemForm form : {ItemForm::kOrdinal, ItemForm::kRange}) {
    const auto target = ParseBatchItem(form, item);
    QUIRE_CHECK(target.ok() || !target.status().message().empty());
  }
  QUIRE_CHECK(IsUtf8(PrintableText(item)));
  QUIRE_CHECK(IsUtf8(JsonBytes("id", item)));
  const std::string name = SafeFileName(item);
  QUIRE_CHECK(!name.empty() && name.size() <= 200 && name[0] != '.' &&
              name.find('/') == std::string::npos &&
              name.find('\0') == std::string::npos);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const bool null_separated = (data[0] & 1) != 0;
  const size_t piece_size = size_t{data[1]} + 1;
  const absl::string_view input(reinterpret_cast<const char*>(data + 2),
                                size - 2);
  const auto items = quire::Split(null_separated, input, piece_size);
  QUIRE_CHECK(items == quire::Split(null_separated, input, size));
  if (items.has_value()) {
    for (const std::string& item : *items) {
      quire::CheckItem(item);
    }
  }
  return 0;
}
