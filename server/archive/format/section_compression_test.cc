// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/section_compression.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "codecs/base/bytes.h"
#include "testing/base/noise.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

constexpr CompressionEffort kZstdOnly = {
    .xz_size_bytes_max = 10, .is_text = false, .zstd_level = 3};

std::string Compressible(size_t size) {
  std::string text;
  for (uint64_t i = 0; text.size() < size; ++i) {
    text += std::to_string(i * i) + " bottles of beer on the wall; ";
  }
  text.resize(size);
  return text;
}

// A zstd frame of `size` zeros, in blocks that repeat one byte.
std::string ZstdOfZeros(uint64_t size) {
  constexpr uint64_t kBlockSizeMax = 128 << 10;
  // Its size in 8 bytes, no checksum; a window of 1 MiB.
  std::string frame = {'\x28', '\xB5', '\x2F', '\xFD', '\xC0', '\x50'};
  for (int i = 0; i < 8; ++i) {
    frame.push_back(static_cast<char>(size >> 8 * i));
  }
  for (uint64_t left = size; left > 0;) {
    const uint64_t block_size = std::min(left, kBlockSizeMax);
    left -= block_size;
    const uint64_t header = (left == 0 ? 1 : 0) | 1 << 1 | block_size << 3;
    for (int i = 0; i < 3; ++i) {
      frame.push_back(static_cast<char>(header >> 8 * i));
    }
    frame.push_back('\0');
  }
  return frame;
}

// Memory is planned by the size of a dictionary.
TEST(SectionCompressionTest, TakesNoMoreThanTheSize) {
  for (uint64_t mib = 1; mib <= 100; mib += IsNightly() ? 1 : 9) {
    const uint64_t size = mib << 20;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::string text,
        Decompress(CompressionMethod::kZstd, AsBytes(ZstdOfZeros(size)), size));
    ASSERT_EQ(text.size(), size);
    ASSERT_EQ(text.capacity(), size);
  }
  for (const size_t size : {size_t{3} << 20, (size_t{5} << 20) + 1}) {
    const std::string raw(size, 'x');
    QUIRE_ASSERT_OK_AND_ASSIGN(const CompressedBytes compressed,
                               CompressStrongly(AsBytes(raw), kSectionEffort));
    ASSERT_EQ(compressed.method, CompressionMethod::kXz);
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::string same,
        Decompress(compressed.method, AsBytes(compressed.bytes), size));
    EXPECT_TRUE(same == raw);
    EXPECT_EQ(same.capacity(), size);
  }
}

TEST(SectionCompressionTest, RoundTripsAtEachEffort) {
  for (const std::string& raw :
       {std::string(), std::string("x"), std::string(100, 'x'),
        Compressible(5000), Compressible(150000), Noise(1000, 5),
        Noise(100000, 5)}) {
    for (const CompressionEffort& effort :
         {kSectionEffort, kSmallDictionaryEffort, kDictionaryEffort,
          kFastDictionaryEffort, kZstdOnly}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const CompressedBytes compressed,
                                 CompressStrongly(AsBytes(raw), effort));
      EXPECT_LE(compressed.bytes.size(), raw.size());
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const std::string same,
          Decompress(compressed.method, AsBytes(compressed.bytes), raw.size()));
      EXPECT_TRUE(same == raw);
    }
  }
}

TEST(SectionCompressionTest, ChoosesByWhatIsSmallest) {
  const auto method = [](const std::string& raw,
                         const CompressionEffort& effort) {
    return CompressStrongly(AsBytes(raw), effort)->method;
  };
  EXPECT_EQ(method(Noise(1000, 5), kSectionEffort), CompressionMethod::kNone);
  EXPECT_EQ(method(Compressible(100000), kSectionEffort),
            CompressionMethod::kXz);
  EXPECT_EQ(method(std::string(60, 'x'), kSectionEffort),
            CompressionMethod::kZstd);
  EXPECT_EQ(method(Compressible(100000), kZstdOnly), CompressionMethod::kZstd);
  // However large a dictionary is; longer than the history that xz is allowed.
  EXPECT_EQ(method(std::string(size_t{65} << 20, 'x'), kSmallDictionaryEffort),
            CompressionMethod::kXz);
  for (const CompressionEffort& effort :
       {kDictionaryEffort, kFastDictionaryEffort}) {
    // As a text frame, which is for more than a MiB.
    EXPECT_EQ(method(Compressible((1 << 20) + 1), effort),
              CompressionMethod::kZstd);
  }
}

