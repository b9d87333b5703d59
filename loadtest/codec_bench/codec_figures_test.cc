// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/codec_figures.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/block_codec.h"
#include "loadtest/codec_bench/text_sample.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;

// Table 1's row of lz4fast from Table 2's.
TEST(CodecFiguresTest, FormatsThePublishedTables) {
  const std::string tables = FormatTables(
      {{"lz4fast", {2945e6, 6460e6, 1.825}}, {"copy", {10000e6, 10000e6, 1}}},
      24);
  EXPECT_THAT(tables, AllOf(ContainsRegex("lz4fast +2945 +6460 +1.825\n"),
                            ContainsRegex("lz4fast +914 +1331 +21946 +31951\n"),
                            ContainsRegex("copy +0 +0 +0 +0\n")));
}

TEST(CodecFiguresTest, MeasuresOnEveryThread) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/codec_figures_test.", getpid());
  std::ofstream(path, std::ios::binary) << std::string(1'000'000, 'x');
  const auto source = SourceText::Open(path, "");
  unlink(path.c_str());
  ASSERT_TRUE(source.ok()) << source.status();
  const TextSample sample(**source, 1);
  const auto codec = MakeBlockCodec(ParseCodecSpec("xz").value(), nullptr,
                                    CodecUse::kEncodeAndDecode);
  ASSERT_TRUE(codec.ok()) << codec.status();
  // More threads than blocks: some have nothing to do.
  for (const size_t job_count : {size_t{1}, size_t{3}, size_t{20}}) {
    const auto figures = MeasureFigures(**codec, **codec, sample, 1 << 16,
                                        job_count, /*seconds=*/1e-3);
    ASSERT_TRUE(figures.ok()) << figures.status();
    EXPECT_GT(figures->ratio, 100);
    EXPECT_LT(figures->ratio, 1000);
    EXPECT_GT(figures->encode_bytes_per_second, 0);
    EXPECT_GT(figures->decode_bytes_per_second, 0);
  }
}

}  // namespace
}  // namespace quire
