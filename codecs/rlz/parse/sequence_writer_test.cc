// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/sequence_writer.h"

#include <zstd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

std::string Write(SequenceWriter& writer, const std::string& raw,
                  const SequenceList& sequences) {
  std::vector<uint8_t> stored(SequenceWriter::StoredSizeMax(raw.size()));
  const auto size = writer.Write(AsBytes(raw), sequences, stored);
  EXPECT_THAT(size, IsOk());
  return std::string(AsText(ByteView(stored).first(size.value_or(0))));
}

std::string Decode(const std::string& stored, size_t size) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  std::string raw(size + 1, '\0');
  const size_t found = ZSTD_decompressDCtx(
      context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(found) != 0) {
    return ZSTD_getErrorName(found);
  }
  raw.resize(found);
  return raw;
}

TEST(SequenceWriterTest, WritesAFrameWithItsSizeAndNothingElse) {
  SequenceWriter writer;
  const std::string raw = "abcdefgh" + std::string(1000, 'x') + "abcdefgh";
  const std::string stored =
      Write(writer, raw,
            {{.literal_run = 9, .match_length = 999, .distance = 1},
             {.literal_run = 0, .match_length = 8, .distance = 1008},
             {}});
  EXPECT_LT(stored.size(), 40u);
  EXPECT_EQ(Decode(stored, raw.size()), raw);
  // RFC 8878, section 3.1.1.1.1: content size of two bytes, a single segment,
  // no checksum, no dictionary number.
  EXPECT_EQ(static_cast<uint8_t>(stored[4]), 0x60);
  EXPECT_EQ(ZSTD_getFrameContentSize(stored.data(), stored.size()), raw.size());
}

TEST(SequenceWriterTest, WritesLiteralsAlone) {
  TestRandom random(1);
  SequenceWriter writer;
  for (const size_t size : {1u, 2u, 100u, 5000u, 128u << 10}) {
    const std::string raw = RandomBytes(random, size);
    const std::string stored =
        Write(writer, raw, {{.literal_run = static_cast<uint32_t>(size)}});
    EXPECT_LE(stored.size(), size + 13);
    EXPECT_TRUE(Decode(stored, size) == raw);
  }
}

TEST(SequenceWriterTest, WritesAsManyShortCopiesAsThereCanBe) {
  SequenceWriter writer;
  const std::string raw(kFrameBlockSizeBytesMax, 'x');
  SequenceList sequences = {
      {.literal_run = 2, .match_length = 3, .distance = 1}};
  size_t size = 5;
  for (; size + 3 <= raw.size(); size += 3) {
    sequences.push_back({.literal_run = 0, .match_length = 3, .distance = 2});
  }
  sequences.push_back(
      {.literal_run = static_cast<uint32_t>(raw.size() - size)});
  EXPECT_TRUE(Decode(Write(writer, raw, sequences), raw.size()) == raw);
}

// Distances carry over from one inner block to the next, also over a raw one.
TEST(SequenceWriterTest, WritesSeveralInnerBlocks) {
  TestRandom random(1);
  SequenceWriter writer;
  const uint32_t piece = kFrameBlockSizeBytesMax;
  const uint32_t far = 2 * piece + 100;
  const SequenceList sequences = {
      {.literal_run = 100, .match_length = piece - 100, .distance = 100},
      {},
      {.literal_run = piece},
      {.literal_run = 100, .match_length = 200, .distance = far},
      {.literal_run = 1, .match_length = 100, .distance = far},
      {.literal_run = 0, .match_length = piece - 401, .distance = 100},
      {}};
  std::string raw;
  for (const Sequence& step : sequences) {
    raw += RandomBytes(random, step.literal_run);
    for (uint32_t i = 0; i < step.match_length; ++i) {
      raw += raw[raw.size() - step.distance];
    }
  }
  ASSERT_EQ(raw.size(), 3 * size_t{piece});
  EXPECT_TRUE(Decode(Write(writer, raw, sequences), raw.size()) == raw);
}

TEST(SequenceWriterTest, BoundsHold) {
  TestRandom random(1);
  SequenceWriter writer;
  for (size_t size = 1; size < 400; ++size) {
    const std::string raw = RandomBytes(random, size);
    EXPECT_EQ(Decode(Write(writer, raw,
                           {{.literal_run = static_cast<uint32_t>(size)}}),
                     size),
              raw);
  }
}

}  // namespace
}  // namespace quire
