// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/zstd_stream.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Decompress(const std::string& compressed,
                                       size_t in_size = 4096,
                                       size_t out_size = 4096) {
  QUIRE_ASSIGN_OR_RETURN(
      const CompressedText whole,
      CompressedText::Detect(
          [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
            return std::make_unique<MemoryStream>(AsBytes(compressed), in_size);
          },
          "x.zst", uint64_t{1} << 30));
  EXPECT_TRUE(whole.is_compressed());
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream,
                         whole.Open());
  std::string text;
  std::string piece(out_size, '\0');
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got,
                           stream->Read(AsMutableBytes(piece)));
    if (got == 0) {
      return text;
    }
    text.append(piece, 0, got);
  }
}

std::string SkippableFrame(absl::string_view contents) {
  std::string frame = ZstdDictionaryFrame(contents);
  frame[0] = '\x50';
  return frame;
}

TEST(ZstdStreamTest, ReadsManyFramesInPiecesOfAnySize) {
  const std::string dictionary = MakeZstdDictionary(7);
  for (const std::string& start :
       {std::string(), ZstdDictionaryFrame(dictionary),
        ZstdDictionaryFrame(Zstd(dictionary))}) {
    std::string text;
    std::string compressed = start;
    for (const size_t size : std::vector<size_t>{0, 1, 100, 70000, 0, 500000}) {
      const std::string part = MakeTestText(size, size);
      text += part;
      compressed += Zstd(part, start.empty() ? "" : dictionary) +
                    SkippableFrame("skipped");
    }
    for (const size_t in_size : std::vector<size_t>{1, 1000, 1000000}) {
      for (const size_t out_size : std::vector<size_t>{1, 777, 1000000}) {
        QUIRE_ASSERT_OK_AND_ASSIGN(const std::string back,
                                   Decompress(compressed, in_size, out_size));
        EXPECT_EQ(back, text) << in_size << " " << out_size;
      }
    }
  }
}

TEST(ZstdStreamTest, EveryCutIsAnErrorButBetweenFrames) {
  const std::string dictionary = MakeZstdDictionary(7);
  const std::string start = ZstdDictionaryFrame(Zstd(dictionary));
  const std::string first = Zstd(MakeTestText(300, 1), dictionary);
  const std::string compressed = start + first + Zstd("more", dictionary);
  for (size_t size = start.size() + 4; size < compressed.size(); ++size) {
    const absl::StatusOr<std::string> text =
        Decompress(compressed.substr(0, size));
    if (size == start.size() + first.size()) {
      EXPECT_THAT(text, IsOk());
    } else {
      EXPECT_THAT(text, FailsWith(absl::StatusCode::kDataLoss,
                                  HasSubstr("x.zst: the file ends")))
          << size;
    }
  }
}

TEST(ZstdStreamTest, SkippableFramesAloneHaveNoText) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      Decompress(SkippableFrame("one") + SkippableFrame("")));
  EXPECT_EQ(text, "");
}

TEST(ZstdStreamTest, NamesTheDamagedFrame) {
  const std::string first = Zstd("first frame");
  std::string second = Zstd("second frame");
  second.back() = static_cast<char>(second.back() ^ 1);
  EXPECT_THAT(
      Decompress(first + second),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr(absl::StrCat("zstd frame 2 that starts at byte ",
                                       first.size()))));
  EXPECT_THAT(Decompress(first + "garbage"),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Decompress(first + std::string(100, '\0')),
              HasCode(absl::StatusCode::kDataLoss));
}

TEST(ZstdStreamTest, AFrameHasTheTextThatItStates) {
  // A frame of a single segment with an empty last block.
  std::string frame("\x28\xB5\x2F\xFD\x20\x01\x01\0\0", 9);
  for (const size_t in_size : {1u, 2u, 8u, 9u, 10u, 4096u}) {
    for (const size_t out_size : {1u, 2u, 256u, 65536u}) {
      SCOPED_TRACE(absl::StrCat(in_size, " ", out_size));
      frame[5] = 1;
      for (const std::string& file : {frame, Zstd("a") + frame + Zstd("b")}) {
        EXPECT_THAT(Decompress(file, in_size, out_size).status(),
                    FailsWith(absl::StatusCode::kDataLoss,
                              HasSubstr("damaged zstd data")));
      }
      frame[5] = 0;
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const std::string text,
          Decompress(Zstd("a") + frame + Zstd("b"), in_size, out_size));
      EXPECT_EQ(text, "ab");
    }
  }
}

