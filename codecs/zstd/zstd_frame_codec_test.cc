// SPDX-License-Identifier: Apache-2.0
//
// Features of ZstdFrameCodec, tested by a codec that adds none.
#include "codecs/zstd/zstd_frame_codec.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_frames.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PlainFrameCodec final : public ZstdFrameCodec {
 public:
  PlainFrameCodec(CodecUse use, std::shared_ptr<const CodecContext> context)
      : ZstdFrameCodec(*FindCodec(CodecId::kRlz), use, std::move(context)) {}

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& /*scratch*/) const override {
    const std::string frame = MakeZstdFrame(raw, dictionary(), {});
    std::ranges::copy(AsBytes(frame), stored.begin());
    return frame.size();
  }
};

class ZstdFrameCodecTest : public ::testing::Test {
 protected:
  void Use(std::shared_ptr<const CodecContext> context) {
    codec_ = std::make_unique<PlainFrameCodec>(CodecUse::kEncodeAndDecode,
                                               std::move(context));
    scratch_ = codec_->NewScratch();
  }

  std::string Encode(const std::string& text) {
    return EncodeText(*codec_, text);
  }

  absl::Status Decode(const std::string& stored, std::string& raw) {
    return codec_->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch_);
  }

  TestRandom random_{71};
  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
};

TEST_F(ZstdFrameCodecTest, DecodesWithAndWithoutADictionary) {
  const auto context = MakeTestContext(30000);
  const std::string text = EditedPieces(random_, context->dictionary, 300000);
  size_t sizes[2] = {};
  for (const bool has_dictionary : {false, true}) {
    Use(has_dictionary ? context : nullptr);
    const std::string stored = Encode(text);
    sizes[has_dictionary ? 1 : 0] = stored.size();
    std::string raw(text.size(), '?');
    QUIRE_EXPECT_OK(Decode(stored, raw));
    EXPECT_TRUE(raw == text);
    std::string part(5000, '?');
    QUIRE_EXPECT_OK(codec_->DecodeRange(AsBytes(stored), text.size(), 150000,
                                        AsMutableBytes(part), *scratch_));
    EXPECT_TRUE(part == text.substr(150000, 5000));
  }
  EXPECT_LT(sizes[1], sizes[0]);
}

TEST_F(ZstdFrameCodecTest, NamesTheCodecInWhatIsWrong) {
  Use(nullptr);
  const std::string text(1000, 'x');
  const std::string stored = Encode(text);
  std::string raw(1001, '?');
  const absl::Status whole = Decode(stored, raw);
  const absl::Status range =
      codec_->DecodeRange(AsBytes(stored).first(5), 1000, 10,
                          AsMutableBytes(raw).first(20), *scratch_);
  for (const absl::Status& status : {whole, range}) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss,
                                  StartsWith("rlz block of ")));
  }
  EXPECT_THAT(std::string(whole.message()),
              HasSubstr("1000 bytes where 1001 were expected"));
}

TEST_F(ZstdFrameCodecTest, EncodesOnlyWhereItWasMadeTo) {
  const PlainFrameCodec decoder(CodecUse::kDecode, nullptr);
  const auto scratch = decoder.NewScratch();
  std::string stored(decoder.StoredSizeMax(4), '\0');
  EXPECT_THAT(decoder.Encode(AsBytes("text"), AsMutableBytes(stored), *scratch),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ZstdFrameCodecTest, BoundsWhatIsStored) {
  Use(nullptr);
  for (size_t size = 1; size <= kBlockSizeBytesMax; size *= 4) {
    EXPECT_GE(codec_->StoredSizeMax(size), ZSTD_compressBound(size));
    EXPECT_LE(Encode(RandomBytes(random_, size)).size(),
              codec_->StoredSizeMax(size));
  }
  // The dictionary belongs to the context and is not counted.
  Use(MakeTestContext(30000));
  EXPECT_LT(codec_->MemoryBytes(), 1000u);
}

}  // namespace
}  // namespace quire
