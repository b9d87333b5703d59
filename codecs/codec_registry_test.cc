// SPDX-License-Identifier: Apache-2.0
//
// The list of codecs: numbers, names, levels, and what is said of wrong ones.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/block_codec.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(CodecRegistryTest, KeepsNumbersAndNames) {
  // Archives hold these numbers: an entry here is never changed.
  const std::vector<std::pair<uint32_t, std::string>> known = {
      {1, "copy"},    {2, "lz4"},      {4, "zlib"},     {5, "zstd"},
      {10, "xz"},     {11, "numeric"}, {12, "auto"},    {16, "rlz-uv"},
      {17, "rlz-pv"}, {18, "rlz-zz"},  {19, "rlz-zzz"}, {21, "zlib-primed"},
      {22, "rlz"},    {32, "fsst"},
  };
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const CodecInfo& info : AllCodecs()) {
    found.emplace_back(static_cast<uint32_t>(info.id), info.name);
    EXPECT_EQ(FindCodec(info.id), &info);
    EXPECT_EQ(FindCodec(info.name), &info);
    EXPECT_LE(info.level_min, info.level_default);
    EXPECT_LE(info.level_default, info.level_max);
    EXPECT_FALSE(info.summary.empty());
  }
  EXPECT_EQ(found, known);
  EXPECT_EQ(FindCodec("no such"), nullptr);
  EXPECT_EQ(FindCodec(CodecId::kUnspecified), nullptr);
}

TEST(CodecSpecTest, ReadsAndPrints) {
  for (const CodecInfo& info : AllCodecs()) {
    for (int level = info.level_min; level <= info.level_max; ++level) {
      const CodecSpec spec{.id = info.id, .level = level};
      QUIRE_ASSERT_OK_AND_ASSIGN(const CodecSpec back,
                                 ParseCodecSpec(FormatCodecSpec(spec)));
      EXPECT_EQ(back.id, spec.id);
      EXPECT_EQ(back.level, spec.level);
    }
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodecSpec zlib, ParseCodecSpec("zlib"));
  EXPECT_EQ(zlib.level, FindCodec("zlib")->level_default);
}

TEST(CodecSpecTest, KnowsLevelsByName) {
  for (const CodecInfo& info : AllCodecs()) {
    if (info.level_max == 0) {
      continue;
    }
    const auto level_of = [&](const char* name) {
      const auto spec = ParseCodecSpec(absl::StrCat(info.name, ":", name));
      EXPECT_THAT(spec, IsOk());
      return spec.value_or(CodecSpec{}).level;
    };
    EXPECT_EQ(level_of("fast"), info.level_min);
    EXPECT_EQ(level_of("default"), info.level_default);
    EXPECT_EQ(level_of("max"), info.level_max);
  }
}

TEST(CodecSpecTest, SaysWhatIsWrong) {
  const auto expect = [](const char* text, const char* message) {
    EXPECT_THAT(
        ParseCodecSpec(text),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  };
  expect("", "copy, lz4, zlib, zstd");
  expect("gzip", "no codec is called \"gzip\"");
  expect("copy:1", "no levels");
  expect("copy:max", "no levels");
  expect("zlib:best", "fast, default, max");
  expect("zlib:", "1 to 9");
  expect("zlib:0", "1 to 9");
  expect("zlib:10", "1 to 9");
  expect("zlib:6x", "1 to 9");
  expect("zstd:-1", "1 to 22");
  expect("ZSTD", "no codec is called");
}

TEST(CodecSpecTest, PartitionsThatHoldTheBlockAreNone) {
  CodecSpec spec = *ParseCodecSpec("zstd");
  EXPECT_EQ(spec.partition_size_bytes, 0u);
  spec.partition_size_bytes = 65536;
  FitPartitions(131072, spec);
  EXPECT_EQ(spec.partition_size_bytes, 65536u);
  FitPartitions(65536, spec);
  EXPECT_EQ(spec.partition_size_bytes, 0u);
}

TEST(CodecSpecTest, PartitionSizesArePowersOfTwoFrom4KiBTo1MiB) {
  for (const uint32_t good : {4096u, 8192u, 65536u, 1048576u}) {
    EXPECT_TRUE(IsPartitionSize(good)) << good;
  }
  for (const uint32_t bad : {0u, 1u, 2048u, 4095u, 5000u, 2097152u, ~0u}) {
    EXPECT_FALSE(IsPartitionSize(bad)) << bad;
  }
}

TEST(MakeBlockCodecTest, RefusesWhatItCannotMake) {
  const auto context = MakeTestContext(1000);
  for (const CodecSpec& spec :
       {CodecSpec{}, CodecSpec{.id = static_cast<CodecId>(999)},
        CodecSpec{.id = CodecId::kZlib, .level = 0},
        CodecSpec{.id = CodecId::kZlib, .level = 10}}) {
    EXPECT_THAT(MakeBlockCodec(spec, context, CodecUse::kDecode),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  for (const CodecInfo& info : AllCodecs()) {
    const auto made =
        MakeBlockCodec(DefaultCodecSpec(info), nullptr, CodecUse::kDecode);
    EXPECT_EQ(made.ok(), !info.needs_dictionary && !info.needs_symbol_table)
        << info.name;
  }
}

}  // namespace
}  // namespace quire
