// SPDX-License-Identifier: GPL-3.0-or-later
//
// Account of the memory for reads and decoding, shared by all drives of a
// store.
#ifndef QUIRE_SERVER_STORAGE_FETCH_READ_MEMORY_H_
#define QUIRE_SERVER_STORAGE_FETCH_READ_MEMORY_H_

#include <algorithm>
#include <cstdint>

#include "server/storage/fetch/block_fetch.h"
#include "server/storage/fetch/buffer_pool.h"

namespace quire {

// Upper bound on the bytes that widening for O_DIRECT adds to a read.
inline constexpr uint32_t kDirectMarginBytes = 2 * 4096;

// Memory of a block from its decoding until it is handed out: its text.
inline uint64_t WorkSizeBytes(const BlockFetch& fetch) {
  return BufferPool::MemorySizeBytes(fetch.raw_size_bytes);
}

// Counts bytes; allocates nothing. A read reserves its buffer and the work of
// its blocks before it starts. Each part is released when its memory is free
// again, never earlier.
// Thread-compatible: BlockStore guards it with its mutex.
class ReadMemory {
 public:
  // `direct_io`: reads may be widened to the alignment of O_DIRECT.
  ReadMemory(uint64_t size_bytes_max, bool direct_io)
      : size_bytes_max_(size_bytes_max), direct_io_(direct_io) {}

  // Memory of a read's buffer by the size of the read, as a function for the
  // scheduler.
  using BufferSize = uint64_t (*)(uint64_t);

  BufferSize buffer_size() const {
    return direct_io_ ? &WidenedSizeBytes : &BufferPool::MemorySizeBytes;
  }

  bool direct_io() const { return direct_io_; }

  void Reserve(uint64_t size_bytes) { reserved_size_bytes_ += size_bytes; }

  void Release(uint64_t size_bytes) { reserved_size_bytes_ -= size_bytes; }

  uint64_t size_bytes_max() const { return size_bytes_max_; }

  uint64_t reserved_size_bytes() const { return reserved_size_bytes_; }

  // 0 also while a read larger than the limit, and therefore alone, exceeds it.
  uint64_t free_size_bytes() const {
    return size_bytes_max_ - std::min(size_bytes_max_, reserved_size_bytes_);
  }

 private:
  static uint64_t WidenedSizeBytes(uint64_t size_bytes) {
    return BufferPool::MemorySizeBytes(size_bytes + kDirectMarginBytes);
  }

  const uint64_t size_bytes_max_;
  const bool direct_io_;
  uint64_t reserved_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_READ_MEMORY_H_
