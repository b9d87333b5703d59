// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/batch_memory.h"

#include <algorithm>

#include "codecs/base/status_macros.h"

namespace quire {

absl::Status BatchMemory::Arrive(const Arrival& arrival,
                                 uint64_t window_most_bytes) {
  const uint64_t items_bytes = BytesOf(arrival.count);
  if (reserved_bytes_ > 0) {
    items_.Shrink(std::exchange(reserved_bytes_, 0) - items_bytes);
  } else if (arrival.count.items > 0) {
    QUIRE_ASSIGN_OR_RETURN(items_, admission_.Admit(client_, items_bytes,
                                                    Admission::Use::kStream));
  }
  unanswered_count_ += arrival.count.items;
  if (arrival.count.items == 0) {
    return absl::OkStatus();
  }
  if (window_.is_open()) {
    return window_.Raise(arrival.largest_bytes);
  }
  QUIRE_ASSIGN_OR_RETURN(
      window_, StreamWindow::Open(admission_, client_,
                                  {.least_bytes = arrival.largest_bytes,
                                   .start_bytes = std::min(window_most_bytes,
                                                           arrival.all_bytes),
                                   .most_bytes = window_most_bytes}));
  return absl::OkStatus();
}

bool BatchMemory::TryReserve(uint64_t count_max) {
  if (unanswered_count_ == 0) {
    return true;
  }
  const uint64_t size_bytes = count_max * kItemBytes;
  if (!items_.TryGrow(size_bytes)) {
    return false;
  }
  reserved_bytes_ = size_bytes;
  return true;
}

void BatchMemory::Sent(Counts count, uint64_t size_bytes) {
  window_.GiveBack(size_bytes);
  unanswered_count_ -= count.items;
  if (unanswered_count_ > 0) {
    items_.Shrink(BytesOf(count));
    return;
  }
  window_ = StreamWindow();
  items_.Release();
  reserved_bytes_ = 0;
}

}  // namespace quire
