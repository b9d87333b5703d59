// SPDX-License-Identifier: Apache-2.0
//
// Costs of codecs: stored sizes, so that review sees a change in them, and
// memory: none is allocated per block after the first blocks,
// and where there is too little a codec says so.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace {

std::atomic<size_t> allocation_count = 0;
// Larger ones fail.
std::atomic<size_t> allocation_size_max = SIZE_MAX;

}  // namespace

// Counts every allocation of C++ code in this program. Inlined one without the
// other, g++ would warn of new and free().
ABSL_ATTRIBUTE_NOINLINE void* operator new(size_t size) {
  ++allocation_count;
  void* const memory = size > allocation_size_max
                           ? nullptr
                           : std::malloc(std::max<size_t>(size, 1));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

ABSL_ATTRIBUTE_NOINLINE void operator delete(void* memory) noexcept {
  std::free(memory);
}

ABSL_ATTRIBUTE_NOINLINE void operator delete(void* memory,
                                             size_t /*size*/) noexcept {
  std::free(memory);
}

namespace quire {
namespace {

constexpr size_t kBlockSize = 64 << 10;

// In percent of the text, by the libraries of Debian 12.
struct KnownRate {
  double text;
  double edited_dictionary;
};

const std::map<std::string, KnownRate>& KnownRates() {
  static const auto* const rates = new std::map<std::string, KnownRate>{
      {"copy", {100, 100}},       {"lz4", {50.79, 59.45}},
      {"zlib", {37.81, 43.56}},   {"zstd", {35.66, 39.26}},
      {"xz", {34.62, 38.29}},     {"numeric", {35.66, 39.26}},
      {"auto", {35.52, 1.50}},    {"rlz-uv", {100.00, 2.91}},
      {"rlz-pv", {97.76, 1.99}},  {"rlz-zz", {75.91, 2.25}},
      {"rlz-zzz", {38.44, 1.74}}, {"zlib-primed", {37.56, 38.65}},
      {"rlz", {35.54, 1.50}},     {"fsst", {68.38, 66.98}},
  };
  return *rates;
}

double RatePercent(const BlockCodec& codec, const std::string& text) {
  const auto scratch = codec.NewScratch();
  std::vector<uint8_t> stored(codec.StoredSizeMax(text.size()));
  const auto size = codec.Encode(AsBytes(text), stored, *scratch);
  EXPECT_THAT(size, IsOk());
  return 100.0 * static_cast<double>(size.value_or(0)) /
         static_cast<double>(text.size());
}

TEST(CodecCostTest, SizesAreThoseKnown) {
  TestRandom random(1);
  const auto context = MakeTestContext(256 << 10);
  const std::string text = RandomText(random, kBlockSize, 2000);
  const std::string edited =
      EditedPieces(random, context->dictionary, kBlockSize);
  for (const CodecInfo& info : AllCodecs()) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto codec,
                               MakeBlockCodec(DefaultCodecSpec(info), context,
                                              CodecUse::kEncodeAndDecode));
    const auto known = KnownRates().find(std::string(info.name));
    const KnownRate expected =
        known == KnownRates().end() ? KnownRate{} : known->second;
    EXPECT_NEAR(RatePercent(*codec, text), expected.text, 0.05)
        << std::string(info.name);
    EXPECT_NEAR(RatePercent(*codec, edited), expected.edited_dictionary, 0.05)
        << std::string(info.name);
  }
}

TEST(CodecCostTest, BlocksAfterTheFirstAllocateNothing) {
  TestRandom random(1);
  const auto context = MakeTestContext(256 << 10);
  for (const CodecInfo& info : AllCodecs()) {
    SCOPED_TRACE(std::string(info.name));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto codec,
                               MakeBlockCodec(DefaultCodecSpec(info), context,
                                              CodecUse::kEncodeAndDecode));
    const auto scratch = codec->NewScratch();
    std::vector<uint8_t> stored(codec->StoredSizeMax(kBlockSize));
    std::vector<uint8_t> raw(kBlockSize);
    const std::vector<TestInput> inputs =
        TestInputs(random, kBlockSize, context->dictionary);
    size_t allocated_before = 0;
    bool good = true;
    for (int round = 0; round < 2; ++round) {
      allocated_before = allocation_count;
      for (const TestInput& input : inputs) {
        const auto size = codec->Encode(AsBytes(input.text), stored, *scratch);
        good = good && size.ok();
        const ByteView block = ByteView(stored).first(size.value_or(0));
        good = good && codec->Decode(block, raw, *scratch).ok() &&
               codec
                   ->DecodeRange(block, kBlockSize, 1234,
                                 MutableByteView(raw).first(5000), *scratch)
                   .ok();
      }
    }
    EXPECT_TRUE(good);
    EXPECT_EQ(allocation_count, allocated_before);
  }
}

}  // namespace
}  // namespace quire
