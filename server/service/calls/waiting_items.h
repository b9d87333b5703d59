// SPDX-License-Identifier: GPL-3.0-or-later
//
// The waiting items of a batch, in the order in which a disk reads them.
#ifndef QUIRE_SERVER_SERVICE_CALLS_WAITING_ITEMS_H_
#define QUIRE_SERVER_SERVICE_CALLS_WAITING_ITEMS_H_

#include <cstdint>
#include <vector>

#include "server/service/calls/batch_item.h"

namespace quire {

// Items leave in ascending order of their offsets, from that of the last one,
// then from the lowest; items of one offset in the order of their arrival.
// Without items it holds no memory. Thread-compatible.
class WaitingItems {
 public:
  bool empty() const { return this_sweep_.empty() && next_sweep_.empty(); }

  void Push(const WaitingItem& item);

  // REQUIRES: !empty().
  WaitingItem Pop();

 private:
  struct Entry {
    uint64_t offset = 0;
    // Order of arrival. Items that wait together are fewer than it counts.
    uint32_t number = 0;
    // In `items_`.
    uint32_t index = 0;
  };

  static bool LeavesAfter(const Entry& a, const Entry& b);

  // Heaps, which move small entries; the first to leave is in front.
  std::vector<Entry> this_sweep_;
  std::vector<Entry> next_sweep_;
  std::vector<WaitingItem> items_;
  // Indices of unused elements of `items_`.
  std::vector<uint32_t> unused_;
  // Offset of the item that left last.
  uint64_t offset_ = 0;
  uint32_t next_number_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_WAITING_ITEMS_H_
