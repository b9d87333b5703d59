// SPDX-License-Identifier: Apache-2.0
//
// Comparison with libzstd: frames of all its levels are decoded and not left to
// it; damaged ones are accepted only if libzstd accepts them with the same
// bytes.
#include "codecs/zstd/decoder/zstd_decoder.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/zstd/decoder/sequence_copy.h"
#include "testing/base/guarded_bytes.h"
#include "testing/base/sanitized.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_frames.h"

namespace quire {
namespace {

class ZstdDecoderTest : public ::testing::Test {
 protected:
  // Decodes to memory of exact size, for AddressSanitizer, from memory that
  // ends at a guard page.
  bool Decode(const std::string& frame, const std::string& dictionary,
              size_t raw_size, size_t size, size_t excess,
              std::string* text = nullptr) {
    const GuardedBytes stored(AsBytes(frame));
    const auto output = std::make_unique<uint8_t[]>(size + excess);
    const bool is_decoded =
        decoder_.Decode(stored.bytes(), AsBytes(dictionary), raw_size, size,
                        {output.get(), size + excess});
    if (text != nullptr) {
      text->assign(reinterpret_cast<const char*>(output.get()), size);
    }
    return is_decoded;
  }

  void ExpectDecodes(const std::string& frame, const std::string& dictionary,
                     const std::string& text) {
    std::string found;
    for (const size_t excess : {size_t{0}, kCopyExcess}) {
      EXPECT_TRUE(
          Decode(frame, dictionary, text.size(), text.size(), excess, &found));
      EXPECT_TRUE(found == text);
      for (int i = 0; i < 3; ++i) {
        const size_t size = RandomBelow(random_, text.size() + 1);
        EXPECT_TRUE(
            Decode(frame, dictionary, text.size(), size, excess, &found));
        EXPECT_TRUE(found == text.substr(0, size)) << size;
      }
    }
  }

  // Returns true if it is accepted.
  bool ExpectAgrees(const std::string& frame, const std::string& dictionary,
                    size_t raw_size) {
    std::string found;
    if (!Decode(frame, dictionary, raw_size, raw_size, 0, &found)) {
      return false;
    }
    std::string expected(raw_size, '?');
    EXPECT_TRUE(LibraryDecodes(AsBytes(frame), AsBytes(dictionary),
                               AsMutableBytes(expected)));
    EXPECT_TRUE(found == expected);
    return true;
  }

  std::vector<std::string> Texts(size_t size) {
    std::vector<std::string> texts;
    for (TestInput& input : TestInputs(random_, size, dictionary_)) {
      texts.push_back(std::move(input.text));
    }
    // Few symbols, and few repetitions: literals only.
    std::string noise = RandomBytes(random_, size);
    for (char& c : noise) {
      c = static_cast<char>('a' + static_cast<uint8_t>(c) % 11);
    }
    texts.push_back(std::move(noise));
    return texts;
  }

