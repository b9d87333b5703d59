// SPDX-License-Identifier: GPL-3.0-or-later
//
// Memory for blocks and device reads. A server that lives for months under one
// memory bound cannot leave its 64 KiB buffers to malloc, whose arenas keep
// what was freed between two buffers that are still held. Here memory that is
// not in use is either kept for the next buffer, up to a bound, or has been
// given back to the system page by page: what the counters say is what the
// process takes.
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

// A piece of the pool's memory, page-aligned, of any content at first; goes
// back when destroyed. Keeps the pool alive.
// Thread-compatible.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // False for one that was never allocated or was moved from.
  explicit operator bool() const { return data_ != nullptr; }

  MutableByteView bytes() { return {data_, size_bytes_}; }

  ByteView bytes() const { return {data_, size_bytes_}; }

 private:
  friend class BufferPool;

  std::shared_ptr<BufferPool> pool_;
  uint8_t* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// Buffers come in classes of size, four to a power of two, in whole pages.
// Thread-safe.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Keeps up to `idle_size_bytes_max` of memory for later use.
  static std::shared_ptr<BufferPool> Create(uint64_t idle_size_bytes_max);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Ends the process if the system gives no memory: callers ask for no size
  // that was not checked against a limit.
  Buffer Allocate(size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // The memory that a buffer of so many bytes takes: at most a quarter more, in
  // whole pages.
  static uint64_t MemorySizeBytes(uint64_t size_bytes);

  // Memory of buffers alive, and of those kept.
  uint64_t used_size_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t idle_size_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Buffer;

  // Free memory of one size: `warm` has pages behind it, `cold` has none, only
  // addresses.
  struct SizeClass {
    std::vector<uint8_t*> warm;
    std::vector<uint8_t*> cold;
    // Of all slabs, those in use included: what either list has space for.
    size_t buffer_count = 0;
    // clock_ at the last use: the class that rests longest loses its pages
    // first when too many are kept.
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

  explicit BufferPool(uint64_t idle_size_bytes_max);
  uint8_t* Take(size_t memory_size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddSlab(size_t memory_size_bytes, SizeClass& size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(uint8_t* data, size_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the warm memory that is to give up its pages off its class, if too
  // much is kept.
  bool TakeSurplus(Warm& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t idle_size_bytes_max_;
  mutable Mutex mutex_;
  std::map<size_t, SizeClass> classes_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slab> slabs_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t used_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t idle_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BUFFER_POOL_H_
