// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/parallel_encoder.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {

ParallelEncoder::ParallelEncoder(const BlockCodec& codec, Sink sink)
    : codec_(codec), sink_(std::move(sink)) {}

absl::StatusOr<std::unique_ptr<ParallelEncoder>> ParallelEncoder::Create(
    const BlockCodec& codec, uint32_t threads, size_t block_size_bytes,
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
  SubmitBlock(size_bytes, std::nullopt);
}

void ParallelEncoder::SubmitEncoded(size_t size_bytes, ByteView stored) {
  SubmitBlock(size_bytes, stored);
}

void ParallelEncoder::SubmitBlock(size_t size_bytes,
                                  std::optional<ByteView> stored) {
  {
    const MutexLock lock(&mutex_);
    Slot& slot = SlotOf(submitted_count_);
    slot.raw_size_bytes = size_bytes;
    slot.encoded = false;
    slot.is_given = stored.has_value();
    if (stored.has_value()) {
      std::ranges::copy(*stored, slot.stored.begin());
      slot.stored_size_bytes = stored->empty() ? size_bytes : stored->size();
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
  QUIRE_RETURN_IF_ERROR(slot.stored_size_bytes.status());
  const size_t stored_size_bytes = *slot.stored_size_bytes;
  const bool smaller = stored_size_bytes < slot.raw_size_bytes;
  ++written_count_;
  mismatch_count_ += slot.is_mismatched ? 1 : 0;
  return sink_(ByteView(slot.raw).first(slot.raw_size_bytes),
               ByteView(slot.stored).first(smaller ? stored_size_bytes : 0));
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
    slot.stored_size_bytes = Encode(slot, workspace);
    {
      const MutexLock lock(&mutex_);
      slot.encoded = true;
    }
    encoded_.NotifyOne();
  }
}

// Codecs allocate, which throws; nothing else on this thread would catch that.
absl::StatusOr<size_t> ParallelEncoder::Encode(Slot& slot,
                                               Workspace& workspace) {
  slot.is_mismatched = false;
  try {
    if (workspace.scratch == nullptr) {
      workspace.scratch = codec_.NewScratch();
    }
    const ByteView raw = ByteView(slot.raw).first(slot.raw_size_bytes);
    absl::StatusOr<size_t> size = slot.stored_size_bytes;
    if (!slot.is_given) {
      size = codec_.Encode(raw, slot.stored, *workspace.scratch);
    }
    if (!size.ok() || *size >= raw.size()) {
      return size;
    }
    QUIRE_ASSIGN_OR_RETURN(
        const bool is_equal,
        DecodesTo(ByteView(slot.stored).first(*size), raw, workspace));
    slot.is_mismatched = !is_equal;
    return is_equal ? *size : raw.size();
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot encode a block: ", error.what(),
                     "; try fewer threads (--threads)"));
  }
}

absl::StatusOr<bool> ParallelEncoder::DecodesTo(ByteView stored, ByteView raw,
                                                Workspace& workspace) {
  workspace.decoded.resize(raw.size());
  const absl::Status status =
      codec_.Decode(stored, workspace.decoded, *workspace.scratch);
  if (absl::IsResourceExhausted(status)) {
    return status;
  }
  return status.ok() &&
         std::memcmp(raw.data(), workspace.decoded.data(), raw.size()) == 0;
}

}  // namespace quire
