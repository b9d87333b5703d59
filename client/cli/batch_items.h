// SPDX-License-Identifier: Apache-2.0
//
// What `quire batch` reads: items, one a line or ended by NUL bytes.
#ifndef QUIRE_CLIENT_CLI_BATCH_ITEMS_H_
#define QUIRE_CLIENT_CLI_BATCH_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/quire/read_target.h"

namespace quire {

// The longest item that is taken; ids on the server are shorter.
inline constexpr size_t kBatchItemSizeBytesMax = size_t{1} << 20;

// Cuts input that comes in pieces into items. Holds one piece and one item.
// Thread-compatible.
class ItemSplitter {
 public:
  // With `null_separated` every item ends with a NUL byte, else with a newline,
  // and empty lines are no items. The end of the last one may be missing.
  explicit ItemSplitter(bool null_separated)
      : null_separated_(null_separated) {}

  void Feed(absl::string_view input) {
    input_.append(input.data(), input.size());
  }

  // Nothing more will be fed: what is left without an end is an item.
  void Finish() { finished_ = true; }

  // The next item; nothing until more is fed, or at the end.
  // Errors: InvalidArgument  an item of more than kBatchItemSizeBytesMax;
  // final.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  const bool null_separated_;
  std::string input_;
  // Where the next item starts, and how far its end was looked for.
  size_t start_ = 0;
  size_t searched_ = 0;
  bool finished_ = false;
};

// Counts the items that ItemSplitter would cut, much faster.
// Thread-compatible.
class ItemCounter {
 public:
  explicit ItemCounter(bool null_separated) : null_separated_(null_separated) {}

  void Feed(absl::string_view input);

  // If the input were at its end.
  uint64_t Count() const { return ended_count_ + (in_item_ ? 1 : 0); }

 private:
  const bool null_separated_;
  uint64_t ended_count_ = 0;
  // Bytes since the last delimiter.
  bool in_item_ = false;
};

enum class ItemForm { kId, kOrdinal, kRange };

// What an item asks for. Ids are taken as they are, but for a tab, '@' and a
// number at their end: ID<TAB>@N is the N-th of all documents of that id, from
// 0, in the order of the archive. Numbers and sizes may have
// blanks around them, so a line that ends with a carriage return is fine; sizes
// may have units. Thread-safe.
// Errors: InvalidArgument  no number, or not "OFFSET LENGTH".
absl::StatusOr<ReadTarget> ParseBatchItem(ItemForm form,
                                          absl::string_view item);

// The item of form kId that asks for number `occurrence`, from 0, of the
// documents of that id; without one for the document that the id means by
// itself. The empty id, whose line would be skipped, and ids that end like an
// item with an occurrence always get one, 0. Thread-safe.
std::string FormatBatchItem(absl::string_view id,
                            std::optional<uint64_t> occurrence);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_BATCH_ITEMS_H_
