// SPDX-License-Identifier: Apache-2.0
//
// Requirements on every registered codec, at its lowest, default and highest
// level. A new codec is tested here by being registered.
#include "codecs/block_codec.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kDictionarySize = 96 << 10;
constexpr uint64_t kSeed = 1;

const std::shared_ptr<const CodecContext>& TestContext() {
  static const auto* const context =
      new std::shared_ptr<const CodecContext>(MakeTestContext(kDictionarySize));
  return *context;
}

std::vector<CodecSpec> AllSpecs() {
  std::vector<CodecSpec> specs;
  for (const CodecInfo& info : AllCodecs()) {
    std::vector<int> levels = {info.level_min, info.level_default,
                               info.level_max};
    std::ranges::sort(levels);
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    CodecSpec spec = DefaultCodecSpec(info);
    for (const int level : levels) {
      spec.level = level;
      specs.push_back(spec);
    }
  }
  return specs;
}

class BlockCodecTest : public ::testing::TestWithParam<CodecSpec> {
 protected:
  void SetUp() override {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        codec_,
        MakeBlockCodec(GetParam(), TestContext(), CodecUse::kEncodeAndDecode));
    scratch_ = codec_->NewScratch();
  }

  // The stored form in memory of exactly its size, so that AddressSanitizer
  // sees any read behind it.
  std::vector<uint8_t> Encode(const std::string& text) {
    std::vector<uint8_t> stored(codec_->StoredSizeMax(text.size()));
    const absl::StatusOr<size_t> size =
        codec_->Encode(AsBytes(text), stored, *scratch_);
    EXPECT_THAT(size, IsOk());
    EXPECT_LE(size.value_or(0), stored.size());
    return {stored.begin(),
            stored.begin() + static_cast<ptrdiff_t>(size.value_or(0))};
  }

  absl::StatusOr<std::string> Decode(ByteView stored, size_t raw_size) {
    const auto raw = std::make_unique<uint8_t[]>(raw_size);
    QUIRE_RETURN_IF_ERROR(
        codec_->Decode(stored, {raw.get(), raw_size}, *scratch_));
    return std::string(reinterpret_cast<const char*>(raw.get()), raw_size);
  }

  absl::StatusOr<std::string> DecodeRange(ByteView stored, size_t raw_size,
                                          size_t offset, size_t size) {
    const auto out = std::make_unique<uint8_t[]>(size);
    QUIRE_RETURN_IF_ERROR(codec_->DecodeRange(stored, raw_size, offset,
                                              {out.get(), size}, *scratch_));
    return std::string(reinterpret_cast<const char*>(out.get()), size);
  }

  void ExpectRoundTrip(const TestInput& input) {
    SCOPED_TRACE(absl::StrCat(input.name, ", ", input.text.size(), " bytes"));
    const std::vector<uint8_t> stored = Encode(input.text);
    const absl::StatusOr<std::string> back = Decode(stored, input.text.size());
    ASSERT_THAT(back, IsOk());
    // Not EXPECT_EQ: it would print a megabyte.
    EXPECT_TRUE(*back == input.text);
  }

  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
};

TEST_P(BlockCodecTest, RoundTripsEverySmallSize) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (size_t size = 1; size <= 300; size += kIsSanitized ? 7 : 1) {
    for (const TestInput& input :
         TestInputs(random, size, TestContext()->dictionary)) {
      ExpectRoundTrip(input);
    }
  }
}

TEST_P(BlockCodecTest, RoundTripsSizesAroundPowersOfTwo) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (size_t power = 512; power <= (256 << 10);
       power *= kIsSanitized ? 8 : 2) {
    // All kinds at the power itself, one in turn next to it: time matters.
    const size_t kind = power % 5;
    for (const size_t size : {power - 1, power + 1}) {
      ExpectRoundTrip(
          TestInputs(random, size, TestContext()->dictionary)[kind]);
    }
    for (const TestInput& input :
         TestInputs(random, power, TestContext()->dictionary)) {
      ExpectRoundTrip(input);
    }
  }
}

