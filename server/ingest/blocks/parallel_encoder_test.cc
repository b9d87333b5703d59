// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/parallel_encoder.h"

#include <cstring>
#include <string>
#include <vector>

#include "codecs/base/status_macros.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr size_t kEncodedSize = 4096;

std::unique_ptr<PayloadCodec> EncodingCodec(const char* spec) {
  return MakePayloadCodec(*ParseCodecSpec(spec), nullptr,
                          CodecUse::kEncodeAndDecode)
      .value();
}

absl::Status SubmitText(ParallelEncoder& encoder, const std::string& text) {
  QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, encoder.Acquire());
  std::memcpy(buffer.data(), text.data(), text.size());
  encoder.Submit(text.size());
  return absl::OkStatus();
}

TEST(ParallelEncoderTest, KeepsTheOrder) {
  const std::unique_ptr<PayloadCodec> codec = EncodingCodec("zlib");
  for (const uint32_t threads : {1u, 2u, 7u}) {
    SCOPED_TRACE(threads);
    std::vector<std::string> out;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ParallelEncoder> encoder,
        ParallelEncoder::Create(*codec, threads, kEncodedSize,
                                [&out](ByteView raw, const Payload& payload) {
                                  EXPECT_LT(payload.bytes.size(), raw.size());
                                  out.emplace_back(AsText(raw));
                                  return absl::OkStatus();
                                }));
    std::vector<std::string> in;
    for (uint64_t i = 0; i < 200; ++i) {
      in.push_back(MakeTestText(kEncodedSize - i, i));
      QUIRE_ASSERT_OK(SubmitText(*encoder, in.back()));
      if (i % 50 == 0) {
        QUIRE_ASSERT_OK(encoder->Drain());
        EXPECT_EQ(out, in);
      }
    }
    QUIRE_ASSERT_OK(encoder->Drain());
    EXPECT_EQ(out, in);
  }
}

TEST(ParallelEncoderTest, GivesBlocksThatDoNotShrinkRaw) {
  const std::unique_ptr<PayloadCodec> codec = EncodingCodec("copy");
  size_t raw_count = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(*codec, 2, kEncodedSize,
                              [&](ByteView, const Payload& payload) {
                                raw_count += payload.is_raw ? 1 : 0;
                                return absl::OkStatus();
                              }));
  QUIRE_ASSERT_OK(SubmitText(*encoder, "text"));
  QUIRE_ASSERT_OK(encoder->Drain());
  EXPECT_EQ(raw_count, 1);
}

TEST(ParallelEncoderTest, EncodesAnewWhatWasEncodedFromAnotherText) {
  const std::unique_ptr<PayloadCodec> codec = EncodingCodec("zlib");
  const auto scratch = codec->NewScratch();
  const auto encoded = [&](const std::string& text) {
    std::vector<uint8_t> stored(codec->StoredSizeMax(text.size()));
    const auto payload = codec->Encode(AsBytes(text), stored, *scratch);
    return std::string(AsText(payload->bytes));
  };
  const std::string text = MakeTestText(kEncodedSize, 1);
  const std::string right = encoded(text);
  const std::string other = encoded(MakeTestText(kEncodedSize, 2));
  std::vector<std::string> out;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(*codec, 2, kEncodedSize,
                              [&](ByteView raw, const Payload& payload) {
                                EXPECT_EQ(AsText(raw), text);
                                out.emplace_back(AsText(payload.bytes));
                                return absl::OkStatus();
                              }));
  for (const std::string& payload : {right, other, std::string("no payload")}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const MutableByteView buffer,
                               encoder->Acquire());
    std::memcpy(buffer.data(), text.data(), text.size());
    encoder->SubmitEncoded(text.size(), {.bytes = AsBytes(payload)});
  }
  QUIRE_ASSERT_OK(encoder->Drain());
  EXPECT_EQ(out, std::vector<std::string>(3, right));
  EXPECT_EQ(encoder->reencoded_count(), 2u);
  EXPECT_EQ(encoder->mismatch_count(), 0u);
}

TEST(ParallelEncoderTest, PassesTheErrorOfTheSinkOn) {
  const std::unique_ptr<PayloadCodec> codec = EncodingCodec("zlib");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(*codec, 2, kEncodedSize,
                              [](ByteView, const Payload&) {
                                return absl::UnavailableError("disk full");
                              }));
  absl::Status status;
  int submitted_count = 0;
  while (status.ok() && submitted_count < 1000) {
    status = SubmitText(*encoder, "text");
    ++submitted_count;
  }
  EXPECT_THAT(status, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_LE(submitted_count, 10);
}

TEST(ParallelEncoderTest, CanBeDroppedWithBlocksInFlight) {
  const std::unique_ptr<PayloadCodec> codec = EncodingCodec("zstd:19");
  for (int i = 0; i < 20; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ParallelEncoder> encoder,
        ParallelEncoder::Create(
            *codec, 3, kEncodedSize,
            [](ByteView, const Payload&) { return absl::OkStatus(); }));
    for (uint64_t j = 0; j < 5; ++j) {
      QUIRE_ASSERT_OK(SubmitText(*encoder, MakeTestText(kEncodedSize, j)));
    }
  }
}

}  // namespace
}  // namespace quire
