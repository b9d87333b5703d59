// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/solid_state_model.h"

#include <algorithm>

namespace quire {

SolidStateModel::SolidStateModel(const SolidStateOptions& options)
    : options_(options),
      channels_(std::max(options.channel_count, 1U), DriveTime(0)) {}

void SolidStateModel::Submit(DriveTime now, const DriveCommand& command) {
  const auto channel = std::min_element(channels_.begin(), channels_.end());
  const DriveTime ready =
      std::max(now, *channel) +
      DriveTime(static_cast<int64_t>(options_.latency_ms * 1e6));
  *channel = ready;
  bus_free_ = std::max(ready, bus_free_) +
              DriveTime(static_cast<int64_t>(command.size_bytes * 1e3 /
                                             options_.megabytes_per_second));
  ends_.push_back({bus_free_, command.id});
}

std::optional<DriveTime> SolidStateModel::NextEnd() const {
  if (ends_.empty()) {
    return std::nullopt;
  }
  return ends_.front().at;
}

std::vector<uint64_t> SolidStateModel::Advance(DriveTime now) {
  std::vector<uint64_t> ended;
  while (!ends_.empty() && ends_.front().at <= now) {
    ended.push_back(ends_.front().id);
    ends_.pop_front();
  }
  return ended;
}

}  // namespace quire
