// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposits/deposit_draft.h"

#include <utility>

namespace quire {

DepositDraft::DepositDraft(File file) : file_(std::move(file)) {
  for (const DepositItem& item : file_.items) {
    totals_.Add(item);
  }
}

bool DepositDraft::Split(uint64_t text_size_bytes,
                         std::vector<DepositItem>& items) {
  DepositItem& rest = file_.items[next_];
  DepositItem first = {.kind = rest.kind, .text_size_bytes = text_size_bytes};
  if (rest.kind == DepositItem::Kind::kText) {
    first.size_bytes = text_size_bytes;
  } else {
    // Halves, so that it can be split again.
    first.kind = DepositItem::Kind::kLiteral;
    first.size_bytes = rest.size_bytes / 2;
    rest = {.size_bytes = rest.size_bytes,
            .text_size_bytes = rest.text_size_bytes};
    if (first.size_bytes == 0) {
      return false;
    }
  }
  rest.size_bytes -= first.size_bytes;
  rest.text_size_bytes -= text_size_bytes;
  offset_ += first.size_bytes;
  items.push_back(first);
  return true;
}

DepositDraft::Part DepositDraft::Take(uint64_t text_size_bytes) {
  Part part = {.begins = file_.begins && offset_ == 0, .offset = offset_};
  uint64_t left = text_size_bytes;
  while (next_ < file_.items.size() && state() != DepositState::kAbandoned) {
    const DepositItem& item = file_.items[next_];
    if (item.text_size_bytes > left) {
      if (left > 0 && !Split(left, part.items)) {
        Abandon();
      }
      left = 0;
      break;
    }
    left -= item.text_size_bytes;
    offset_ += item.size_bytes;
    part.items.push_back(item);
    ++next_;
  }
  part.ends = next_ == file_.items.size();
  if (left > 0) {
    Abandon();
  }
  return part;
}

}  // namespace quire
