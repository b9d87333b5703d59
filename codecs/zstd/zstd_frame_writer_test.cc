// SPDX-License-Identifier: Apache-2.0
//
// What a frame's header has is told by the experimental part of libzstd.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/zstd/zstd_frame_writer.h"

#include <zstd.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/zstd/decoder/zstd_test_frames.h"

namespace quire {
namespace {

std::string Write(ZstdFrameWriter& writer, const std::string& text) {
  std::string stored(ZSTD_compressBound(text.size()), '\0');
  const auto size = writer.Write(AsBytes(text), AsMutableBytes(stored));
  EXPECT_THAT(size, IsOk());
  return stored.substr(0, size.value_or(0));
}

bool Decodes(const std::string& stored, const std::string& dictionary,
             const std::string& text) {
  std::string raw(text.size(), '?');
  return LibraryDecodes(AsBytes(stored), AsBytes(dictionary),
                        AsMutableBytes(raw)) &&
         raw == text;
}

TEST(ZstdFrameWriterTest, LeavesOutWhatTheArchiveKnows) {
  TestRandom random(61);
  for (const int level : {1, 9, 19}) {
    ZstdFrameWriter writer(level, /*dictionary=*/nullptr);
    for (const size_t size : std::initializer_list<size_t>{1, 1000, 200000}) {
      for (const TestInput& input : TestInputs(random, size, "dictionary")) {
        SCOPED_TRACE(absl::StrCat(input.name, ", level ", level));
        const std::string stored = Write(writer, input.text);
        EXPECT_TRUE(Decodes(stored, "", input.text));
        ZSTD_frameHeader header = {};
        ASSERT_EQ(ZSTD_getFrameHeader(&header, stored.data(), stored.size()),
                  0u);
        EXPECT_EQ(header.frameContentSize, ZSTD_CONTENTSIZE_UNKNOWN);
        EXPECT_EQ(header.checksumFlag, 0u);
        EXPECT_EQ(header.dictID, 0u);
      }
    }
  }
}

TEST(ZstdFrameWriterTest, DoesNotDependOnTheFramesBefore) {
  TestRandom random(62);
  const std::string text = RandomText(random, 50000, 300);
  ZstdFrameWriter used(12, /*dictionary=*/nullptr);
  Write(used, RandomBytes(random, 70000));
  Write(used, text);
  ZstdFrameWriter fresh(12, /*dictionary=*/nullptr);
  EXPECT_TRUE(Write(used, text) == Write(fresh, text));
}

// With a dictionary its level counts, not the writer's.
TEST(ZstdFrameWriterTest, UsesADictionaryAsItWasMade) {
  TestRandom random(63);
  const std::string dictionary = RandomText(random, 100000);
  const std::string text = EditedPieces(random, dictionary, 50000);
  const std::unique_ptr<ZSTD_CDict, size_t (*)(ZSTD_CDict*)> tables(
      ZSTD_createCDict_advanced(
          dictionary.data(), dictionary.size(), ZSTD_dlm_byRef,
          ZSTD_dct_rawContent,
          ZSTD_getCParams(5, ZSTD_CONTENTSIZE_UNKNOWN, dictionary.size()),
          ZSTD_customMem{}),
      &ZSTD_freeCDict);
  ASSERT_NE(tables, nullptr);
  ZstdFrameWriter writer(1, tables.get());
  ZstdFrameWriter other(19, tables.get());
  const std::string stored = Write(writer, text);
  EXPECT_LT(stored.size(), text.size() / 10);
  EXPECT_TRUE(Decodes(stored, dictionary, text));
  EXPECT_FALSE(Decodes(stored, "", text));
  EXPECT_TRUE(Write(other, text) == stored);
}

}  // namespace
}  // namespace quire