  TestRandom random_{7};
  const std::string dictionary_ = MakeTestContext(60000)->dictionary;
  ZstdDecoder decoder_;
};

TEST_F(ZstdDecoderTest, DecodesFramesOfAllLevels) {
  for (int level = -5; level <= 22; level += kIsSanitized ? 3 : 1) {
    SCOPED_TRACE(absl::StrCat("level ", level));
    // A little less than an inner block, or several of them.
    const size_t size =
        level % 3 == 0 ? 400000 : 50000 + RandomBelow(random_, 100000);
    for (const std::string& text : Texts(size)) {
      for (const std::string& dictionary : {std::string(), dictionary_}) {
        ExpectDecodes(MakeZstdFrame(AsBytes(text), AsBytes(dictionary),
                                    {.level = level,
                                     .has_size = RandomBelow(random_, 2) == 0}),
                      dictionary, text);
      }
    }
  }
}

TEST_F(ZstdDecoderTest, DecodesSmallFramesAndSmallInnerBlocks) {
  for (size_t size = 1; size < 700; size += size < 30 ? 1 : 17) {
    for (const std::string& text : Texts(size)) {
      ExpectDecodes(MakeZstdFrame(AsBytes(text), AsBytes(dictionary_), {}),
                    dictionary_, text);
    }
  }
  // Some tables repeat from block to block.
  for (const std::string& text : Texts(100000)) {
    ExpectDecodes(MakeZstdFrame(AsBytes(text), AsBytes(dictionary_),
                                {.level = 5, .inner_size = 1500}),
                  dictionary_, text);
  }
}

TEST_F(ZstdDecoderTest, LeavesWhatItDoesNotKnowToLibzstd) {
  const std::string text = RandomText(random_, 5000);
  const std::string frame = MakeZstdFrame(AsBytes(text), {}, {});
  ExpectDecodes(frame, "", text);
  const std::string with_checksum =
      MakeZstdFrame(AsBytes(text), {}, {.has_checksum = true});
  EXPECT_FALSE(Decode(with_checksum, "", text.size(), text.size(), 0));
  EXPECT_FALSE(Decode(frame + frame, "", text.size(), text.size(), 0));
  EXPECT_FALSE(Decode(frame + 'x', "", text.size(), text.size(), 0));
  EXPECT_FALSE(Decode(frame, "", text.size() + 1, text.size() + 1, 0));
  EXPECT_FALSE(Decode(frame, "", text.size() - 1, text.size() - 1, 0));
  const std::string without_size =
      MakeZstdFrame(AsBytes(text), {}, {.has_size = false});
  EXPECT_FALSE(Decode(without_size, "", text.size() + 1, text.size() + 1, 0));
  EXPECT_FALSE(Decode(without_size, "", text.size() - 1, text.size() - 1, 0));
  std::string reserved = frame;
  reserved[4] = static_cast<char>(reserved[4] | 8);
  EXPECT_FALSE(Decode(reserved, "", text.size(), text.size(), 0));
}

TEST_F(ZstdDecoderTest, AcceptsNoTruncation) {
  for (const std::string& text : Texts(3000)) {
    const std::string frame =
        MakeZstdFrame(AsBytes(text), AsBytes(dictionary_), {.level = 12});
    for (size_t size = 0; size < frame.size(); ++size) {
      EXPECT_FALSE(Decode(frame.substr(0, size), dictionary_, text.size(),
                          text.size(), 0));
    }
  }
}

TEST_F(ZstdDecoderTest, AgreesOnEveryFlippedBitOfSmallFrames) {
  size_t accepted = 0;
  for (const int level : {1, 6, 19}) {
    for (const std::string& text : Texts(1500)) {
      std::string frame =
          MakeZstdFrame(AsBytes(text), AsBytes(dictionary_), {.level = level});
      for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
        const auto mask = static_cast<char>(1 << bit % 8);
        frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ mask);
        accepted += ExpectAgrees(frame, dictionary_, text.size()) ? 1 : 0;
        frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ mask);
      }
    }
  }
  // Flips in literals and distances leave valid frames.
  EXPECT_GT(accepted, 1000u);
}

TEST_F(ZstdDecoderTest, AgreesOnDamagedFrames) {
  for (int i = 0; i < Fewer(3000); ++i) {
    const size_t size = 1 + RandomBelow(random_, i % 20 == 0 ? 200000 : 5000);
    const std::string text = EditedPieces(random_, dictionary_, size);
    std::string frame =
        MakeZstdFrame(AsBytes(text), AsBytes(dictionary_),
                      {.level = static_cast<int>(RandomBelow(random_, 15)) - 3,
                       .has_size = false,
                       .inner_size = i % 3 == 0 ? 1500 : 0});
    for (size_t n = 1 + RandomBelow(random_, 4); n > 0; --n) {
      const size_t range = RandomBelow(random_, 2) == 0
                               ? std::min<size_t>(frame.size(), 60)
                               : frame.size();
      frame[RandomBelow(random_, range)] = static_cast<char>(random_());
    }
    ExpectAgrees(frame, dictionary_, text.size());
  }
}

// Literals may fill an inner block of 128 KiB to its last byte.
TEST_F(ZstdDecoderTest, DecodesBlocksOfLiteralsOnly) {
  for (const size_t size : {size_t{131071}, size_t{131072}, size_t{131073},
                            size_t{262144}, size_t{1} << 20}) {
    const std::string text = Texts(size).back();
    ExpectDecodes(MakeZstdFrame(AsBytes(text), {}, {.level = 1}), "", text);
  }
}

}  // namespace
}  // namespace quire
