// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/buffer_pool.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr size_t kPageSizeBytes = 4096;
// Size of a mapping, for all classes up to kPooledSizeBytesMax. Few mappings,
// as their number is limited (vm.max_map_count).
constexpr size_t kSlabSizeBytes = size_t{4} << 20;
constexpr size_t kPooledSizeBytesMax = size_t{1} << 20;

uint8_t* Map(size_t size_bytes) {
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  QUIRE_CHECK(data != MAP_FAILED, "no memory for buffers of ", size_bytes,
              " bytes: ", std::generic_category().message(errno));
  // Huge pages would restore 2 MiB at a time the pages that were released
  // singly. A kernel without them refuses, which is fine.
  madvise(data, size_bytes, MADV_NOHUGEPAGE);
  return static_cast<uint8_t*>(data);
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer old(std::move(*this));
  pool_ = std::move(other.pool_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) {
    pool_->Free(data_, size_bytes_);
  }
}

std::shared_ptr<BufferPool> BufferPool::Create(uint64_t size_bytes_max) {
  return std::shared_ptr<BufferPool>(new BufferPool(size_bytes_max));
}

BufferPool::BufferPool(uint64_t size_bytes_max)
    : size_bytes_max_(size_bytes_max) {}

BufferPool::~BufferPool() {
  MutexLock lock(&mutex_);
  for (const Slab& slab : slabs_) {
    // The addresses may be reused by others.
    ASAN_UNPOISON_MEMORY_REGION(slab.data, slab.size_bytes);
    munmap(slab.data, slab.size_bytes);
  }
}

void BufferPool::SetSizeMax(uint64_t size_bytes_max) {
  {
    MutexLock lock(&mutex_);
    size_bytes_max_ = size_bytes_max;
  }
  ReleaseSurplus();
}

uint64_t BufferPool::MemorySizeBytes(uint64_t size_bytes) {
  const uint64_t size = std::max<uint64_t>(size_bytes, kPageSizeBytes);
  // Two bits below the highest one: quarters of a power of two.
  const uint64_t step =
      std::max<uint64_t>(std::bit_floor(size) / 4, kPageSizeBytes);
  return (size + step - 1) / step * step;
}

Buffer BufferPool::Allocate(size_t size_bytes) {
  const size_t memory_size_bytes = MemorySizeBytes(size_bytes);
  Buffer buffer;
  buffer.data_ = Take(memory_size_bytes);
  ASAN_UNPOISON_MEMORY_REGION(buffer.data_, size_bytes);
  buffer.size_bytes_ = size_bytes;
  buffer.pool_ = shared_from_this();
  return buffer;
}

uint8_t* BufferPool::Take(size_t memory_size_bytes) {
  if (memory_size_bytes > kPooledSizeBytesMax) {
    uint8_t* data = Map(memory_size_bytes);
    {
      MutexLock lock(&mutex_);
      used_size_bytes_ += memory_size_bytes;
    }
    ReleaseSurplus();
    return data;
  }
  uint8_t* data = nullptr;
  {
    MutexLock lock(&mutex_);
    SizeClass& size_class = classes_[memory_size_bytes];
    size_class.used_at = ++clock_;
    used_size_bytes_ += memory_size_bytes;
    if (!size_class.warm.empty()) {
      data = size_class.warm.back();
      size_class.warm.pop_back();
      idle_size_bytes_ -= memory_size_bytes;
      return data;
    }
    if (size_class.cold.empty()) {
      AddSlab(memory_size_bytes, size_class);
    }
    data = size_class.cold.back();
    size_class.cold.pop_back();
  }
  ReleaseSurplus();
  return data;
}

void BufferPool::AddSlab(size_t memory_size_bytes, SizeClass& size_class) {
  const size_t count = kSlabSizeBytes / memory_size_bytes;
  // Reserve now: freeing must not allocate, as it may run in destructors.
  size_class.buffer_count += count;
  size_class.warm.reserve(size_class.buffer_count);
  size_class.cold.reserve(size_class.buffer_count);
  uint8_t* data = Map(kSlabSizeBytes);
  ASAN_POISON_MEMORY_REGION(data, kSlabSizeBytes);
  slabs_.push_back({data, kSlabSizeBytes});
  // From the end, so that the lowest address is used first.
  for (size_t i = count; i-- > 0;) {
    size_class.cold.push_back(data + i * memory_size_bytes);
  }
}

void BufferPool::Free(uint8_t* data, size_t size_bytes) {
  const size_t memory_size_bytes = MemorySizeBytes(size_bytes);
  if (memory_size_bytes > kPooledSizeBytesMax) {
    munmap(data, memory_size_bytes);
    MutexLock lock(&mutex_);
    used_size_bytes_ -= memory_size_bytes;
    return;
  }
  ASAN_POISON_MEMORY_REGION(data, memory_size_bytes);
  {
    MutexLock lock(&mutex_);
    SizeClass& size_class = classes_[memory_size_bytes];
    size_class.warm.push_back(data);
    size_class.used_at = ++clock_;
    used_size_bytes_ -= memory_size_bytes;
    idle_size_bytes_ += memory_size_bytes;
    if (used_size_bytes_ + idle_size_bytes_ <= size_bytes_max_) {
      return;
    }
  }
  ReleaseSurplus();
}

void BufferPool::ReleaseSurplus() {
  Warm surplus;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (surplus.data != nullptr) {
        classes_[surplus.memory_size_bytes].cold.push_back(surplus.data);
      }
      if (!TakeSurplus(surplus)) {
        return;
      }
    }
    madvise(surplus.data, surplus.memory_size_bytes, MADV_DONTNEED);
  }
}

bool BufferPool::TakeSurplus(Warm& surplus) {
  if (used_size_bytes_ + idle_size_bytes_ <= size_bytes_max_) {
    return false;
  }
  auto rested = classes_.end();
  for (auto it = classes_.begin(); it != classes_.end(); ++it) {
    if (!it->second.warm.empty() &&
        (rested == classes_.end() ||
         it->second.used_at < rested->second.used_at)) {
      rested = it;
    }
  }
  if (rested == classes_.end()) {
    return false;
  }
  surplus = {rested->second.warm.back(), rested->first};
  rested->second.warm.pop_back();
  idle_size_bytes_ -= rested->first;
  return true;
}

uint64_t BufferPool::used_size_bytes() const {
  MutexLock lock(&mutex_);
  return used_size_bytes_;
}

uint64_t BufferPool::idle_size_bytes() const {
  MutexLock lock(&mutex_);
  return idle_size_bytes_;
}

}  // namespace quire
