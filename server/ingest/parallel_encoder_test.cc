// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/parallel_encoder.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/status_matchers.h"
#include "server/ingest/testing/ingest_testing.h"

namespace quire {
namespace {

constexpr size_t kBlockSize = 4096;

std::unique_ptr<BlockCodec> Codec(const char* spec) {
  return MakeBlockCodec(*ParseCodecSpec(spec), nullptr,
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
  const std::unique_ptr<BlockCodec> codec = Codec("zlib");
  for (const uint32_t threads : {1u, 2u, 7u}) {
    SCOPED_TRACE(threads);
    std::vector<std::string> out;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ParallelEncoder> encoder,
        ParallelEncoder::Create(*codec, threads, kBlockSize,
                                [&out](ByteView raw, ByteView stored) {
                                  EXPECT_LT(stored.size(), raw.size());
                                  out.emplace_back(AsText(raw));
                                  return absl::OkStatus();
                                }));
    std::vector<std::string> in;
    for (uint64_t i = 0; i < 200; ++i) {
      in.push_back(MakeTestText(kBlockSize - i, i));
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
  const std::unique_ptr<BlockCodec> codec = Codec("copy");
  size_t raw_count = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(*codec, 2, kBlockSize,
                              [&](ByteView, ByteView stored) {
                                raw_count += stored.empty() ? 1 : 0;
                                return absl::OkStatus();
                              }));
  QUIRE_ASSERT_OK(SubmitText(*encoder, "text"));
  QUIRE_ASSERT_OK(encoder->Drain());
  EXPECT_EQ(raw_count, 1);
}

TEST(ParallelEncoderTest, PassesTheErrorOfTheSinkOn) {
  const std::unique_ptr<BlockCodec> codec = Codec("zlib");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(*codec, 2, kBlockSize, [](ByteView, ByteView) {
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

// Copies, but has no memory for the scratch, or for the second block.
class ForgetfulCodec final : public BlockCodec {
 public:
  explicit ForgetfulCodec(bool has_scratch) : has_scratch_(has_scratch) {}

  const CodecInfo& info() const override { return *FindCodec("copy"); }

  size_t StoredSizeMax(size_t raw_size) const override { return raw_size; }

  std::unique_ptr<Scratch> NewScratch() const override {
    if (!has_scratch_) {
      throw std::bad_alloc();
    }
    return std::make_unique<Scratch>();
  }

  size_t MemoryBytes() const override { return 0; }

  absl::StatusOr<size_t> Encode(ByteView raw, MutableByteView /*stored*/,
                                Scratch& /*scratch*/) const override {
    if (AsText(raw) == "second") {
      throw std::bad_alloc();
    }
    return raw.size();
  }

  absl::Status Decode(ByteView /*stored*/, MutableByteView /*raw*/,
                      Scratch& /*scratch*/) const override {
    return absl::UnimplementedError("only encodes");
  }

 private:
  const bool has_scratch_;
};

TEST(ParallelEncoderTest, SaysThatMemoryIsShort) {
  for (const bool has_scratch : {false, true}) {
    const ForgetfulCodec codec(has_scratch);
    size_t written_count = 0;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ParallelEncoder> encoder,
        ParallelEncoder::Create(codec, 2, kBlockSize, [&](ByteView, ByteView) {
          ++written_count;
          return absl::OkStatus();
        }));
    for (const char* const text : {"first", "second", "third"}) {
      QUIRE_ASSERT_OK(SubmitText(*encoder, text));
    }
    EXPECT_THAT(encoder->Drain(),
                FailsWith(absl::StatusCode::kResourceExhausted,
                          ::testing::HasSubstr("--threads")));
    EXPECT_EQ(written_count, has_scratch ? 1 : 0);
  }
}

TEST(ParallelEncoderTest, CanBeDroppedWithBlocksInFlight) {
  const std::unique_ptr<BlockCodec> codec = Codec("zstd:19");
  for (int i = 0; i < 20; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ParallelEncoder> encoder,
        ParallelEncoder::Create(*codec, 3, kBlockSize, [](ByteView, ByteView) {
          return absl::OkStatus();
        }));
    for (uint64_t j = 0; j < 5; ++j) {
      QUIRE_ASSERT_OK(SubmitText(*encoder, MakeTestText(kBlockSize, j)));
    }
  }
}

}  // namespace
}  // namespace quire
