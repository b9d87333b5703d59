// SPDX-License-Identifier: Apache-2.0
//
// That all of the dictionary is searched, at every level;
// block_codec_test.cc has what all codecs do.
#include "codecs/zstd/zstd_dict_codec.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/zstd/decoder/zstd_test_frames.h"

namespace quire {
namespace {

constexpr size_t kPieceSize = 2000;

class ZstdDictCodecTest : public ::testing::Test {
 protected:
  void Make(int level, std::string dictionary) {
    auto context = std::make_shared<CodecContext>();
    context->dictionary = std::move(dictionary);
    context_ = context;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        codec_, MakeBlockCodec({.id = CodecId::kZstdDict, .level = level},
                               context_, CodecUse::kEncodeAndDecode));
    scratch_ = codec_->NewScratch();
  }

  std::string Encode(const std::string& text) {
    std::string stored(codec_->StoredSizeMax(text.size()), '\0');
    const auto size =
        codec_->Encode(AsBytes(text), AsMutableBytes(stored), *scratch_);
    EXPECT_THAT(size, IsOk());
    stored.resize(size.value_or(0));
    return stored;
  }

  // Encodes random pieces of all parts of a random dictionary, first and last
  // ones among them.
  void ExpectFindsEverything() {
    constexpr size_t kPartCount = 40;
    const std::string& dictionary = context_->dictionary;
    for (size_t part = 0; part <= kPartCount; ++part) {
      const size_t begin = (dictionary.size() - kPieceSize) / kPartCount * part;
      const std::string text = dictionary.substr(begin, kPieceSize);
      const std::string stored = Encode(text);
      // The fastest methods skip some positions, and take a few bytes to begin.
      EXPECT_LT(stored.size(), 100u) << "at " << begin;
      std::string raw(text.size(), '?');
      QUIRE_EXPECT_OK(
          codec_->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch_));
      EXPECT_TRUE(raw == text);
    }
  }

  TestRandom random_{11};
  std::shared_ptr<const CodecContext> context_;
  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
};

TEST_F(ZstdDictCodecTest, SearchesAllOfTheDictionaryAtEveryLevel) {
  const std::string dictionary = RandomBytes(random_, (1 << 20) + 12345);
  const CodecInfo& info = *FindCodec(CodecId::kZstdDict);
  for (int level = info.level_min; level <= info.level_max; ++level) {
    SCOPED_TRACE(level);
    Make(level, dictionary);
    ExpectFindsEverything();
  }
}

// Larger than the tables of any level, and than the 16 MiB that are all that
// libzstd's fastest methods can search.
TEST_F(ZstdDictCodecTest, SearchesAllOfALargeDictionary) {
  const std::string dictionary = RandomBytes(random_, 17 << 20);
  Make(1, dictionary.substr(0, 16 << 20));
  ExpectFindsEverything();
  // One level of each method, but for those below that are like level 5.
  for (const int level : {1, 3, 5, 6, 9, 13, 16, 19}) {
    SCOPED_TRACE(level);
    Make(level, dictionary);
    ExpectFindsEverything();
  }
}

TEST_F(ZstdDictCodecTest, HoldsItsTablesOnlyForEncoding) {
  Make(3, RandomBytes(random_, 1 << 20));
  EXPECT_GT(codec_->MemoryBytes(), size_t{4} << 20);
  EXPECT_LT(codec_->MemoryBytes(), size_t{12} << 20);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto decoder, MakeBlockCodec({.id = CodecId::kZstdDict, .level = 3},
                                         context_, CodecUse::kDecode));
  EXPECT_LT(decoder->MemoryBytes(), 1000u);
}

TEST_F(ZstdDictCodecTest, StoresFramesForAnyDecoder) {
  Make(6, MakeTestContext(200000)->dictionary);
  for (const size_t size : {size_t{1}, size_t{5000}, size_t{1} << 20}) {
    const std::string text = EditedPieces(random_, context_->dictionary, size);
    std::string raw(size, '?');
    EXPECT_TRUE(LibraryDecodes(AsBytes(Encode(text)),
                               AsBytes(context_->dictionary),
                               AsMutableBytes(raw)));
    EXPECT_TRUE(raw == text);
  }
}

TEST_F(ZstdDictCodecTest, WorksWithHardlyAnyDictionary) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{100}}) {
    for (const int level : {1, 9, 19}) {
      Make(level, RandomBytes(random_, size));
      const std::string text = RandomText(random_, 30000);
      const std::string stored = Encode(text);
      EXPECT_LT(stored.size(), text.size() * 2 / 3);
      std::string raw(text.size(), '?');
      QUIRE_EXPECT_OK(
          codec_->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch_));
      EXPECT_TRUE(raw == text);
    }
  }
}

}  // namespace
}  // namespace quire
