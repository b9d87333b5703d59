// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/auto_codec.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBlockSize = 64 << 10;

std::unique_ptr<BlockCodec> Make(absl::string_view name) {
  static const auto* const context =
      new std::shared_ptr<const CodecContext>(MakeTestContext(256 << 10));
  return *MakeBlockCodec(*ParseCodecSpec(name), *context,
                         CodecUse::kEncodeAndDecode);
}

// Noisy: the low bytes of each number are nearly random.
std::string Floats() {
  TestRandom random(5);
  std::string text;
  for (size_t i = 0; text.size() < kBlockSize; ++i) {
    const auto value = static_cast<float>(
        1000 * std::sin(static_cast<double>(i) / 500) + 2000 +
        static_cast<double>(RandomBelow(random, 1000)) / 100);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    text.append(bytes, sizeof(value));
  }
  return text;
}

CodecId MemberOf(absl::string_view codec, const std::string& text) {
  const absl::StatusOr<CodecId> member =
      AutoMemberOf(AsBytes(EncodeText(*Make(codec), text)));
  EXPECT_THAT(member, IsOk());
  return member.value_or(CodecId::kUnspecified);
}

TEST(AutoCodecTest, TakesWhatSuitsTheBlock) {
  TestRandom random(1);
  const std::string noise = RandomBytes(random, kBlockSize);
  const std::string known =
      EditedPieces(random, MakeTestContext(256 << 10)->dictionary, kBlockSize);
  for (const char* codec : {"auto:1", "auto:2", "auto:3"}) {
    EXPECT_EQ(MemberOf(codec, noise), CodecId::kCopy) << codec;
    EXPECT_EQ(MemberOf(codec, known), CodecId::kRlz) << codec;
  }
  EXPECT_EQ(MemberOf("auto:2", Floats()), CodecId::kNumeric);
  EXPECT_EQ(MemberOf("auto:3", Floats()), CodecId::kNumeric);
  // Random bytes that repeat at a large distance are no noise.
  const std::string half = noise.substr(0, kBlockSize / 2);
  EXPECT_NE(MemberOf("auto:2", half + half), CodecId::kCopy);
  // No other member decodes as fast.
  const std::string words = RandomText(random, kBlockSize, 2000);
  EXPECT_EQ(MemberOf("auto:1", words), CodecId::kLz4);
  EXPECT_EQ(MemberOf("auto:2", words), CodecId::kRlz);
  EXPECT_EQ(MemberOf("auto:3", words), CodecId::kXz);
}

TEST(AutoCodecTest, TheSmallestIsHardlyLargerThanTheBestMember) {
  TestRandom random(3);
  const auto best_codec = Make("auto:3");
  std::vector<std::string> texts = {Floats()};
  for (TestInput& input :
       TestInputs(random, kBlockSize, MakeTestContext(256 << 10)->dictionary)) {
    texts.push_back(std::move(input.text));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string& text = texts[i];
    size_t best = SIZE_MAX;
    for (const AutoMember& member : AutoMembers(AutoObjective::kArchive)) {
      best = std::min(
          best, EncodeText(*Make(FormatCodecSpec(member.spec)), text).size());
    }
    EXPECT_LE(EncodeText(*best_codec, text).size(), 1 + best + best / 100);
  }
}

TEST(AutoCodecTest, ABlockNeverGrowsByMoreThanAByte) {
  TestRandom random(4);
  for (const char* name : {"auto:1", "auto:2", "auto:3"}) {
    const auto codec = Make(name);
    for (size_t size = 1; size < 5000; size += 1 + size / 3) {
      EXPECT_LE(EncodeText(*codec, RandomBytes(random, size)).size(), size + 1);
    }
  }
}

TEST(AutoCodecTest, RefusesUnknownAndNestedMembers) {
  const auto codec = Make("auto");
  const auto scratch = codec->NewScratch();
  const std::string text(1000, 'a');
  const std::string inner = EncodeText(*codec, text);
  std::string raw(text.size(), '\0');
  for (int id = 0; id < 256; ++id) {
    const bool is_member =
        id == 1 || id == 2 || id == 10 || id == 11 || id == 22;
    const std::string stored = static_cast<char>(id) + inner;
    const absl::StatusOr<CodecId> member = AutoMemberOf(AsBytes(stored));
    EXPECT_EQ(member.ok(), is_member) << id;
    if (is_member) {
      continue;
    }
    const auto refused = FailsWith(
        absl::StatusCode::kDataLoss,
        HasSubstr(absl::StrCat("codec ", id, id == 12 ? ", auto" : "")));
    EXPECT_THAT(codec->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch),
                refused);
    EXPECT_THAT(codec->DecodeRange(AsBytes(stored), raw.size(), 3,
                                   AsMutableBytes(raw).first(5), *scratch),
                refused);
  }
  EXPECT_THAT(codec->Decode({}, AsMutableBytes(raw), *scratch),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("no byte that names the member")));
}

}  // namespace
}  // namespace quire
