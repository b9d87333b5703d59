// SPDX-License-Identifier: GPL-3.0-or-later
//
// A queue that serves the clients of its items in turn.
#ifndef QUIRE_SERVER_STORAGE_BASE_TURN_QUEUE_H_
#define QUIRE_SERVER_STORAGE_BASE_TURN_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace quire {

// Serves clients that have items in turn; the items of one client leave in
// order of arrival. A turn is worth kTurnCost: a client continues until its
// items have cost that much, and what they cost beyond it is taken off its next
// turns (deficit round robin of Shreedhar and Varghese, "Efficient fair queuing
// using deficit round-robin", 1996, with the cost charged afterwards). A client
// that has no items left forgets its debt, so the queue has no state for
// clients without items.
// An item of a client that had none therefore waits for the items of the other
// clients with a sum of costs of at most kTurnCost + kCostMax each.
// `Item` has the fields `client_id` and `cost`, both uint64_t.
// Thread-compatible.
template <typename Item>
class TurnQueue {
 public:
  static constexpr int64_t kTurnCost = 64 << 10;
  // Costs are raised or lowered to these: items without a cost take turns, too,
  // and no client waits for longer than a few rounds.
  static constexpr int64_t kCostMin = 4 << 10;
  static constexpr int64_t kCostMax = 1 << 20;

  void Push(Item item) {
    const auto [found, is_new] =
        line_of_client_.try_emplace(item.client_id, lines_.end());
    if (is_new) {
      found->second = lines_.emplace(lines_.end());
    }
    found->second->items.push_back(std::move(item));
    ++size_;
  }

  // REQUIRES: !empty().
  Item Pop() {
    // Ends: a line is passed over at most kCostMax / kTurnCost times.
    while (lines_.front().credit <= 0) {
      lines_.front().credit += kTurnCost;
      lines_.splice(lines_.end(), lines_, lines_.begin());
    }
    Line& line = lines_.front();
    Item item = std::move(line.items.front());
    line.items.pop_front();
    --size_;
    line.credit -= static_cast<int64_t>(
        std::clamp<uint64_t>(item.cost, kCostMin, kCostMax));
    if (line.items.empty()) {
      line_of_client_.erase(item.client_id);
      lines_.pop_front();
    }
    return item;
  }

  size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

 private:
  // Items of one client; never empty.
  struct Line {
    std::list<Item> items;
    // Rest of its turn, in cost; the turn ends at 0 or below.
    int64_t credit = kTurnCost;
  };

  size_t size_ = 0;
  // The first has the turn.
  std::list<Line> lines_;
  absl::flat_hash_map<uint64_t, typename std::list<Line>::iterator>
      line_of_client_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_TURN_QUEUE_H_
