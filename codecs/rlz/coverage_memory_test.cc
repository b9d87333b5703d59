// SPDX-License-Identifier: Apache-2.0
//
// Counts every byte that a dictionary builder allocates, and checks its stated
// memory.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/status_macros.h"
#include "codecs/rlz/coverage_dictionary.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace {

// As requested, without malloc's overhead.
size_t held_size = 0;
size_t held_size_max = 0;

constexpr size_t kHeaderSize = 64;

// The size is stored before the memory.
void* AllocateCounted(size_t size) {
  auto* const memory = static_cast<char*>(
      std::aligned_alloc(kHeaderSize, kHeaderSize + (size + 63) / 64 * 64));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  *reinterpret_cast<size_t*>(memory) = size;
  held_size += size;
  held_size_max = std::max(held_size_max, held_size);
  return memory + kHeaderSize;
}

void FreeCounted(void* pointer) {
  if (pointer == nullptr) {
    return;
  }
  char* const memory = static_cast<char*>(pointer) - kHeaderSize;
  held_size -= *reinterpret_cast<const size_t*>(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) {
  return AllocateCounted(size);
}

void* operator new(size_t size, std::align_val_t /*alignment*/) {
  return AllocateCounted(size);
}

void operator delete(void* pointer) noexcept {
  FreeCounted(pointer);
}

void operator delete(void* pointer, size_t /*size*/) noexcept {
  FreeCounted(pointer);
}

void operator delete(void* pointer, std::align_val_t /*alignment*/) noexcept {
  FreeCounted(pointer);
}

void operator delete(void* pointer, size_t /*size*/,
                     std::align_val_t /*alignment*/) noexcept {
  FreeCounted(pointer);
}

namespace quire {
namespace {

struct Counted {
  size_t held_size_max = 0;
  size_t memory_bytes_max = 0;
};

absl::StatusOr<Counted> CountWhileBuilding(uint64_t dictionary_size,
                                           const std::string& text) {
  const size_t before = held_size;
  held_size_max = held_size;
  QUIRE_ASSIGN_OR_RETURN(
      const auto builder,
      MakeCoverageDictionaryBuilder({.dictionary_size_bytes = dictionary_size},
                                    text.size()));
  const size_t memory_bytes_max = builder->MemoryBytesMax();
  for (int pass = 0; pass < builder->pass_count(); ++pass) {
    for (size_t from = 0; from < text.size(); from += 100000) {
      const size_t size = std::min<size_t>(100000, text.size() - from);
      QUIRE_RETURN_IF_ERROR(builder->Add(AsBytes(text).subspan(from, size)));
    }
    QUIRE_RETURN_IF_ERROR(builder->FinishPass());
  }
  const std::string dictionary = builder->Take();
  EXPECT_LE(dictionary.size(), dictionary_size);
  return Counted{.held_size_max = held_size_max - before,
                 .memory_bytes_max = memory_bytes_max};
}

TEST(CoverageMemoryTest, HoldsNoMoreThanItSays) {
  TestRandom random(1);
  const std::string once = RandomText(random, 1500000, 3000);
  // Much of it is worth taking, so that the pool overflows repeatedly.
  const std::string text = once + once + EditedPieces(random, once, 3000000);
  for (const uint64_t dictionary_size :
       {uint64_t{1}, uint64_t{5000}, uint64_t{64} << 10, uint64_t{300000},
        uint64_t{1} << 20, uint64_t{4} << 20, uint64_t{6000000}}) {
    SCOPED_TRACE(dictionary_size);
    QUIRE_ASSERT_OK_AND_ASSIGN(const Counted counted,
                               CountWhileBuilding(dictionary_size, text));
    EXPECT_LE(counted.held_size_max, counted.memory_bytes_max);
    // The stated memory is not far too large either.
    EXPECT_GE(counted.held_size_max * 2, counted.memory_bytes_max);
  }
}

TEST(CoverageMemoryTest, HoldsNoMoreThanItSaysOfAnyText) {
  const uint64_t seed = 2;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  const std::string source = RandomText(random, 100000);
  for (const TestInput& input : TestInputs(random, 1 << 20, source)) {
    SCOPED_TRACE(input.name);
    for (const uint64_t dictionary_size : {uint64_t{3000}, uint64_t{100000}}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const Counted counted,
          CountWhileBuilding(dictionary_size, input.text + input.text));
      EXPECT_LE(counted.held_size_max, counted.memory_bytes_max);
    }
  }
}

}  // namespace
}  // namespace quire
