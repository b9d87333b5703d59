// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

uint64_t ResidentPages(const void* data, size_t size_bytes) {
  std::vector<unsigned char> resident(size_bytes / 4096);
  EXPECT_EQ(mincore(const_cast<void*>(data), size_bytes, resident.data()), 0);
  return static_cast<uint64_t>(
      std::count_if(resident.begin(), resident.end(),
                    [](unsigned char byte) { return (byte & 1) != 0; }));
}

void Fill(Buffer& buffer, uint8_t byte) {
  const MutableByteView bytes = buffer.bytes();
  std::fill(bytes.begin(), bytes.end(), byte);
}

TEST(BufferPoolTest, RoundsUpByAQuarterAtMost) {
  EXPECT_EQ(BufferPool::MemorySizeBytes(0), 4096);
  EXPECT_EQ(BufferPool::MemorySizeBytes(1), 4096);
  EXPECT_EQ(BufferPool::MemorySizeBytes(4097), 8192);
  for (const uint64_t exact : {16 * kKiB, 64 * kKiB, 80 * kKiB, kMiB}) {
    EXPECT_EQ(BufferPool::MemorySizeBytes(exact), exact);
  }
  EXPECT_EQ(BufferPool::MemorySizeBytes(64 * kKiB + 1), 80 * kKiB);
  for (uint64_t size = 16 * kKiB; size < 4 * kMiB; size += 1111) {
    const uint64_t memory = BufferPool::MemorySizeBytes(size);
    EXPECT_GE(memory, size);
    EXPECT_LE(memory, size + size / 4);
    EXPECT_EQ(memory % 4096, 0);
    EXPECT_EQ(BufferPool::MemorySizeBytes(memory), memory);
  }
}

TEST(BufferPoolTest, UsesMemoryAgain) {
  auto pool = BufferPool::Create(kMiB);
  const uint8_t* data = nullptr;
  {
    Buffer buffer = pool->Allocate(60000);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.bytes().size(), 60000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % 4096, 0);
    data = buffer.bytes().data();
    EXPECT_EQ(pool->used_size_bytes(), 64 * kKiB);
  }
  EXPECT_EQ(pool->used_size_bytes(), 0);
  EXPECT_EQ(pool->idle_size_bytes(), 64 * kKiB);
  Buffer again = pool->Allocate(64 * kKiB);
  EXPECT_EQ(again.bytes().data(), data);
  EXPECT_EQ(pool->idle_size_bytes(), 0);
}

TEST(BufferPoolTest, MovesAndOutlives) {
  Buffer kept;
  EXPECT_FALSE(kept);
  {
    auto pool = BufferPool::Create(0);
    Buffer first = pool->Allocate(100);
    Fill(first, 7);
    Buffer second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
    kept = pool->Allocate(5);
    kept = std::move(second);
    EXPECT_EQ(pool->used_size_bytes(), 4096);
  }
  EXPECT_EQ(kept.bytes()[99], 7);
}

TEST(BufferPoolTest, KeepsMemoryBesideLiveBuffers) {
  auto pool = BufferPool::Create(256 * kKiB);
  Buffer live = pool->Allocate(192 * kKiB);
  {
    Buffer a = pool->Allocate(16 * kKiB);
    Buffer b = pool->Allocate(64 * kKiB);
  }
  // `b` was freed first, when all live buffers left no space for it.
  EXPECT_EQ(pool->idle_size_bytes(), 16 * kKiB);
  live = Buffer();
  EXPECT_EQ(pool->idle_size_bytes(), 208 * kKiB);
}

TEST(BufferPoolTest, NewBuffersTakeThePlaceOfKeptMemory) {
  auto pool = BufferPool::Create(128 * kKiB);
  const uint8_t* place = nullptr;
  {
    Buffer buffer = pool->Allocate(64 * kKiB);
    Fill(buffer, 1);
    place = buffer.bytes().data();
  }
  const Buffer other_size = pool->Allocate(48 * kKiB);
  EXPECT_EQ(pool->idle_size_bytes(), 64 * kKiB);
  {
    const Buffer too_much = pool->Allocate(32 * kKiB);
    EXPECT_EQ(pool->idle_size_bytes(), 0);
    EXPECT_EQ(ResidentPages(place, 64 * kKiB), 0);
  }
  { Buffer buffer = pool->Allocate(64 * kKiB); }
  ASSERT_EQ(pool->idle_size_bytes(), 64 * kKiB);
  // Too large for a size class.
  const Buffer large = pool->Allocate(2 * kMiB);
  EXPECT_EQ(pool->idle_size_bytes(), 0);
}

