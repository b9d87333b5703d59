// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/stored_text.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"
#include "loadtest/codec_bench/text_sample.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPiece = TextSample::kPieceSizeBytes;

// A text in a file that no other process can find.
class TextFile {
 public:
  explicit TextFile(std::string text) : text_(std::move(text)) {
    const std::string path =
        absl::StrCat(testing::TempDir(), "/stored_text_test.", getpid());
    std::ofstream(path, std::ios::binary) << text_;
    source_ = SourceText::Open(path, "").value();
    unlink(path.c_str());
  }

  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& text() const { return text_; }

  const SourceText& source() const { return *source_; }

 private:
  std::string text_;
  std::unique_ptr<SourceText> source_;
};

std::string SomeText(size_t size) {
  TestRandom random(1);
  return RandomText(random, size);
}

std::unique_ptr<BlockCodec> MakeCodec(const std::string& spec) {
  return MakeBlockCodec(ParseCodecSpec(spec).value(), nullptr,
                        CodecUse::kEncodeAndDecode)
      .value();
}

std::string ReadAll(const TextSample& sample) {
  std::string all(sample.size_bytes(), '\0');
  EXPECT_THAT(sample.Read(0, AsMutableBytes(all)), IsOk());
  return all;
}

TEST(TextSampleTest, StrideOneIsTheText) {
  const TextFile file(SomeText(2 * kPiece + 77));
  const TextSample sample(file.source(), 1);
  EXPECT_TRUE(sample.whole());
  EXPECT_EQ(sample.ScaleToText(), 1.0);
  EXPECT_EQ(ReadAll(sample), file.text());
}

TEST(TextSampleTest, KeepsEveryNthPiece) {
  const TextFile file(SomeText(5 * kPiece + 77));
  const TextSample sample(file.source(), 2);
  EXPECT_FALSE(sample.whole());
  EXPECT_EQ(ReadAll(sample), file.text().substr(kPiece, kPiece) +
                                 file.text().substr(3 * kPiece, kPiece) +
                                 file.text().substr(5 * kPiece));
  EXPECT_DOUBLE_EQ(sample.ScaleToText(),
                   (5.0 * kPiece + 77) / (2.0 * kPiece + 77));
  std::string across(10, '\0');
  QUIRE_ASSERT_OK(sample.Read(kPiece - 5, AsMutableBytes(across)));
  EXPECT_EQ(across, file.text().substr(2 * kPiece - 5, 5) +
                        file.text().substr(3 * kPiece, 5));
}

TEST(TextSampleTest, KeepsOnePieceWhenTheStrideIsTooLarge) {
  const TextFile file(SomeText(3 * kPiece));
  const TextSample sample(file.source(), 1000);
  EXPECT_EQ(ReadAll(sample), file.text().substr(kPiece, kPiece));
}

TEST(TextSampleTest, RefusesWhatLiesBehindTheEnd) {
  const TextFile file("abc");
  const TextSample sample(file.source(), 4);
  std::string out(2, '\0');
  QUIRE_ASSERT_OK(sample.Read(1, AsMutableBytes(out)));
  EXPECT_THAT(sample.Read(2, AsMutableBytes(out)),
              HasCode(absl::StatusCode::kOutOfRange));
}

TEST(StoredTextTest, CountsWhatTheCodecWrote) {
  const TextFile file(SomeText(10 * 4096 + 100));
  const TextSample sample(file.source(), 1);
  const auto codec = MakeCodec("copy");
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredText stored,
                             StoredText::Encode(*codec, sample, 4096));
  EXPECT_EQ(stored.block_count(), 11u);
  EXPECT_EQ(stored.payload_bytes(), file.text().size());
  EXPECT_GT(stored.index_bytes(), 0u);
  EXPECT_LT(stored.index_bytes(), 44u);
  EXPECT_GT(stored.encode_cpu_seconds(), 0.0);
}

TEST(StoredTextTest, DecodesRangesAcrossBlocks) {
  const TextFile file(SomeText(5 * 4096 + 100));
  const TextSample sample(file.source(), 1);
  const auto codec = MakeCodec("zstd");
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredText stored,
                             StoredText::Encode(*codec, sample, 4096));
  EXPECT_LT(stored.payload_bytes(), file.text().size());
  const auto scratch = codec->NewScratch();
  for (const auto& [offset, size] : {std::pair<size_t, size_t>{0, 1},
                                     {4090, 12},
                                     {4096, 4096},
                                     {1, 12000},
                                     {5 * 4096 - 1, 101},
                                     {0, file.text().size()}}) {
    std::string range(size, '\0');
    QUIRE_ASSERT_OK(
        stored.DecodeRange(*codec, offset, AsMutableBytes(range), *scratch));
    EXPECT_EQ(range, file.text().substr(offset, size)) << offset;
  }
  EXPECT_THAT(stored.Check(*codec, sample, 50, 5000), IsOk());
  EXPECT_THAT(stored.Check(*codec, sample, 50, 1 << 20), IsOk());
}

TEST(StoredTextTest, IsTheSameFromAnyNumberOfThreads) {
  const TextFile file(SomeText(20 * 4096 + 100));
  const TextSample sample(file.source(), 1);
  const auto codec = MakeCodec("zlib");
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredText one,
                             StoredText::Encode(*codec, sample, 4096, 1));
  for (const size_t thread_count : std::initializer_list<size_t>{2, 3, 50}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const StoredText many,
        StoredText::Encode(*codec, sample, 4096, thread_count));
    EXPECT_EQ(many.payload_bytes(), one.payload_bytes());
    EXPECT_EQ(many.index_bytes(), one.index_bytes());
    EXPECT_THAT(many.Check(*codec, sample, 10, 5000), IsOk());
  }
}

TEST(StoredTextTest, NoticesOtherBytes) {
  std::string changed = SomeText(3 * 4096);
  const TextFile file(changed);
  const auto codec = MakeCodec("lz4");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const StoredText stored,
      StoredText::Encode(*codec, TextSample(file.source(), 1), 4096));
  changed[5000] = static_cast<char>(changed[5000] ^ 1);
  const TextFile other(changed);
  EXPECT_THAT(stored.Check(*codec, TextSample(other.source(), 1), 1, 100),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("offset 4096")));
}

TEST(StoredTextTest, EstimatesTheTimeOfEncoding) {
  const TextFile file(SomeText(1 << 20));
  const auto codec = MakeCodec("zstd:19");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const double seconds_per_byte,
      EstimateEncodeSecondsPerByte(*codec, TextSample(file.source(), 1), 4096));
  EXPECT_GT(seconds_per_byte, 0.0);
}

}  // namespace
}  // namespace quire