TEST(ZstdStreamTest, NamesTheDictionaryThatIsMissing) {
  const std::string dictionary = MakeZstdDictionary(7);
  const std::string frame = Zstd(MakeTestText(500, 1), dictionary);
  EXPECT_THAT(Decompress(frame),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("dictionary with id 7"),
                              HasSubstr("does not begin with one"))));
  EXPECT_THAT(Decompress(ZstdDictionaryFrame(MakeZstdDictionary(9)) + frame),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("dictionary with id 7"),
                              HasSubstr("begins with the one with id 9"))));
  // A dictionary counts only in the first frame.
  EXPECT_THAT(
      Decompress(SkippableFrame("") + ZstdDictionaryFrame(dictionary) + frame),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr("does not begin with one")));
}

TEST(ZstdStreamTest, RefusesBadDictionaries) {
  const std::string dictionary = MakeZstdDictionary(7);
  const std::string frame = Zstd("text", dictionary);
  const auto refuses = [&](const std::string& contents, const char* message) {
    EXPECT_THAT(Decompress(ZstdDictionaryFrame(contents) + frame),
                FailsWith(absl::StatusCode::kDataLoss,
                          AllOf(HasSubstr("x.zst: "), HasSubstr(message))));
  };
  refuses("", "must hold a zstd dictionary");
  refuses("no dictionary", "found \"no dicti");
  refuses(dictionary.substr(0, 20), "damaged");
  refuses(Zstd("no dictionary"), "must hold a zstd dictionary");
  refuses(Zstd(dictionary) + "x", "got 1 byte after the frame");
  refuses(Zstd(Zstd(dictionary)), "must hold a zstd dictionary");
  const std::string compressed = Zstd(dictionary);
  refuses(compressed.substr(0, compressed.size() - 1), "truncated");
  std::string damaged = compressed;
  damaged[damaged.size() / 2] =
      static_cast<char>(damaged[damaged.size() / 2] ^ 0x10);
  refuses(damaged, "damaged");
  // Bombs: one that says its size, and one that does not have it.
  refuses(Zstd(dictionary + std::string(size_t{64} << 20, '\0')),
          "must be at most 16 MiB");
  std::string huge = ZstdDictionaryFrame(dictionary) + frame;
  StoreLittleEndian(uint32_t{0xF0000000}, AsMutableBytes(huge).data() + 4);
  // Its end is past that of the file, so no frame of zstd follows.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompressedText whole,
      CompressedText::Detect(
          [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
            return std::make_unique<MemoryStream>(AsBytes(huge));
          },
          "x.zst", 1000));
  EXPECT_FALSE(whole.is_compressed());
  MemoryStream stream(AsBytes(huge));
  EXPECT_THAT(ReadZstdDictionary(stream, "x.zst"),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("must be at most 16 MiB")));
}

// A frame of one block "text" that requires a window of 2^`window_log` bytes
// and an eighth of it `eighths` times.
std::string FrameOfWindow(int window_log, int eighths) {
  std::string frame("\x28\xB5\x2F\xFD\0\0\x21\0\0text", 13);
  frame[5] = static_cast<char>((window_log - 10) << 3 | eighths);
  return frame;
}

TEST(ZstdStreamTest, NamesTheLimitOnWindows) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                             Decompress(FrameOfWindow(30, 0)));
  EXPECT_EQ(text, "text");
  EXPECT_THAT(
      Decompress(FrameOfWindow(30, 4)),
      FailsWith(absl::StatusCode::kDataLoss,
                AllOf(HasSubstr("a window of 1.50 GiB is over the limit "
                                "of 1 GiB at byte "),
                      HasSubstr("give --window-max 2GiB"))));
  EXPECT_THAT(Decompress(FrameOfWindow(32, 0)),
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("a window of 4 GiB"),
                              HasSubstr("window of at most 2 GiB"))));
  // A frame of one segment, whose size is its window.
  std::string segment("\x28\xB5\x2F\xFD\xA0\0\0\0\0\x21\0\0text", 16);
  StoreLittleEndian(uint32_t{1610612736}, AsMutableBytes(segment).data() + 5);
  EXPECT_THAT(Decompress(segment),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("a window of 1.50 GiB")));
  // The remedy helps.
  for (const std::string& frame :
       {FrameOfWindow(30, 4), FrameOfWindow(31, 0)}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<ByteStream> stream,
        OpenZstdStream(std::make_unique<MemoryStream>(AsBytes(frame)), "x.zst",
                       nullptr, uint64_t{1} << 31));
    std::string read(10, '\0');
    QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                               stream->Read(AsMutableBytes(read)));
    EXPECT_EQ(read.substr(0, size), "text");
  }
}

TEST(ZstdStreamTest, OutputIsBounded) {
  const std::string bomb = Zstd(std::string(size_t{8} << 20, '\0'));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompressedText whole,
      CompressedText::Detect(
          [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
            return std::make_unique<MemoryStream>(AsBytes(bomb));
          },
          "x.zst", 1 << 20));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ByteStream> stream,
                             whole.Open());
  EXPECT_THAT(stream->Skip(UINT64_MAX),
              HasCode(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace quire
