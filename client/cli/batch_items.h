// SPDX-License-Identifier: Apache-2.0
//
// Parses the input of `quire batch`: items, separated by newlines or ended by
// NUL bytes.
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

// Upper bound on the size of an item; ids on the server are shorter.
inline constexpr size_t kBatchItemSizeBytesMax = size_t{1} << 20;

// Splits input that arrives in pieces into items. Holds one piece and one item.
// Thread-compatible.
class ItemSplitter {
 public:
  // With `null_separated` every item ends with a NUL byte, else with a newline,
  // and empty lines are not items. The last item may lack its end.
  explicit ItemSplitter(bool null_separated)
      : null_separated_(null_separated) {}

  void Feed(absl::string_view input) {
    input_.append(input.data(), input.size());
  }

  // Ends the input: the rest without an end is an item.
  void Finish() { finished_ = true; }

  // Returns the next item; nothing until more input is fed, or at the end.
  // Errors: InvalidArgument  an item of more than kBatchItemSizeBytesMax;
  // final.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  const bool null_separated_;
  std::string input_;
  // Start of the next item, and the position up to which its end was searched.
  size_t start_ = 0;
  size_t searched_ = 0;
  bool finished_ = false;
};

// Counts the items that ItemSplitter would return, much faster.
// Thread-compatible.
class ItemCounter {
 public:
  explicit ItemCounter(bool null_separated) : null_separated_(null_separated) {}

  void Feed(absl::string_view input);

  // Returns the count if the input ended here.
  uint64_t Count() const { return ended_count_ + (in_item_ ? 1 : 0); }

 private:
  const bool null_separated_;
  uint64_t ended_count_ = 0;
  // True if there are bytes after the last delimiter.
  bool in_item_ = false;
};

enum class ItemForm { kId, kOrdinal, kRange };

// Parses an item; of form kId as ParseDocumentItem(). Numbers and sizes may
// have blanks around them, so a line may end with a carriage return; sizes may
// have units. Thread-safe. Errors: InvalidArgument  not a number, or not
// "OFFSET LENGTH".
absl::StatusOr<ReadTarget> ParseBatchItem(ItemForm form,
                                          absl::string_view item);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_BATCH_ITEMS_H_
