// SPDX-License-Identifier: Apache-2.0
//
// Frames made by libzstd, with and without a dictionary.
#include "codecs/zstd/zstd_frame.h"

#include <initializer_list>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_frames.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string MakeFrame(const std::string& text, const std::string& dictionary) {
  return MakeZstdFrame(AsBytes(text), AsBytes(dictionary), {});
}

class ZstdFrameTest : public ::testing::Test {
 protected:
  absl::Status Decode(const std::string& frame, const std::string& dictionary,
                      std::string& raw) {
    return reader_.Decode(AsBytes(frame), AsBytes(dictionary),
                          AsMutableBytes(raw));
  }

  void ExpectDecodes(const std::string& frame, const std::string& dictionary,
                     const std::string& text) {
    std::string raw(text.size(), '?');
    QUIRE_EXPECT_OK(Decode(frame, dictionary, raw));
    EXPECT_TRUE(raw == text);
  }

  TestRandom random_{3};
  ZstdFrameReader reader_;
};

TEST_F(ZstdFrameTest, ReadsWithAnyDictionaryInTurn) {
  const std::string first = RandomText(random_, 50000);
  const std::string second = RandomText(random_, 20000);
  for (const std::string& dictionary : {first, second, std::string(), first}) {
    const std::string& source = dictionary.empty() ? second : dictionary;
    const std::string text = EditedPieces(random_, source, 300000);
    const std::string frame = MakeFrame(text, dictionary);
    ExpectDecodes(frame, dictionary, text);
    for (const size_t offset :
         std::initializer_list<size_t>{0, 1, 131000, 250000}) {
      std::string out(5000, '?');
      QUIRE_EXPECT_OK(reader_.DecodeRange(AsBytes(frame), AsBytes(dictionary),
                                          text.size(), offset,
                                          AsMutableBytes(out)));
      EXPECT_TRUE(out == text.substr(offset, out.size()));
    }
  }
}

TEST_F(ZstdFrameTest, TakesADictionaryAsContentWhateverItBeginsWith) {
  std::string dictionary = RandomText(random_, 30000);
  dictionary.replace(0, 8, "\x37\xA4\x30\xEC\x01\x00\x00\x00", 8);
  const std::string text = EditedPieces(random_, dictionary, 40000);
  const std::string frame = MakeFrame(text, dictionary);
  EXPECT_LT(frame.size(), text.size() / 10);
  ExpectDecodes(frame, dictionary, text);
}

TEST_F(ZstdFrameTest, WantsOneFrameOfExactlyTheSize) {
  const std::string text = RandomText(random_, 1000);
  const std::string frame = MakeFrame(text, "");
  std::string raw(1000, '?');
  for (const std::string& wrong :
       {frame + frame, frame + 'x', std::string(), frame.substr(1),
        frame.substr(0, frame.size() - 1)}) {
    EXPECT_THAT(Decode(wrong, "", raw), HasCode(absl::StatusCode::kDataLoss));
  }
  std::string larger(1001, '?');
  EXPECT_THAT(
      Decode(frame, "", larger),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr("decodes to 1000 bytes where 1001 were expected")));
  std::string smaller(999, '?');
  EXPECT_THAT(Decode(frame, "", smaller), HasCode(absl::StatusCode::kDataLoss));
  ExpectDecodes(frame, "", text);
}

TEST_F(ZstdFrameTest, MissesTheDictionaryItWasMadeWith) {
  const std::string dictionary = RandomBytes(random_, 5000);
  const std::string text = dictionary.substr(1000, 3000);
  std::string raw(text.size(), '?');
  EXPECT_THAT(Decode(MakeFrame(text, dictionary), "", raw),
              HasCode(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace quire