TEST(SectionCompressionTest, PartsOfATextDoNotDependOnTime) {
  const std::string raw = Compressible(3 << 20);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompressedBytes first,
      CompressStrongly(AsBytes(raw), kSmallDictionaryEffort));
  ASSERT_EQ(first.method, CompressionMethod::kXz);
  for (int i = 0; i < 3; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const CompressedBytes again,
        CompressStrongly(AsBytes(raw), kSmallDictionaryEffort));
    EXPECT_TRUE(again.bytes == first.bytes);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string same,
      Decompress(first.method, AsBytes(first.bytes), raw.size()));
  EXPECT_TRUE(same == raw);
}

TEST(SectionCompressionTest, GivesUpWhenAsked) {
  const std::atomic<bool> cancel = true;
  for (const CompressionEffort& effort :
       {kSectionEffort, kZstdOnly, kDictionaryEffort}) {
    EXPECT_THAT(
        CompressStrongly(AsBytes(Compressible(100000)), effort, &cancel),
        HasCode(absl::StatusCode::kCancelled));
  }
}

TEST(SectionCompressionTest, DecompressionIsCancelled) {
  for (const CompressionEffort& effort :
       {kSectionEffort, kZstdOnly, kDictionaryEffort}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const CompressedBytes compressed,
        CompressStrongly(AsBytes(Compressible(100000)), effort));
    const std::atomic<bool> cancel = true;
    EXPECT_THAT(Decompress(compressed.method, AsBytes(compressed.bytes), 100000,
                           &cancel),
                HasCode(absl::StatusCode::kCancelled));
  }
}

TEST(SectionCompressionTest, RefusesTheWrongSize) {
  const std::string raw = Compressible(100000);
  for (const CompressionEffort& effort :
       {kSectionEffort, kZstdOnly, kDictionaryEffort}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const CompressedBytes compressed,
                               CompressStrongly(AsBytes(raw), effort));
    const ByteView bytes = AsBytes(compressed.bytes);
    for (const uint64_t size :
         {uint64_t{0}, raw.size() - 1, raw.size() + 1, uint64_t{1} << 40}) {
      EXPECT_THAT(Decompress(compressed.method, bytes, size),
                  HasCode(absl::StatusCode::kDataLoss));
    }
    for (size_t cut = 0; cut < bytes.size(); cut += 97) {
      EXPECT_THAT(Decompress(compressed.method, bytes.first(cut), raw.size()),
                  HasCode(absl::StatusCode::kDataLoss));
    }
    EXPECT_THAT(
        Decompress(compressed.method,
                   AsBytes(compressed.bytes + compressed.bytes), raw.size()),
        HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST(SectionCompressionTest, SurvivesEveryFlippedByte) {
  const std::string raw = Compressible(3000);
  for (const CompressionEffort& effort :
       {kSectionEffort, kZstdOnly, kDictionaryEffort}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(CompressedBytes compressed,
                               CompressStrongly(AsBytes(raw), effort));
    for (char& c : compressed.bytes) {
      c = static_cast<char>(c ^ 0x55);
      // Damage is for checksums to find; here nothing but order is asked for.
      const auto result =
          Decompress(compressed.method, AsBytes(compressed.bytes), raw.size());
      EXPECT_THAT(
          result.status().code(),
          AnyOf(Eq(absl::StatusCode::kOk), Eq(absl::StatusCode::kDataLoss)));
      c = static_cast<char>(c ^ 0x55);
    }
  }
}

}  // namespace
}  // namespace quire
