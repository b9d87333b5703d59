// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/in_flight_table.h"

#include <algorithm>
#include <utility>

namespace quire {

namespace {

BlockKey WholeBlock(BlockKey key) {
  key.part = 0;
  return key;
}

}  // namespace

InFlightBlock* InFlightTable::Find(const BlockKey& key) const {
  const auto it = blocks_.find(WholeBlock(key));
  return it == blocks_.end() ? nullptr : it->second.get();
}

InFlightBlock& InFlightTable::Begin(BlockFetch fetch) {
  auto block = std::make_unique<InFlightBlock>();
  block->fetch = std::move(fetch);
  InFlightBlock& begun = *block;
  blocks_.emplace(WholeBlock(begun.fetch.key), std::move(block));
  return begun;
}

FetchId InFlightTable::Join(InFlightBlock& block, const BlockFetch& fetch,
                            FetchDone done, SchedulerTime now) {
  const FetchId id = next_id_++;
  stats_.joined_fetches += block.waiters.empty() ? 0 : 1;
  stats_.queued_fetches += block.at_device ? 0 : 1;
  block.waiters.push_back(
      {id, std::move(done), fetch.key.part, fetch.times, now});
  fetches_.emplace(id, &block);
  return id;
}

std::optional<InFlightTable::Withdrawn> InFlightTable::Cancel(FetchId id) {
  const auto fetch = fetches_.find(id);
  if (fetch == fetches_.end() || fetch->second->at_device) {
    return std::nullopt;
  }
  InFlightBlock& block = *fetch->second;
  fetches_.erase(fetch);
  const auto waiter =
      std::find_if(block.waiters.begin(), block.waiters.end(),
                   [id](const InFlightBlock::Waiter& w) { return w.id == id; });
  Withdrawn withdrawn;
  withdrawn.done = std::move(waiter->done);
  block.waiters.erase(waiter);
  --stats_.queued_fetches;
  ++stats_.cancelled_fetches;
  if (block.waiters.empty()) {
    withdrawn.abandoned = Remove(block.fetch.key);
  }
  return withdrawn;
}

void InFlightTable::MarkAtDevice(InFlightBlock& block) {
  block.at_device = true;
  stats_.queued_fetches -= block.waiters.size();
}

void InFlightTable::MarkRepeated(InFlightBlock& block) {
  stats_.repeated_blocks += block.repeated ? 0 : 1;
  block.repeated = true;
}

bool InFlightTable::ReturnToQueue(InFlightBlock& block) {
  if (block.repeated) {
    return false;
  }
  MarkRepeated(block);
  block.at_device = false;
  stats_.queued_fetches += block.waiters.size();
  return true;
}

std::unique_ptr<InFlightBlock> InFlightTable::EndAll(const InFlightBlock& block,
                                                     bool succeeded) {
  std::unique_ptr<InFlightBlock> ended = Remove(block.fetch.key);
  for (const InFlightBlock::Waiter& waiter : ended->waiters) {
    fetches_.erase(waiter.id);
  }
  stats_.recovered_blocks += succeeded && ended->repeated ? 1 : 0;
  return ended;
}

std::unique_ptr<InFlightBlock> InFlightTable::End(
    InFlightBlock& block, std::span<const uint32_t> parts) {
  const auto late = std::stable_partition(
      block.waiters.begin(), block.waiters.end(),
      [parts](const InFlightBlock::Waiter& waiter) {
        return std::binary_search(parts.begin(), parts.end(), waiter.part);
      });
  if (late == block.waiters.end()) {
    return EndAll(block, /*succeeded=*/true);
  }
  auto ended = std::make_unique<InFlightBlock>();
  ended->fetch = block.fetch;
  ended->dispatched = block.dispatched;
  ended->read_ended = block.read_ended;
  for (auto it = block.waiters.begin(); it != late; ++it) {
    fetches_.erase(it->id);
    ended->waiters.push_back(std::move(*it));
  }
  block.waiters.erase(block.waiters.begin(), late);
  stats_.recovered_blocks += block.repeated ? 1 : 0;
  stats_.queued_fetches += block.waiters.size();
  block.at_device = false;
  block.repeated = false;
  return ended;
}

std::vector<std::unique_ptr<InFlightBlock>> InFlightTable::CancelQueued() {
  std::vector<std::unique_ptr<InFlightBlock>> cancelled;
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    InFlightBlock& block = *it->second;
    if (block.at_device) {
      ++it;
      continue;
    }
    for (const InFlightBlock::Waiter& waiter : block.waiters) {
      fetches_.erase(waiter.id);
    }
    stats_.queued_fetches -= block.waiters.size();
    stats_.cancelled_fetches += block.waiters.size();
    cancelled.push_back(std::move(it->second));
    blocks_.erase(it++);
  }
  return cancelled;
}

std::unique_ptr<InFlightBlock> InFlightTable::Remove(const BlockKey& key) {
  const auto it = blocks_.find(WholeBlock(key));
  std::unique_ptr<InFlightBlock> block = std::move(it->second);
  blocks_.erase(it);
  return block;
}

}  // namespace quire
