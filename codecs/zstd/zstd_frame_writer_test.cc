// SPDX-License-Identifier: Apache-2.0
//
// The header of a frame is read by the experimental part of libzstd.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/zstd/zstd_frame_writer.h"

#include <zstd.h>

#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_frames.h"

namespace quire {
namespace {

std::string Write(ZstdFrameWriter& writer, const std::string& text) {
  std::string stored(ZSTD_compressBound(text.size()), '\0');
  const auto size = writer.Write(AsBytes(text), AsMutableBytes(stored));
  EXPECT_THAT(size, IsOk());
  return stored.substr(0, size.value_or(0));
}

bool Decodes(const std::string& stored, const std::string& text) {
  std::string raw(text.size(), '?');
  return LibraryDecodes(AsBytes(stored), {}, AsMutableBytes(raw)) &&
         raw == text;
}

TEST(ZstdFrameWriterTest, LeavesOutWhatTheArchiveKnows) {
  TestRandom random(61);
  for (const int level : {1, 9, 19}) {
    ZstdFrameWriter writer(level);
    for (const size_t size : std::initializer_list<size_t>{1, 1000, 200000}) {
      for (const TestInput& input : TestInputs(random, size, "dictionary")) {
        SCOPED_TRACE(absl::StrCat(input.name, ", level ", level));
        const std::string stored = Write(writer, input.text);
        EXPECT_TRUE(Decodes(stored, input.text));
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
  ZstdFrameWriter used(12);
  Write(used, RandomBytes(random, 70000));
  Write(used, text);
  ZstdFrameWriter fresh(12);
  EXPECT_TRUE(Write(used, text) == Write(fresh, text));
}

}  // namespace
}  // namespace quire
