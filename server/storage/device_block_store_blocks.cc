// SPDX-License-Identifier: GPL-3.0-or-later
//
// Of DeviceBlockStore, from the bytes that were read to the end of the flights.
#include <algorithm>
#include <iterator>
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/storage/device_block_store.h"

namespace quire {
namespace {

// What a thread decodes before it sees to the books: a turn at the locks for
// each block of a scan costs several per cent of decoding it.
constexpr size_t kTaskBlocksMax = 4;

class PooledBlock final : public DecodedBlock {
 public:
  PooledBlock(Buffer buffer, bool is_packed)
      : buffer_(std::move(buffer)), is_packed_(is_packed) {}

  ByteView bytes() const override { return buffer_.bytes(); }

  bool is_packed() const override { return is_packed_; }

 private:
  const Buffer buffer_;
  const bool is_packed_;
};

}  // namespace

void DeviceBlockStore::AddTasks(const ReadingPtr& reading,
                                std::span<ReadBlock> blocks,
                                std::vector<DecodePool::Task>& tasks) {
  const size_t task_blocks = std::clamp<size_t>(
      blocks.size() / decode_pool_->thread_count(), 1, kTaskBlocksMax);
  while (!blocks.empty()) {
    const std::span<ReadBlock> part =
        blocks.first(std::min(blocks.size(), task_blocks));
    blocks = blocks.subspan(part.size());
    tasks.push_back(
        [this, reading,
         task = std::vector<ReadBlock>(std::make_move_iterator(part.begin()),
                                       std::make_move_iterator(part.end()))] {
          Finish(*reading, task);
        });
  }
}

absl::StatusOr<BlockStore::BlockPtr> DeviceBlockStore::Decode(
    const Reading& reading, const BlockFetch& fetch) {
  Buffer raw = buffers_->Allocate(fetch.raw_size_bytes);
  if (!raw) {
    return NoMemory(fetch.raw_size_bytes);
  }
  QUIRE_RETURN_IF_ERROR(fetch.decoder->Decode(
      fetch.key.block,
      reading.buffer.bytes().subspan(StartOf(fetch, reading.address),
                                     fetch.extent.size_bytes),
      raw.bytes()));
  return std::make_shared<PooledBlock>(std::move(raw), /*is_packed=*/false);
}

BlockStore::BlockPtr DeviceBlockStore::Pack(const BlockFetch& fetch,
                                            ByteView text) {
  Buffer packed;
  const bool is_smaller =
      fetch.decoder->Pack(text, [this, &packed](size_t size_bytes) {
        packed = buffers_->Allocate(size_bytes);
        return packed.bytes();
      });
  return is_smaller ? std::make_shared<PooledBlock>(std::move(packed),
                                                    /*is_packed=*/true)
                    : nullptr;
}

DeviceBlockStore::Outcome DeviceBlockStore::Make(const Reading& reading,
                                                 const ReadBlock& block,
                                                 uint64_t& freed_size_bytes) {
  const BlockFetch& fetch = block.flight->fetch;
  Outcome outcome;
  outcome.text = block.status.ok() ? Decode(reading, fetch)
                                   : absl::StatusOr<BlockPtr>(block.status);
  freed_size_bytes += WorkSizeBytes(fetch);
  if (outcome.text.ok()) {
    if (block.pack) {
      outcome.packed = Pack(fetch, (*outcome.text)->bytes());
    }
    const BlockPtr& kept =
        outcome.packed != nullptr ? outcome.packed : *outcome.text;
    cache_.Insert(fetch.key, kept,
                  BufferPool::MemorySizeBytes(kept->bytes().size()), block.use);
  }
  outcome.is_damaged =
      block.status.ok() && absl::IsDataLoss(outcome.text.status());
  if (outcome.is_damaged) {
    DropFromPageCache(fetch.extent);
  }
  return outcome;
}

std::unique_ptr<DeviceBlockStore::Flight> DeviceBlockStore::End(
    const Flight& flight, const absl::Status& status,
    const absl::StatusOr<BlockPtr>& result) {
  const auto it = flights_.find(flight.fetch.key);
  std::unique_ptr<Flight> ended = std::move(it->second);
  flights_.erase(it);
  for (const Waiter& waiter : ended->waiters) {
    fetches_.erase(waiter.id);
  }
  if (result.ok()) {
    ++stats_.blocks_decoded;
    stats_.decoded_bytes += ended->fetch.raw_size_bytes;
    stats_.healed_blocks += ended->repeated ? 1 : 0;
  } else if (status.ok()) {
    ++stats_.decode_failures;
  }
  return ended;
}

void DeviceBlockStore::Finish(Reading& reading,
                              std::span<const ReadBlock> blocks) {
  absl::InlinedVector<Outcome, kTaskBlocksMax> outcomes;
  uint64_t freed_size_bytes = 0;
  for (const ReadBlock& block : blocks) {
    outcomes.push_back(Make(reading, block, freed_size_bytes));
  }
  // Memory is free before it is accounted for as free.
  if (reading.flights_left.fetch_sub(
          blocks.size(), std::memory_order_acq_rel) == blocks.size()) {
    reading.buffer = Buffer();
    freed_size_bytes += reading.buffer_memory_size_bytes;
  }
  Readings readings;
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < blocks.size(); ++i) {
      Flight& flight = *blocks[i].flight;
      if (!outcomes[i].is_damaged || !ReadAgain(flight)) {
        outcomes[i].ended = End(flight, blocks[i].status, outcomes[i].text);
      }
    }
    reserved_size_bytes_ -= freed_size_bytes;
    readings = Plan();
  }
  Start(readings);
  for (const Outcome& outcome : outcomes) {
    if (outcome.ended != nullptr) {
      Answer(outcome);
    }
  }
}

void DeviceBlockStore::Answer(const Outcome& outcome) {
  const Flight& flight = *outcome.ended;
  if (outcome.is_damaged) {
    flight.fetch.decoder->NoteDamage(flight.fetch.key.block,
                                     outcome.text.status());
  }
  for (const Waiter& waiter : flight.waiters) {
    if (waiter.takes_packed && outcome.packed != nullptr) {
      waiter.done(outcome.packed);
    } else {
      waiter.done(outcome.text);
    }
  }
}

}  // namespace quire