TEST_P(BlockCodecTest, RoundTripsTheLargestBlock) {
  TestRandom random(kSeed);
  for (const size_t size : {kBlockSizeBytesMax - 1, kBlockSizeBytesMax}) {
    ExpectRoundTrip({"edited dictionary",
                     EditedPieces(random, TestContext()->dictionary, size)});
  }
  ExpectRoundTrip({"zeros", std::string(kBlockSizeBytesMax, '\0')});
  ExpectRoundTrip({"random", RandomBytes(random, kBlockSizeBytesMax)});
}

TEST_P(BlockCodecTest, RangeIsTheCutOfTheWhole) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (const size_t size : {size_t{1}, size_t{2}, size_t{77}, size_t{4096},
                            size_t{65536}, size_t{300000}}) {
    for (const TestInput& input :
         TestInputs(random, size, TestContext()->dictionary)) {
      SCOPED_TRACE(absl::StrCat(input.name, ", ", size, " bytes"));
      const std::vector<uint8_t> stored = Encode(input.text);
      for (int i = 0; i < 12; ++i) {
        // The edges first: nothing, the first and last byte, all.
        const size_t offset = i == 0   ? RandomBelow(random, size + 1)
                              : i == 1 ? 0
                              : i == 2 ? size - 1
                              : i == 3 ? 0
                                       : RandomBelow(random, size);
        const size_t length = i == 0               ? 0
                              : (i == 1 || i == 2) ? 1
                              : i == 3             ? size
                                       : 1 + RandomBelow(random, size - offset);
        const absl::StatusOr<std::string> cut =
            DecodeRange(stored, size, offset, length);
        ASSERT_THAT(cut, IsOk()) << offset << " " << length;
        EXPECT_TRUE(*cut == input.text.substr(offset, length))
            << offset << " " << length;
      }
    }
  }
}

TEST_P(BlockCodecTest, IsDeterministic) {
  TestRandom random(kSeed);
  const std::string text =
      EditedPieces(random, TestContext()->dictionary, 20000);
  const std::vector<uint8_t> stored = Encode(text);
  // With scratch that has seen other blocks, and with a codec of its own.
  Encode(RandomText(random, 3000));
  Encode(RandomBytes(random, 70000));
  EXPECT_EQ(Encode(text), stored);
  SetUp();
  EXPECT_EQ(Encode(text), stored);
}

