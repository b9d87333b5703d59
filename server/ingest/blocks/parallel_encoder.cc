// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/parallel_encoder.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {

ParallelEncoder::ParallelEncoder(const PayloadCodec& codec, Sink sink)
    : codec_(codec), sink_(std::move(sink)) {}

absl::StatusOr<std::unique_ptr<ParallelEncoder>> ParallelEncoder::Create(
    const PayloadCodec& codec, uint32_t threads, size_t block_size_bytes,
    Sink sink) {
  std::unique_ptr<ParallelEncoder> encoder(
      new ParallelEncoder(codec, std::move(sink)));
  // Allocation and thread creation throw.
  try {
    encoder->slots_.resize(2 * size_t{threads} + 2);
    for (Slot& slot : encoder->slots_) {
      slot.raw.resize(block_size_bytes);
      slot.stored.resize(codec.StoredSizeMax(block_size_bytes));
    }
    for (uint32_t i = 0; i < threads; ++i) {
      encoder->threads_.emplace_back(&ParallelEncoder::EncodeLoop,
                                     encoder.get());
    }
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot encode on ", threads, " threads: ", error.what(),
                     "; try fewer (--threads)"));
  }
  return encoder;
}

ParallelEncoder::~ParallelEncoder() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  submitted_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

absl::StatusOr<MutableByteView> ParallelEncoder::Acquire() {
  uint64_t next = 0;
  {
    const MutexLock lock(&mutex_);
    next = submitted_count_;
  }
  if (next - written_count_ == slots_.size()) {
    QUIRE_RETURN_IF_ERROR(WriteOldest());
  }
  return MutableByteView(SlotOf(next).raw);
}

void ParallelEncoder::Submit(size_t size_bytes) {
  SubmitBlock(size_bytes, nullptr);
}

void ParallelEncoder::SubmitEncoded(size_t size_bytes, const Payload& payload) {
  SubmitBlock(size_bytes, &payload);
}

void ParallelEncoder::SubmitBlock(size_t size_bytes, const Payload* payload) {
  {
    const MutexLock lock(&mutex_);
    Slot& slot = SlotOf(submitted_count_);
    slot.raw_size_bytes = size_bytes;
    slot.encoded = false;
    slot.is_given = payload != nullptr;
    if (payload != nullptr && payload->is_raw) {
      slot.payload = Payload{.bytes = ByteView(slot.raw).first(size_bytes),
                             .is_raw = true};
    } else if (payload != nullptr) {
      std::ranges::copy(payload->bytes, slot.stored.begin());
      slot.payload =
          Payload{.bytes = ByteView(slot.stored).first(payload->bytes.size()),
                  .has_recipe = payload->has_recipe};
    }
    ++submitted_count_;
  }
  submitted_.NotifyOne();
}

absl::Status ParallelEncoder::Drain() {
  uint64_t submitted_count = 0;
  {
    const MutexLock lock(&mutex_);
    submitted_count = submitted_count_;
  }
  while (written_count_ < submitted_count) {
    QUIRE_RETURN_IF_ERROR(WriteOldest());
  }
  return absl::OkStatus();
}

absl::Status ParallelEncoder::WriteOldest() {
  Slot& slot = SlotOf(written_count_);
  {
    const MutexLock lock(&mutex_);
    while (!slot.encoded) {
      encoded_.Wait(&mutex_);
    }
  }
  QUIRE_RETURN_IF_ERROR(slot.payload.status());
  ++written_count_;
  mismatch_count_ += slot.is_mismatched ? 1 : 0;
  reencoded_count_ += slot.is_reencoded ? 1 : 0;
  return sink_(ByteView(slot.raw).first(slot.raw_size_bytes), *slot.payload);
}

void ParallelEncoder::EncodeLoop() {
  Workspace workspace;
  while (true) {
    uint64_t block_index = 0;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && taken_count_ == submitted_count_) {
        submitted_.Wait(&mutex_);
      }
      if (stopping_) {
        return;
      }
      block_index = taken_count_++;
    }
    Slot& slot = SlotOf(block_index);
    slot.payload = Encode(slot, workspace);
    {
      const MutexLock lock(&mutex_);
      slot.encoded = true;
    }
    encoded_.NotifyOne();
  }
}

absl::StatusOr<Payload> ParallelEncoder::Encode(Slot& slot,
                                                Workspace& workspace) {
  slot.is_mismatched = false;
  if (workspace.scratch == nullptr) {
    workspace.scratch = codec_.NewScratch();
  }
  const ByteView raw = ByteView(slot.raw).first(slot.raw_size_bytes);
  slot.is_reencoded = slot.is_given && !slot.payload->is_raw &&
                      !DecodesTo(*slot.payload, raw, workspace);
  if (slot.is_given && !slot.is_reencoded) {
    return slot.payload;
  }
  const absl::StatusOr<Payload> payload =
      codec_.Encode(raw, slot.stored, *workspace.scratch);
  if (!payload.ok() || payload->is_raw) {
    return payload;
  }
  slot.is_mismatched = !DecodesTo(*payload, raw, workspace);
  return slot.is_mismatched ? Payload{.bytes = raw, .is_raw = true} : *payload;
}

bool ParallelEncoder::DecodesTo(const Payload& payload, ByteView raw,
                                Workspace& workspace) {
  workspace.decoded.resize(raw.size());
  return codec_.Decode(payload, workspace.decoded, *workspace.scratch).ok() &&
         std::memcmp(raw.data(), workspace.decoded.data(), raw.size()) == 0;
}

}  // namespace quire
