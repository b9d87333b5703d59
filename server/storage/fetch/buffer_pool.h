// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory for blocks and device reads. A server that runs for months under one
// memory limit cannot leave its 64 KiB buffers to malloc, whose arenas retain
// free memory between two live buffers. Here, unused memory is either kept for
// the next buffer, within the limit on all memory, or returned to the system
// page by page: the counters match the memory of the process.
#ifndef QUIRE_SERVER_STORAGE_FETCH_BUFFER_POOL_H_
#define QUIRE_SERVER_STORAGE_FETCH_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"

namespace quire {

class BufferPool;

// A piece of the pool's memory, page-aligned and initially of arbitrary
// content. Its destructor returns it. Keeps the pool alive.
// Thread-compatible.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // False if it was never allocated or was moved from.
  explicit operator bool() const { return data_ != nullptr; }

  MutableByteView bytes() { return {data_, size_bytes_}; }

  ByteView bytes() const { return {data_, size_bytes_}; }

 private:
  friend class BufferPool;

  std::shared_ptr<BufferPool> pool_;
  uint8_t* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Buffers come in size classes, four to a power of two, in whole pages.
// Thread-safe.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Keeps unused memory as long as it and live buffers have at most
  // `size_bytes_max` in total. Live buffers alone may have more: their owners
  // bound them.
  static std::shared_ptr<BufferPool> Create(uint64_t size_bytes_max);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Ends the process if the system gives no memory: callers check every size
  // against a limit.
  Buffer Allocate(size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes the limit, and returns kept memory above it to the system.
  void SetSizeMax(uint64_t size_bytes_max) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the memory of a buffer of `size_bytes`: at most a quarter more, in
  // whole pages.
  static uint64_t MemorySizeBytes(uint64_t size_bytes);

  // Memory of live buffers, and of kept ones.
  uint64_t used_size_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t idle_size_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Buffer;

  // Free memory of one size: `warm` has pages, `cold` only addresses.
  struct SizeClass {
    std::vector<uint8_t*> warm;
    std::vector<uint8_t*> cold;
    // Number of buffers in all slabs, including those in use: the capacity of
    // both lists.
    size_t buffer_count = 0;
    // clock_ at the last use: the least recently used class releases its pages
    // first.
    uint64_t used_at = 0;
  };

  struct Warm {
    uint8_t* data = nullptr;
    size_t memory_size_bytes = 0;
  };

  struct Slab {
    uint8_t* data = nullptr;
    size_t size_bytes = 0;
  };

  explicit BufferPool(uint64_t size_bytes_max);
  uint8_t* Take(size_t memory_size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddSlab(size_t memory_size_bytes, SizeClass& size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(uint8_t* data, size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns kept memory to the system while there is too much.
  void ReleaseSurplus() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes warm memory whose pages should be released from its class, if too
  // much is kept.
  bool TakeSurplus(Warm& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t size_bytes_max_ ABSL_GUARDED_BY(mutex_);
  std::map<size_t, SizeClass> classes_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slab> slabs_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t used_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t idle_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BUFFER_POOL_H_
