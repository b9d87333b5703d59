// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/text_frame.h"

#include <zstd.h>

#include <atomic>
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/threaded_work.h"

namespace quire {
namespace {

struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Decodes `frame` in steps, with the largest window that FORMAT.md permits.
std::string Decode(const std::string& frame) {
  const std::unique_ptr<ZSTD_DCtx, FreeDecoder> context(ZSTD_createDCtx());
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
  std::string text;
  std::string step(size_t{1} << 20, '\0');
  ZSTD_inBuffer in = {frame.data(), frame.size(), 0};
  for (size_t hint = 1; hint != 0;) {
    ZSTD_outBuffer out = {step.data(), step.size(), 0};
    hint = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(hint) != 0) {
      return ZSTD_getErrorName(hint);
    }
    text.append(step, 0, out.pos);
  }
  EXPECT_EQ(in.pos, frame.size());
  return text;
}

std::string Compress(const std::string& text,
                     TextFrameEffort effort = TextFrameEffort::kStrong) {
  const absl::StatusOr<std::string> frame =
      CompressTextFrame(AsBytes(text), effort);
  EXPECT_THAT(frame, IsOk());
  return frame.value_or("");
}

TEST(TextFrameTest, RoundTrips) {
  TestRandom random(TestSeed());
  std::string words;
  while (words.size() < 200'000) {
    words += "word" + std::to_string(RandomBelow(random, 5000)) + " ";
  }
  const std::string noise = RandomBytes(random, 140'000);
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("abc"),
        std::string(65'536, 'x'), std::string(131'072, 'x'),
        std::string(131'073, 'x'), noise, words, words.substr(0, 65'536),
        words.substr(0, 131'072), words.substr(0, 196'608),
        noise.substr(0, 131'072) + "y", noise + words + noise}) {
    for (const TextFrameEffort effort :
         {TextFrameEffort::kStrong, TextFrameEffort::kQuick}) {
      const std::string frame = Compress(text, effort);
      EXPECT_TRUE(Decode(frame) == text) << text.size();
      EXPECT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()),
                text.size());
    }
  }
}

// Text is searched in the whole frame, not only in its inner block.
TEST(TextFrameTest, RepeatsAreFoundFarBack) {
  TestRandom random(1);
  const std::string far = RandomBytes(random, 100'000);
  const std::string between = RandomBytes(random, 300'000);
  for (const TextFrameEffort effort :
       {TextFrameEffort::kStrong, TextFrameEffort::kQuick}) {
    const std::string frame = Compress(far + between + far, effort);
    EXPECT_LT(frame.size(), far.size() + between.size() + 2'000);
    EXPECT_TRUE(Decode(frame) == far + between + far);
  }
}

// Each effort is worth its time.
TEST(TextFrameTest, MoreEffortMakesItSmaller) {
  TestRandom random(1);
  const std::string source = RandomText(random, 100'000);
  const std::string text = EditedPieces(random, source, 300'000);
  EXPECT_LT(Compress(text, TextFrameEffort::kStrong).size(),
            Compress(text, TextFrameEffort::kQuick).size());
}

// With threads too.
TEST(TextFrameTest, CompressesTheSameWayEveryTime) {
  TestRandom random(TestSeed());
  std::string text = RandomBytes(random, 200'000);
  text += text.substr(1000, 150'000);
  for (const TextFrameEffort effort :
       {TextFrameEffort::kStrong, TextFrameEffort::kQuick}) {
    const std::string frame = Compress(text, effort);
    EXPECT_TRUE(Compress(text, effort) == frame);
    const absl::StatusOr<std::string> with_threads = CompressTextFrame(
        AsBytes(text), effort, /*cancel=*/nullptr, ThreadedWork(2).run);
    EXPECT_THAT(with_threads, IsOk());
    EXPECT_TRUE(with_threads.value_or("") == frame);
  }
}

// No reader has more than 128 MiB of history: farther copies would not decode.
TEST(TextFrameTest, CopiesStayInTheWindow) {
  if (kIsSanitized) {
    GTEST_SKIP() << "128 MiB of text: the optimised build runs this";
  }
  TestRandom random(1);
  const std::string far = RandomBytes(random, 100'000);
  std::string text = far;
  text.resize((size_t{1} << 27) + 5'000, 'y');
  text += far + far;
  const std::string frame = Compress(text);
  EXPECT_GT(frame.size(), 2 * far.size());
  EXPECT_TRUE(Decode(frame) == text);
}

TEST(TextFrameTest, GivesUpWhenAsked) {
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(
      CompressTextFrame(AsBytes("text"), TextFrameEffort::kStrong, &cancel),
      HasCode(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace quire
