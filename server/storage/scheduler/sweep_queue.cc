// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/scheduler/sweep_queue.h"

#include <algorithm>

namespace quire {

void SweepQueue::Push(Entry& entry) {
  if (empty()) {
    sweep_served_ = 0;
    sweep_peak_ = 0;
  }
  const bool closed = sweep_served_ >= kSweepFactor * sweep_peak_ + kSweepBase;
  entry.deferred = closed && entry.address >= head_;
  entry.sequence = next_sequence_++;
  (entry.deferred ? deferred_ : current_).insert({entry.address, entry.id});
  sweep_peak_ = std::max<uint64_t>(sweep_peak_, size());
  ClientRequests& client = clients_[entry.client_id];
  if (!client.empty()) {
    clients_by_size_.erase({client.size(), entry.client_id});
  }
  client.insert({entry.sequence, entry.id, reads_});
  clients_by_size_.insert({client.size(), entry.client_id});
}

void SweepQueue::Erase(const Entry& entry) {
  // Deferred requests become current when the sweep wraps.
  if (!entry.deferred || deferred_.erase({entry.address, entry.id}) == 0) {
    current_.erase({entry.address, entry.id});
  }
  const auto client = clients_.find(entry.client_id);
  clients_by_size_.erase({client->second.size(), entry.client_id});
  client->second.erase({entry.sequence, entry.id, 0});
  if (client->second.empty()) {
    clients_.erase(client);
  } else {
    clients_by_size_.insert({client->second.size(), entry.client_id});
  }
}

SweepQueue::Choice SweepQueue::Next() {
  const std::optional<uint64_t> overdue = FindOverdue();
  if (overdue.has_value()) {
    return {*overdue, true};
  }
  auto next = current_.lower_bound({head_, 0});
  if (next == current_.end()) {
    Wrap();
    next = current_.begin();
  }
  return {next->id, false};
}

std::optional<uint64_t> SweepQueue::FindOverdue() const {
  if (clients_.size() < 2 || reads_since_overdue_ + 1 < kOverdueInterval) {
    return std::nullopt;
  }
  int looked_at = 0;
  for (const auto& [count, client_id] : clients_by_size_) {
    const uint64_t if_all_had = count * clients_.size();
    if (if_all_had * 2 >= size() || ++looked_at > kClientsLookedAt) {
      break;
    }
    const Arrival& oldest = *clients_.find(client_id)->second.begin();
    if (reads_ - oldest.reads_before >=
        kOverdueBase + kOverdueFactor * if_all_had) {
      return oldest.id;
    }
  }
  return std::nullopt;
}

void SweepQueue::Wrap() {
  if (current_.size() < deferred_.size()) {
    current_.swap(deferred_);
  }
  current_.insert(deferred_.begin(), deferred_.end());
  deferred_.clear();
  head_ = DeviceAddress{};
  sweep_served_ = 0;
  sweep_peak_ = current_.size();
}

const SweepQueue::Place* SweepQueue::After(const Place& place) const {
  const auto here = current_.upper_bound(place);
  const auto there = deferred_.upper_bound(place);
  if (here == current_.end()) {
    return there == deferred_.end() ? nullptr : &*there;
  }
  return there == deferred_.end() || *here < *there ? &*here : &*there;
}

void SweepQueue::CountRead(DeviceAddress last, bool overdue) {
  ++reads_;
  if (overdue) {
    reads_since_overdue_ = 0;
    return;
  }
  ++reads_since_overdue_;
  ++sweep_served_;
  // Past the last position served, so that the sweep advances even if one block
  // is requested repeatedly.
  head_ = {.fd = last.fd, .offset = FileOffset{last.offset.value + 1}};
  if (last.physical.has_value()) {
    head_ = {.fd = -1, .offset = FileOffset{}, .physical = *last.physical + 1};
  }
}

std::optional<uint64_t> SweepQueue::MeanGapAhead() const {
  auto it = current_.lower_bound({head_, 0});
  if (it == current_.end()) {
    return std::nullopt;
  }
  const DeviceAddress first = it->address;
  for (int i = 0; i < kGapSample; ++i) {
    if (++it == current_.end()) {
      return std::nullopt;
    }
  }
  // In this order all requests between these two are like them.
  const DeviceAddress last = it->address;
  if (first.physical.has_value()) {
    return (*last.physical - *first.physical) / kGapSample;
  }
  if (last.physical.has_value() || last.fd != first.fd) {
    return std::nullopt;
  }
  return (last.offset.value - first.offset.value) / kGapSample;
}

}  // namespace quire