TEST(BufferPoolTest, GivesPagesBackWhenItsBoundFalls) {
  auto pool = BufferPool::Create(kMiB);
  const uint8_t* place = nullptr;
  {
    Buffer buffer = pool->Allocate(64 * kKiB);
    Fill(buffer, 1);
    place = buffer.bytes().data();
  }
  pool->SetSizeMax(64 * kKiB);
  EXPECT_EQ(ResidentPages(place, 64 * kKiB), 16);
  pool->SetSizeMax(32 * kKiB);
  EXPECT_EQ(pool->idle_size_bytes(), 0);
  EXPECT_EQ(ResidentPages(place, 64 * kKiB), 0);
}

TEST(BufferPoolTest, GivesPagesBackPastItsBound) {
  auto pool = BufferPool::Create(128 * kKiB);
  std::vector<Buffer> buffers;
  std::vector<const uint8_t*> places;
  for (int i = 0; i < 16; ++i) {
    buffers.push_back(pool->Allocate(64 * kKiB));
    Fill(buffers.back(), 1);
    places.push_back(buffers.back().bytes().data());
    EXPECT_EQ(ResidentPages(places.back(), 64 * kKiB), 16);
  }
  buffers.clear();
  EXPECT_EQ(pool->idle_size_bytes(), 128 * kKiB);
  uint64_t pages = 0;
  for (const uint8_t* place : places) {
    pages += ResidentPages(place, 64 * kKiB);
  }
  EXPECT_EQ(pages, 32);
  // Buffers without pages can be used again, too.
  for (int i = 0; i < 16; ++i) {
    buffers.push_back(pool->Allocate(64 * kKiB));
    Fill(buffers.back(), 2);
  }
}

TEST(BufferPoolTest, KeepsTheSizeThatIsInUse) {
  auto pool = BufferPool::Create(64 * kKiB);
  { Buffer old = pool->Allocate(64 * kKiB); }
  {
    Buffer a = pool->Allocate(16 * kKiB);
    Buffer b = pool->Allocate(16 * kKiB);
  }
  EXPECT_EQ(pool->idle_size_bytes(), 32 * kKiB);
}

TEST(BufferPoolTest, KeepsNoLargeBuffers) {
  auto pool = BufferPool::Create(64 * kMiB);
  {
    Buffer large = pool->Allocate(5 * kMiB);
    ASSERT_TRUE(large);
    Fill(large, 3);
    EXPECT_EQ(pool->used_size_bytes(), 5 * kMiB);
  }
  EXPECT_EQ(pool->used_size_bytes(), 0);
  EXPECT_EQ(pool->idle_size_bytes(), 0);
}

TEST(BufferPoolTest, NoTwoThreadsGetOneBuffer) {
  auto pool = BufferPool::Create(kMiB);
  const auto work = [&pool](uint8_t mark) {
    std::mt19937_64 random(mark);
    std::vector<Buffer> held;
    for (int i = 0; i < 3000; ++i) {
      if (held.size() < 8) {
        Buffer buffer = pool->Allocate(1 + random() % 100000);
        ASSERT_TRUE(buffer);
        buffer.bytes().front() = mark;
        buffer.bytes().back() = mark;
        held.push_back(std::move(buffer));
      } else {
        const size_t victim = random() % held.size();
        ASSERT_EQ(held[victim].bytes().front(), mark);
        ASSERT_EQ(held[victim].bytes().back(), mark);
        std::swap(held[victim], held.back());
        held.pop_back();
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t mark = 1; mark <= 4; ++mark) {
    threads.emplace_back(work, mark);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(pool->used_size_bytes(), 0);
  EXPECT_LE(pool->idle_size_bytes(), kMiB);
}

}  // namespace
}  // namespace quire
