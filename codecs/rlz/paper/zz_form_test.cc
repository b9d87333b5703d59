// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to rlz-zz; block_codec_test.cc covers all codecs.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/varint.h"
#include "codecs/rlz/factor.h"
#include "codecs/rlz/paper/factor_form.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"
#include "testing/codecs/paper_form_testing.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// A stored block assembled from the format's description alone.
std::string StoredBlock(const FactorList& factors) {
  std::string offsets;
  std::string lengths;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (int shift = 0; shift < 32; shift += 8) {
      offsets.push_back(static_cast<char>(factors.offsets[i] >> shift));
    }
    AppendVarint(factors.lengths[i], lengths);
  }
  const std::string offset_stream = RawDeflate(offsets);
  std::string stored;
  AppendVarint(factors.size(), stored);
  AppendVarint(offset_stream.size(), stored);
  return stored + offset_stream + RawDeflate(lengths);
}

FactorList MakeFactors(
    std::initializer_list<std::pair<uint32_t, uint32_t>> pairs) {
  FactorList factors;
  for (const auto& [offset, length] : pairs) {
    factors.Add(offset, length);
  }
  return factors;
}

TEST(ZzFormTest, WritesAndReadsTheDocumentedForm) {
  std::string dictionary;
  for (int i = 0; i < 40; ++i) {
    dictionary.push_back(static_cast<char>('0' + i));
  }
  CodecUnderTest codec(CodecId::kRlzZz, dictionary);
  // Long runs of the dictionary, so that the streams are smaller than the text.
  std::string text = dictionary + "\xFE" + dictionary.substr(7) + dictionary;
  text += dictionary.substr(1) + dictionary.substr(2, 30);
  const std::string expected = StoredBlock(
      MakeFactors({{0, 40}, {0xFE, 0}, {7, 33}, {0, 40}, {1, 39}, {2, 30}}));
  const std::string stored = codec.Encode(text);
  EXPECT_EQ(stored, expected);
  EXPECT_EQ(codec.Decode(expected, text.size()).value_or(""), text);
}

TEST(ZzFormTest, StoresTextThatFactorsWouldEnlarge) {
  TestRandom random(1);
  const std::string text = RandomBytes(random, 5000);
  CodecUnderTest codec(CodecId::kRlzZz, "abc");
  const std::string stored = codec.Encode(text);
  EXPECT_TRUE(stored == std::string(1, '\0') + text);
}

TEST(ZzFormTest, WorksWithAnEmptyDictionary) {
  CodecUnderTest codec(CodecId::kRlzZz, "");
  const std::string text(3000, 'a');
  const std::string stored = codec.Encode(text);
  EXPECT_LT(stored.size(), 100u);
  EXPECT_EQ(codec.Decode(stored, text.size()).value_or(""), text);
}

// Blocks that zlib accepts and the form must not.
TEST(ZzFormTest, NamesWhatIsWrongWithABlock) {
  CodecUnderTest codec(CodecId::kRlzZz, "0123456789");
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(codec.Decode(stored, 20),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  expect("", "malformed variable-length integer");
  expect("\x14", "malformed variable-length integer");
  expect("\x15", "claims 21 factors");
  const std::string good = StoredBlock(MakeFactors({{0, 10}, {0, 10}}));
  EXPECT_THAT(codec.Decode(good, 20), IsOk());
  expect(absl::StrCat("\x15", good.substr(1)), "claims 21 factors");
  expect(absl::StrCat("\x03", good.substr(1)), "claims 3 factors, but has 2");
  expect(absl::StrCat("\x01", good.substr(1)), "claims 1 factors, but has 2");
  expect(good.substr(0, 1) + "\x7F" + good.substr(2), "claims 127 bytes");
  expect(good + "x", "length stream: 1 bytes follow the end");
  expect(StoredBlock(MakeFactors({{0, 10}})), "gives 10 bytes of text");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 10}, {'x', 0}})),
         "more factors follow the text's last");
  expect(StoredBlock(MakeFactors({{0, 10}, {1, 10}})),
         "factor 1 is the 10 bytes at 1 of a dictionary of 10 bytes");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 9}, {256, 0}})),
         "factor 2 is the literal 256");
  expect(StoredBlock(MakeFactors({{0, UINT32_MAX}})),
         "gives 0 bytes of text where 20");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 11}})), "past the block's");
  expect(std::string("\0", 1) + "short", "decodes to 5 bytes where 20");
}

TEST(ZzFormTest, RangeEndsWhereTheRangeDoes) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 50000);
  CodecUnderTest codec(CodecId::kRlzZz, dictionary);
  const std::string text = EditedPieces(random, dictionary, 600000);
  const std::string stored = codec.Encode(text);
  // Without its last bytes the block cannot be decoded, but its front can.
  const ByteView cut = AsBytes(stored).first(stored.size() - 1);
  std::string out(1000, '?');
  QUIRE_EXPECT_OK(codec.codec().DecodeRange(
      cut, text.size(), 20, AsMutableBytes(out), codec.scratch()));
  EXPECT_EQ(out, text.substr(20, 1000));
  EXPECT_THAT(codec.codec().DecodeRange(cut, text.size(), text.size() - 1000,
                                        AsMutableBytes(out), codec.scratch()),
              HasCode(absl::StatusCode::kDataLoss));
}

// Lengths of one, two and three bytes, across all positions at which the
// reader's chunks can split them.
TEST(ZzFormTest, ReadsLengthsAcrossChunks) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 20000);
  for (size_t shift = 0; shift < 6; ++shift) {
    FactorList factors;
    std::string text;
    const auto add = [&](uint32_t length) {
      const auto offset = static_cast<uint32_t>(factors.size() % 3000);
      factors.Add(length == 0 ? offset % 256 : offset, length);
      text += length == 0 ? std::string(1, static_cast<char>(offset % 256))
                          : dictionary.substr(offset, length);
    };
    for (size_t i = 0; i < shift; ++i) {
      add(1);
    }
    for (uint32_t i = 0; i < 1500; ++i) {
      add(i % 50 == 7 ? 16384 : i % 2 == 0 ? 200 : i % 5 == 0 ? 0 : 3);
    }
    ZzForm form(9);
    QUIRE_ASSERT_OK_AND_ASSIGN(const ByteView stored,
                               form.Write(AsBytes(text), factors));
    const auto read = [&](size_t begin, size_t size) {
      std::string out(size, '?');
      QUIRE_EXPECT_OK(form.Read(stored, AsBytes(dictionary), text.size(), begin,
                                AsMutableBytes(out)));
      return out;
    };
    EXPECT_TRUE(read(0, text.size()) == text);
    for (size_t end = 0; end < text.size(); end += 997) {
      const size_t begin = RandomBelow(random, end + 1);
      ASSERT_TRUE(read(begin, end - begin) == text.substr(begin, end - begin))
          << begin << " " << end;
    }
  }
}

}  // namespace
}  // namespace quire
