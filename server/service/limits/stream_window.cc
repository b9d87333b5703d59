// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/stream_window.h"

#include <algorithm>

#include "codecs/base/status_macros.h"

namespace quire {

absl::StatusOr<StreamWindow> StreamWindow::Open(Admission& admission,
                                                absl::string_view client,
                                                Sizes sizes) {
  StreamWindow window;
  sizes.most_bytes = std::max(sizes.most_bytes, sizes.least_bytes);
  window.sizes_ = sizes;
  QUIRE_ASSIGN_OR_RETURN(
      window.ticket_,
      admission.AdmitWindow(client, sizes.least_bytes, sizes.start_bytes));
  return window;
}

absl::Status StreamWindow::Raise(uint64_t least_bytes) {
  if (least_bytes > ticket_.size_bytes()) {
    QUIRE_RETURN_IF_ERROR(ticket_.Grow(least_bytes - ticket_.size_bytes()));
  }
  sizes_.least_bytes = std::max(sizes_.least_bytes, least_bytes);
  sizes_.most_bytes = std::max(sizes_.most_bytes, least_bytes);
  return absl::OkStatus();
}

bool StreamWindow::TryTake(uint64_t size_bytes) {
  if (ticket_.size_bytes() - used_bytes_ < size_bytes) {
    was_full_ = true;
    return false;
  }
  used_bytes_ += size_bytes;
  return true;
}

void StreamWindow::GiveBack(uint64_t size_bytes) {
  used_bytes_ -= size_bytes;
  sent_bytes_ += size_bytes;
  const uint64_t before_bytes = ticket_.size_bytes();
  // Messages that the client has not requested may be on their way to it, but
  // at most one window: past that it has read.
  const bool is_wanted = was_full_ && sent_bytes_ > before_bytes;
  ticket_.Fit(
      std::max(used_bytes_, sizes_.least_bytes),
      is_wanted ? std::min(2 * before_bytes, sizes_.most_bytes) : before_bytes);
  if (ticket_.size_bytes() != before_bytes) {
    sent_bytes_ = 0;
    was_full_ = false;
  }
}

uint64_t StreamWindow::message_size_bytes() const {
  const uint64_t size_bytes = ticket_.size_bytes();
  return size_bytes == sizes_.most_bytes
             ? size_bytes
             : std::max(size_bytes / 2, sizes_.least_bytes);
}

}  // namespace quire
