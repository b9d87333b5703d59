// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to rlz; block_codec_test.cc covers all codecs.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/rlz/rlz_codec.h"

#include <zstd.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr std::initializer_list<int> kLevels = {1, 2, 3};

std::unique_ptr<BlockCodec> MakeCodec(const std::string& dictionary,
                                      int level) {
  auto context = std::make_shared<CodecContext>();
  context->dictionary = dictionary;
  auto codec = MakeBlockCodec({.id = CodecId::kRlz, .level = level}, context,
                              CodecUse::kEncodeAndDecode);
  EXPECT_THAT(codec, IsOk());
  return std::move(codec).value_or(nullptr);
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Decodes as any program with libzstd and the dictionary would.
std::string DecodeByZstd(const std::string& stored,
                         const std::string& dictionary, size_t size,
                         bool as_prefix) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  const size_t loaded =
      as_prefix ? ZSTD_DCtx_refPrefix(context.get(), dictionary.data(),
                                      dictionary.size())
                : ZSTD_DCtx_loadDictionary_advanced(
                      context.get(), dictionary.data(), dictionary.size(),
                      ZSTD_dlm_byCopy, ZSTD_dct_rawContent);
  EXPECT_EQ(ZSTD_isError(loaded), 0u);
  std::string raw(size + 1, '\0');
  const size_t found = ZSTD_decompressDCtx(
      context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(found) != 0) {
    return ZSTD_getErrorName(found);
  }
  raw.resize(found);
  return raw;
}

TEST(RlzCodecTest, WritesFramesThatZstdReads) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 300000);
  for (const int level : kLevels) {
    const auto codec = MakeCodec(dictionary, level);
    for (const size_t size :
         std::initializer_list<size_t>{1, 2, 3, 5, 8, 100, 4096, 65536, 131072,
                                       131073, 300000, kBlockSizeBytesMax}) {
      const std::string text = EditedPieces(random, dictionary, size);
      const std::string stored = EncodeText(*codec, text);
      for (const bool as_prefix : {false, true}) {
        EXPECT_TRUE(DecodeByZstd(stored, dictionary, size, as_prefix) == text)
            << size << " bytes, level " << level;
      }
      ZSTD_frameHeader header;
      ASSERT_EQ(ZSTD_getFrameHeader(&header, stored.data(), stored.size()), 0u);
      EXPECT_EQ(header.frameContentSize, size);
      EXPECT_EQ(header.dictID, 0u);
      EXPECT_EQ(header.checksumFlag, 0u);
      // A single segment: the decoder needs no window apart from the text.
      EXPECT_EQ(header.windowSize, size);
    }
  }
}

TEST(RlzCodecTest, TakesADictionaryThatLooksLikeATrainedOne) {
  TestRandom random(1);
  const std::string dictionary = "\x37\xA4\x30\xEC" + RandomText(random, 5000);
  for (const int level : kLevels) {
    const auto codec = MakeCodec(dictionary, level);
    const std::string text = dictionary.substr(0, 3000) + dictionary;
    const std::string stored = EncodeText(*codec, text);
    EXPECT_LT(stored.size(), 60u);
    EXPECT_TRUE(DecodeByZstd(stored, dictionary, text.size(), false) == text);
    std::string raw(text.size(), '?');
    QUIRE_EXPECT_OK(codec->Decode(AsBytes(stored), AsMutableBytes(raw),
                                  *codec->NewScratch()));
    EXPECT_TRUE(raw == text);
  }
}

TEST(RlzCodecTest, WorksWithSmallDictionaries) {
  TestRandom random(1);
  for (const int level : kLevels) {
    for (size_t size = 0; size < 20; ++size) {
      const std::string dictionary = RandomText(random, size);
      const auto codec = MakeCodec(dictionary, level);
      const std::string text = RandomText(random, 2000, 50) + dictionary;
      EXPECT_TRUE(DecodeByZstd(EncodeText(*codec, text), dictionary,
                               text.size(), false) == text);
    }
  }
}

TEST(RlzCodecTest, HigherLevelsAreSmaller) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 500000);
  const std::string text =
      EditedPieces(random, dictionary, 30000) + RandomText(random, 30000, 1000);
  const size_t fast = EncodeText(*MakeCodec(dictionary, 1), text).size();
  const size_t normal = EncodeText(*MakeCodec(dictionary, 2), text).size();
  const size_t best = EncodeText(*MakeCodec(dictionary, 3), text).size();
  EXPECT_LT(normal, fast);
  EXPECT_LT(best, normal);
}

// Compressed text is stored unchanged; copies from the dictionary within it are
// found nevertheless.
TEST(RlzCodecTest, KeepsWhatDoesNotCompress) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 100000);
  const std::string noise = RandomBytes(random, 40000);
  for (const int level : kLevels) {
    const auto codec = MakeCodec(dictionary, level);
    EXPECT_LT(EncodeText(*codec, noise).size(), noise.size() + 20);
    const std::string mixed =
        noise + dictionary.substr(5001, 10000) + noise.substr(0, 20000);
    EXPECT_LT(EncodeText(*codec, mixed).size(), noise.size() + 1500) << level;
  }
}

// Words of 5 to 7 bytes that the dictionary has once, in another order: only
// the fine index finds them.
TEST(RlzCodecTest, MaxIsSmallForShortCopies) {
  TestRandom random(1);
  std::vector<std::string> words;
  for (int i = 0; i < 3000; ++i) {
    words.push_back(RandomBytes(random, 5 + RandomBelow(random, 3)));
  }
  std::string dictionary;
  for (const std::string& word : words) {
    dictionary += word;
  }
  std::string text;
  while (text.size() < 60000) {
    text += words[RandomBelow(random, words.size())];
  }
  const size_t size = EncodeText(*MakeCodec(dictionary, 3), text).size();
  EXPECT_LT(size, 27000u);
  EXPECT_GT(EncodeText(*MakeCodec(dictionary, 2), text).size(), size);
}

TEST(RlzCodecTest, MemoryIsTheIndexAlone) {
  const std::string dictionary(1'000'000, 'x');
  EXPECT_LE(MakeCodec(dictionary, 3)->MemoryBytes(),
            dictionary.size() * 9 + 1000);
  EXPECT_LE(MakeCodec(dictionary, 2)->MemoryBytes(),
            dictionary.size() * 5 + 1000);
  auto context = std::make_shared<CodecContext>();
  context->dictionary = dictionary;
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto decoder,
                             MakeBlockCodec({.id = CodecId::kRlz, .level = 2},
                                            context, CodecUse::kDecode));
  EXPECT_LE(decoder->MemoryBytes(), 1000u);
}

}  // namespace
}  // namespace quire
