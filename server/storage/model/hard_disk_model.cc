// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/hard_disk_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quire {
namespace {

double ToMs(DriveTime time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Rounds up, so that no command is reported before its end.
DriveTime FromMs(double ms) {
  return DriveTime(static_cast<int64_t>(std::ceil(ms * 1e6)));
}

}  // namespace

HardDiskModel::HardDiskModel(const HardDiskOptions& options)
    : options_(options), layout_(options.geometry), arm_(layout_.Find(0)) {
  read_ahead_.place = arm_;
}

double HardDiskModel::SequentialMs(uint64_t size_bytes) const {
  return layout_.TransferMs(layout_.Find(0), size_bytes);
}

void HardDiskModel::Submit(DriveTime now, const DriveCommand& command) {
  DriveCommand inside = command;
  inside.address %= capacity_size_bytes();
  queue_.push_back({inside, layout_.Find(inside.address), ToMs(now)});
  if (!active_.has_value()) {
    Begin(ToMs(now) + options_.host_ms + options_.command_ms);
  }
}

std::optional<DriveTime> HardDiskModel::NextEnd() const {
  if (!active_.has_value()) {
    return std::nullopt;
  }
  return FromMs(active_->end_ms);
}

std::vector<uint64_t> HardDiskModel::Advance(DriveTime now) {
  std::vector<uint64_t> ended;
  while (active_.has_value() && FromMs(active_->end_ms) <= now) {
    ended.push_back(active_->id);
    const double end_ms = active_->end_ms;
    active_.reset();
    if (!queue_.empty()) {
      Begin(end_ms + options_.turnaround_ms);
    }
  }
  return ended;
}

double HardDiskModel::NextPass(const DiskPlace& place, double at_ms) const {
  const double turn = options_.geometry.turn_ms;
  const double turns = std::ceil(at_ms / turn - place.angle);
  return (turns + place.angle) * turn;
}

double HardDiskModel::ReadyMs(const Waiting& waiting, double now_ms,
                              double guard_ms) const {
  const double arrival =
      now_ms + layout_.SeekMs(arm_, waiting.place) + guard_ms;
  const double sought =
      NextPass(waiting.place, arrival) +
      layout_.TransferMs(waiting.place, waiting.command.size_bytes);
  const std::optional<double> read_on = ReadOnMs(waiting.command, now_ms);
  return read_on.has_value() ? std::min(*read_on, sought) : sought;
}

void HardDiskModel::Begin(double now_ms) {
  // Commands that do not fit into the drive's queue wait outside, first come
  // first served.
  const size_t visible =
      std::min<size_t>(queue_.size(), options_.queue_depth_max);
  const bool some_urgent =
      options_.priorities &&
      std::any_of(queue_.begin(),
                  queue_.begin() + static_cast<ptrdiff_t>(visible),
                  [](const Waiting& w) { return w.command.urgent; });
  size_t best = visible;
  double best_ms = 0;
  for (size_t i = 0; i < visible; ++i) {
    if (some_urgent && !queue_[i].command.urgent) {
      continue;
    }
    const double waited = std::max(now_ms - queue_[i].since_ms, 0.0);
    const double ms = visible == 1
                          ? 0
                          : ReadyMs(queue_[i], now_ms, options_.guard_ms) -
                                options_.ageing * waited;
    if (best == visible || ms < best_ms) {
      best = i;
      best_ms = ms;
    }
  }
  const Waiting chosen = queue_[best];
  queue_.erase(queue_.begin() + static_cast<ptrdiff_t>(best));
  Serve(chosen, now_ms);
}

void HardDiskModel::Serve(const Waiting& chosen, double start_ms) {
  const DriveCommand& command = chosen.command;
  const double end_ms = ReadyMs(chosen, start_ms, 0);
  active_ = Active{command.id, end_ms};
  const uint64_t behind =
      (command.address + command.size_bytes) % capacity_size_bytes();
  const std::optional<double> read_on = ReadOnMs(command, start_ms);
  arm_ = layout_.Find(behind);
  if (read_on.has_value() && *read_on <= end_ms) {
    // The platter may have passed this position long ago.
    const uint64_t distance = behind - read_ahead_.start;
    read_ahead_.since_ms +=
        PausedMs(start_ms) + layout_.TransferMs(read_ahead_.place, distance);
  } else {
    read_ahead_.since_ms = end_ms;
  }
  read_ahead_.start = behind;
  read_ahead_.place = arm_;
}

double HardDiskModel::PausedMs(double now_ms) const {
  const double full_ms =
      read_ahead_.since_ms +
      layout_.TransferMs(read_ahead_.place, options_.read_ahead_size_bytes);
  return std::max(now_ms - full_ms, 0.0);
}

std::optional<double> HardDiskModel::ReadOnMs(const DriveCommand& command,
                                              double now_ms) const {
  if (command.address < read_ahead_.start ||
      command.address - read_ahead_.start > options_.read_ahead_size_bytes) {
    return std::nullopt;
  }
  const uint64_t distance =
      command.address + command.size_bytes - read_ahead_.start;
  const double passed_ms = read_ahead_.since_ms + PausedMs(now_ms) +
                           layout_.TransferMs(read_ahead_.place, distance);
  return std::max(passed_ms, now_ms);
}

}  // namespace quire
