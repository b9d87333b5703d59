// SPDX-License-Identifier: Apache-2.0
#include "loadtest/papers/coded_text.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string SomeText(size_t size) {
  TestRandom random(1);
  return RandomText(random, size);
}

std::unique_ptr<PayloadCodec> MakeCodec(const std::string& name,
                                        uint32_t partition_size_bytes = 0) {
  CodecSpec spec = ParseCodecSpec(name).value();
  spec.partition_size_bytes = partition_size_bytes;
  return MakePayloadCodec(spec, nullptr, CodecUse::kEncodeAndDecode).value();
}

TEST(CodedTextTest, CountsWhatTheCodecWrote) {
  const std::string text = SomeText(10 * 4096 + 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CodedText coded,
      CodedText::Encode(*MakeCodec("copy"), AsBytes(text), 4096));
  EXPECT_EQ(coded.block_count(), 11u);
  EXPECT_EQ(coded.size_bytes(), text.size());
  EXPECT_EQ(coded.payload_bytes(), text.size());
  QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t index_bytes, coded.IndexBytes());
  EXPECT_GT(index_bytes, 0u);
  EXPECT_LT(index_bytes, 44u);
  EXPECT_GT(coded.encode_cpu_seconds(), 0.0);
}

TEST(CodedTextTest, ReadsRangesAcrossBlocks) {
  const std::string text = SomeText(5 * 8192 + 100);
  for (const auto& codec : {MakeCodec("zstd"), MakeCodec("zlib", 4096)}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const CodedText coded,
                               CodedText::Encode(*codec, AsBytes(text), 8192));
    EXPECT_LT(coded.payload_bytes(), text.size());
    const auto scratch = codec->NewScratch();
    for (const auto& [offset, size] : {std::pair<size_t, size_t>{0, 1},
                                       {8190, 12},
                                       {8192, 8192},
                                       {1, 30000},
                                       {5 * 8192 - 1, 101},
                                       {0, text.size()}}) {
      std::string range(size, '\0');
      QUIRE_ASSERT_OK(
          coded.Read(*codec, offset, AsMutableBytes(range), *scratch));
      EXPECT_EQ(range, text.substr(offset, size)) << offset;
    }
    QUIRE_EXPECT_OK(coded.Check(*codec, AsBytes(text)));
  }
}

TEST(CodedTextTest, IsTheSameFromAnyNumberOfThreads) {
  const std::string text = SomeText(20 * 4096 + 100);
  const auto codec = MakeCodec("zlib");
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodedText one,
                             CodedText::Encode(*codec, AsBytes(text), 4096));
  for (const size_t thread_count : {size_t{2}, size_t{3}, size_t{50}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const CodedText many,
        CodedText::Encode(*codec, AsBytes(text), 4096, thread_count));
    EXPECT_EQ(many.payload_bytes(), one.payload_bytes());
    QUIRE_EXPECT_OK(many.Check(*codec, AsBytes(text)));
  }
}

TEST(CodedTextTest, CheckFindsOtherBytes) {
  std::string text = SomeText(3 * 4096);
  const auto codec = MakeCodec("lz4");
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodedText coded,
                             CodedText::Encode(*codec, AsBytes(text), 4096));
  text[5000] = static_cast<char>(text[5000] ^ 1);
  EXPECT_THAT(coded.Check(*codec, AsBytes(text)),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("offset 4096")));
}

TEST(BestRateTest, RepeatsUntilTheTimeIsOver) {
  uint64_t calls = 0;
  double used = 0;
  const double rate = BestRate(0.001, [&](uint64_t number) {
    EXPECT_EQ(number, calls++);
    const double started = ThreadCpuSeconds();
    while (ThreadCpuSeconds() - started < 1e-5) {
    }
    used += ThreadCpuSeconds() - started;
  });
  // Three rounds of a millisecond, in calls of 10 microseconds or more.
  EXPECT_GE(used, 0.002);
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, 1e5);
}

}  // namespace
}  // namespace quire
