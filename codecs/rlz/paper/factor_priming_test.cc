// SPDX-License-Identifier: Apache-2.0
//
// What RLZ-ZZ' is primed with, and what is particular to rlz-zzp.
#include "codecs/rlz/paper/factor_priming.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/base/varint.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/rlz/paper/paper_form_testing.h"
#include "codecs/zlib/deflate_check.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Half of it is indexed: "0123456789abcdef".
constexpr char kDictionary[] = "0123456789abcdef345#abc345345#bc";

TEST(FactorPrimingTest, IsWhatTheFormatSays) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto priming,
      FactorPriming::Make(AsBytes(absl::string_view(kDictionary))));
  // "345", "abc", "345", "345", "bc", and the literal "#": one is frequent.
  EXPECT_EQ(AsText(priming->offsets()), absl::string_view("\x03\0\0\0", 4));
  EXPECT_EQ(AsText(priming->lengths()), "\x03");
  std::vector<uint32_t> offsets = {26, 19, 4, 0};
  priming->UseKnownOffsets({3, 1, 2, 0}, offsets);
  EXPECT_THAT(offsets, ::testing::ElementsAre(3, 19, 4, 0));
}

TEST(FactorPrimingTest, PutsTheFrequentLast) {
  const std::string indexed = "<a>|<b>|<c>|<d>|<e>|<f>|<g>|";
  const std::string rest = "<b><c><a><c><b><c><d><d><e>X";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto priming,
                             FactorPriming::Make(AsBytes(indexed + rest)));
  // b and d twice, c three times.
  EXPECT_EQ(AsText(priming->offsets()),
            absl::string_view("\x04\0\0\0\x0C\0\0\0\x08\0\0\0", 12));
  EXPECT_EQ(AsText(priming->lengths()), "\3\3\3");
}

TEST(FactorPrimingTest, OfNothingIsNothing) {
  for (const char* const dictionary : {"", "x", "xy"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto priming,
        FactorPriming::Make(AsBytes(absl::string_view(dictionary))));
    EXPECT_TRUE(priming->offsets().empty());
    EXPECT_TRUE(priming->lengths().empty());
  }
}

TEST(RlzZzpCodecTest, WritesAndReadsTheDocumentedForm) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 60000, 500);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto priming,
                             FactorPriming::Make(AsBytes(dictionary)));
  const std::string offset_priming(AsText(priming->offsets()));
  const std::string length_priming(AsText(priming->lengths()));
  ASSERT_GT(offset_priming.size(), 400u);
  // Factors of the priming, in its order.
  std::string offsets = offset_priming.substr(offset_priming.size() - 200);
  std::string lengths;
  std::string text;
  ByteView left = priming->lengths();
  for (size_t i = 0; !left.empty(); ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t length, TakeVarint(left));
    if (i * 4 + 200 >= offset_priming.size()) {
      AppendVarint(length, lengths);
      uint32_t offset = 0;
      std::memcpy(&offset, &offset_priming[i * 4], 4);
      text += dictionary.substr(offset, length);
    }
  }
  CodecUnderTest codec(CodecId::kRlzZzp, dictionary);
  for (const char flags : {'\0', '\1', '\2', '\3'}) {
    const std::string offset_stream =
        RawDeflate(offsets, (flags & 1) != 0 ? offset_priming : "");
    std::string stored;
    AppendVarint(50, stored);
    stored.push_back(flags);
    AppendVarint(offset_stream.size(), stored);
    stored += offset_stream;
    stored += RawDeflate(lengths, (flags & 2) != 0 ? length_priming : "");
    EXPECT_TRUE(codec.Decode(stored, text.size()).value_or("") == text);
    stored[1] = 4;
    EXPECT_THAT(codec.Decode(stored, text.size()),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr("primed")));
    // Without its priming a stream's first match reaches too far.
    stored[1] = 0;
    EXPECT_EQ(codec.Decode(stored, text.size()).ok(), flags == 0);
  }
  EXPECT_THAT(codec.Decode("\x01", 5),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("missing")));
  const std::string stored = codec.Encode(text);
  EXPECT_TRUE(codec.Decode(stored, text.size()).value_or("") == text);
}

TEST(RlzZzpCodecTest, IsNeverMuchLargerThanRlzZz) {
  TestRandom random(2);
  const std::string dictionary = RandomText(random, 60000, 500);
  CodecUnderTest zz(CodecId::kRlzZz, dictionary);
  CodecUnderTest zzp(CodecId::kRlzZzp, dictionary);
  size_t unprimed = 0;
  size_t primed = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string text = EditedPieces(random, dictionary, 4096);
    unprimed += zz.Encode(text).size();
    primed += zzp.Encode(text).size();
  }
  EXPECT_LE(primed, unprimed + 20);
}

}  // namespace
}  // namespace quire
