// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/waiting_items.h"

#include <algorithm>
#include <utility>

namespace quire {

bool WaitingItems::LeavesAfter(const Entry& a, const Entry& b) {
  // The difference is right also after the numbers wrapped around.
  return a.offset != b.offset ? a.offset > b.offset
                              : static_cast<int32_t>(a.number - b.number) > 0;
}

void WaitingItems::Push(const WaitingItem& item) {
  Entry entry{.offset = item.target.range.offset.value,
              .number = next_number_++};
  if (unused_.empty()) {
    entry.index = static_cast<uint32_t>(items_.size());
    items_.push_back(item);
  } else {
    entry.index = unused_.back();
    unused_.pop_back();
    items_[entry.index] = item;
  }
  std::vector<Entry>& sweep =
      entry.offset >= offset_ ? this_sweep_ : next_sweep_;
  sweep.push_back(entry);
  std::ranges::push_heap(sweep, LeavesAfter);
}

WaitingItem WaitingItems::Pop() {
  if (this_sweep_.empty()) {
    this_sweep_.swap(next_sweep_);
  }
  std::ranges::pop_heap(this_sweep_, LeavesAfter);
  const Entry entry = this_sweep_.back();
  this_sweep_.pop_back();
  offset_ = entry.offset;
  const WaitingItem item = items_[entry.index];
  unused_.push_back(entry.index);
  if (empty()) {
    for (std::vector<Entry>* sweep : {&this_sweep_, &next_sweep_}) {
      std::exchange(*sweep, {});
    }
    std::exchange(items_, {});
    std::exchange(unused_, {});
  }
  return item;
}

}  // namespace quire