TEST_P(BlockCodecTest, SurvivesEveryFlippedBit) {
  TestRandom random(kSeed);
  for (const TestInput& input :
       TestInputs(random, 170, TestContext()->dictionary)) {
    SCOPED_TRACE(input.name);
    std::vector<uint8_t> stored = Encode(input.text);
    for (size_t bit = 0; bit < stored.size() * 8; bit += kIsSanitized ? 5 : 1) {
      stored[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      // Codecs have no checksums: a flip may go unseen, or must be DataLoss.
      const absl::StatusOr<std::string> whole =
          Decode(stored, input.text.size());
      if (!whole.ok()) {
        EXPECT_THAT(whole, HasCode(absl::StatusCode::kDataLoss));
      }
      const absl::StatusOr<std::string> range =
          DecodeRange(stored, input.text.size(), 30, 50);
      if (!range.ok()) {
        EXPECT_THAT(range, HasCode(absl::StatusCode::kDataLoss));
      }
      // LZ4 lets a match distance of zero pass, and leaves its bytes unwritten.
      if (whole.ok() && range.ok() && GetParam().id != CodecId::kLz4 &&
          // With lz4 as its member.
          (GetParam().id != CodecId::kAuto ||
           stored[0] != static_cast<uint8_t>(CodecId::kLz4))) {
        EXPECT_EQ(*range, whole->substr(30, 50)) << "bit " << bit;
      }
      stored[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

TEST_P(BlockCodecTest, RefusesEveryTruncation) {
  TestRandom random(kSeed);
  for (const TestInput& input :
       TestInputs(random, 700, TestContext()->dictionary)) {
    SCOPED_TRACE(input.name);
    const std::vector<uint8_t> stored = Encode(input.text);
    for (size_t size = 0; size < stored.size(); size += kIsSanitized ? 5 : 1) {
      const std::vector<uint8_t> cut(
          stored.begin(), stored.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_THAT(Decode(cut, input.text.size()),
                  HasCode(absl::StatusCode::kDataLoss))
          << size;
      const absl::StatusOr<std::string> range =
          DecodeRange(cut, input.text.size(), 100, 90);
      if (range.ok()) {
        EXPECT_EQ(*range, input.text.substr(100, 90)) << size;
      } else {
        EXPECT_THAT(range, HasCode(absl::StatusCode::kDataLoss));
      }
    }
  }
}

TEST_P(BlockCodecTest, RefusesBytesBehindTheBlock) {
  TestRandom random(kSeed);
  for (const TestInput& input :
       TestInputs(random, 700, TestContext()->dictionary)) {
    std::vector<uint8_t> stored = Encode(input.text);
    stored.push_back(0);
    EXPECT_THAT(Decode(stored, input.text.size()),
                HasCode(absl::StatusCode::kDataLoss))
        << input.name;
  }
}

TEST_P(BlockCodecTest, RefusesTheWrongSize) {
  TestRandom random(kSeed);
  for (const TestInput& input :
       TestInputs(random, 3000, TestContext()->dictionary)) {
    SCOPED_TRACE(input.name);
    const std::vector<uint8_t> stored = Encode(input.text);
    for (const size_t size : {size_t{1}, size_t{2999}, size_t{3001},
                              size_t{4096}, kBlockSizeBytesMax}) {
      EXPECT_THAT(Decode(stored, size),
                  FailsWith(absl::StatusCode::kDataLoss,
                            HasSubstr(std::string(codec_->info().name))))
          << size;
    }
  }
}

TEST_P(BlockCodecTest, SurvivesGarbage) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (int i = 0; i < Fewer(2000); ++i) {
    const std::string stored = RandomBytes(random, RandomBelow(random, 100));
    const size_t raw_size = 1 + RandomBelow(random, 5000);
    const size_t offset = RandomBelow(random, raw_size);
    Decode(AsBytes(stored), raw_size).IgnoreError();
    DecodeRange(AsBytes(stored), raw_size, offset,
                RandomBelow(random, raw_size - offset + 1))
        .IgnoreError();
  }
}

TEST_P(BlockCodecTest, DecodesButDoesNotEncodeWhenMadeForDecoding) {
  TestRandom random(kSeed);
  const std::string text = RandomText(random, 5000);
  const std::vector<uint8_t> stored = Encode(text);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      codec_, MakeBlockCodec(GetParam(), TestContext(), CodecUse::kDecode));
  scratch_ = codec_->NewScratch();
  EXPECT_EQ(Decode(stored, text.size()).value_or(""), text);
  std::vector<uint8_t> again(codec_->StoredSizeMax(text.size()));
  EXPECT_THAT(codec_->Encode(AsBytes(text), again, *scratch_),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST_P(BlockCodecTest, IsSharedByThreads) {
  TestRandom random(kSeed);
  std::vector<std::string> texts;
  std::vector<std::vector<uint8_t>> blocks;
  for (int i = 0; i < 6; ++i) {
    texts.push_back(EditedPieces(random, TestContext()->dictionary, 5000));
    blocks.push_back(Encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto scratch = codec_->NewScratch();
      std::vector<uint8_t> stored(codec_->StoredSizeMax(5000));
      std::string back(5000, '\0');
      for (size_t i = t; i < t + 20; ++i) {
        const size_t which = i % texts.size();
        const auto size =
            codec_->Encode(AsBytes(texts[which]), stored, *scratch);
        const bool same = size.ok() && *size == blocks[which].size() &&
                          std::equal(blocks[which].begin(), blocks[which].end(),
                                     stored.begin());
        const absl::Status status =
            codec_->Decode(blocks[which], AsMutableBytes(back), *scratch);
        good[t] += same && status.ok() && back == texts[which] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(good, std::vector<int>(4, 20));
}

INSTANTIATE_TEST_SUITE_P(
    AllCodecs, BlockCodecTest, ::testing::ValuesIn(SomeOf(AllSpecs(), 2)),
    [](const ::testing::TestParamInfo<CodecSpec>& spec) {
      std::string name = FormatCodecSpec(spec.param);
      if (spec.param.partition_size_bytes != 0) {
        absl::StrAppend(&name, " in ", spec.param.partition_size_bytes);
      }
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace quire
