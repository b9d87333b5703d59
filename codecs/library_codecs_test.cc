// SPDX-License-Identifier: Apache-2.0
//
// That stored blocks are what the libraries' plain calls write and read;
// block_codec_test.cc has what all codecs do.

#include <lz4.h>
#include <lz4hc.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class LibraryCodecsTest : public ::testing::Test {
 protected:
  void Use(const std::string& spec_text) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const CodecSpec spec, ParseCodecSpec(spec_text));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        codec_, MakeBlockCodec(spec, nullptr, CodecUse::kEncodeAndDecode));
    scratch_ = codec_->NewScratch();
  }

  std::string Encode(const std::string& text) {
    return EncodeText(*codec_, text);
  }

  absl::Status Decode(const std::string& stored, std::string& raw) {
    return codec_->Decode(AsBytes(stored), AsMutableBytes(raw), *scratch_);
  }

  void ExpectDecodes(const std::string& stored, const std::string& text) {
    std::string raw(text.size(), '?');
    QUIRE_EXPECT_OK(Decode(stored, raw));
    EXPECT_TRUE(raw == text);
  }

  std::vector<std::string> Texts() {
    TestRandom random(5);
    std::vector<std::string> texts = {"x"};
    for (const size_t size : {size_t{1000}, size_t{65536}, size_t{400000}}) {
      for (TestInput& input :
           TestInputs(random, size, RandomText(random, 10000))) {
        texts.push_back(std::move(input.text));
      }
    }
    return texts;
  }

  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
};

TEST_F(LibraryCodecsTest, Lz4BlocksAreThoseOfTheLibrary) {
  for (const int level : {-64, -8, 1, 2, 3, 9, 12}) {
    Use(absl::StrCat("lz4:", level));
    for (const std::string& text : Texts()) {
      const int size = static_cast<int>(text.size());
      const std::string stored = Encode(text);
      std::string raw(text.size(), '?');
      EXPECT_EQ(LZ4_decompress_safe(stored.data(), raw.data(),
                                    static_cast<int>(stored.size()), size),
                size);
      EXPECT_TRUE(raw == text);
      std::string theirs(static_cast<size_t>(LZ4_compressBound(size)), '\0');
      theirs.resize(static_cast<size_t>(
          level < 3 ? LZ4_compress_fast(text.data(), theirs.data(), size,
                                        LZ4_compressBound(size), -level)
                    : LZ4_compress_HC(text.data(), theirs.data(), size,
                                      LZ4_compressBound(size), level)));
      EXPECT_TRUE(stored == theirs);
    }
  }
}

// A crafted block could otherwise read what the memory held before.
TEST_F(LibraryCodecsTest, Lz4MatchesAtDistanceZeroShowNoOtherText) {
  Use("lz4");
  // Four literals, a match of 274 bytes at distance 0, five literals.
  const std::string stored(
      "\x4f"
      "abcd"
      "\0\0"
      "\xff\0"
      "\x50"
      "vwxyz",
      15);
  constexpr size_t kSize = 4 + 274 + 5;
  for (const size_t offset : {size_t{0}, size_t{100}}) {
    for (const size_t end : {size_t{150}, kSize - 1, kSize}) {
      SCOPED_TRACE(absl::StrCat(offset, " to ", end));
      std::vector<std::string> texts;
      for (const char before : {'p', 'q'}) {
        // Fills the buffer of the scratch.
        const std::string other(2 * kSize, before);
        std::string last(1, '?');
        QUIRE_EXPECT_OK(codec_->DecodeRange(AsBytes(Encode(other)),
                                            other.size(), other.size() - 1,
                                            AsMutableBytes(last), *scratch_));
        std::string text(end - offset, before);
        QUIRE_EXPECT_OK(codec_->DecodeRange(AsBytes(stored), kSize, offset,
                                            AsMutableBytes(text), *scratch_));
        texts.push_back(std::move(text));
      }
      EXPECT_EQ(texts[0], texts[1]);
    }
  }
}

TEST_F(LibraryCodecsTest, ZlibBlocksAreRawDeflate) {
  for (const int level : {1, 6, 9}) {
    Use(absl::StrCat("zlib:", level));
    for (const std::string& text : Texts()) {
      std::string stored = Encode(text);
      std::string raw(text.size(), '?');
      z_stream inflater = {};
      ASSERT_EQ(inflateInit2(&inflater, -15), Z_OK);
      inflater.next_in = reinterpret_cast<Bytef*>(stored.data());
      inflater.avail_in = static_cast<uInt>(stored.size());
      inflater.next_out = reinterpret_cast<Bytef*>(raw.data());
      inflater.avail_out = static_cast<uInt>(raw.size());
      EXPECT_EQ(inflate(&inflater, Z_FINISH), Z_STREAM_END);
      EXPECT_EQ(inflater.avail_in, 0u);
      EXPECT_EQ(inflater.avail_out, 0u);
      inflateEnd(&inflater);
      EXPECT_TRUE(raw == text);
      // The library's form has a header of two bytes and a checksum of four.
      uLongf size = compressBound(text.size());
      std::string theirs(size, '\0');
      ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(theirs.data()), &size,
                          reinterpret_cast<const Bytef*>(text.data()),
                          text.size(), level),
                Z_OK);
      ExpectDecodes(theirs.substr(2, size - 6), text);
    }
  }
}

TEST_F(LibraryCodecsTest, ZstdBlocksAreOrdinaryFrames) {
  for (const int level : {1, 9, 19}) {
    Use(absl::StrCat("zstd:", level));
    for (const std::string& text : Texts()) {
      const std::string stored = Encode(text);
      std::string raw(text.size(), '?');
      EXPECT_EQ(
          ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()),
          text.size());
      EXPECT_TRUE(raw == text);
      EXPECT_EQ(ZSTD_getFrameContentSize(stored.data(), stored.size()),
                ZSTD_CONTENTSIZE_UNKNOWN);
      // Frames with content size, as the library writes them, are as good.
      std::string theirs(ZSTD_compressBound(text.size()), '\0');
      theirs.resize(ZSTD_compress(theirs.data(), theirs.size(), text.data(),
                                  text.size(), level));
      ExpectDecodes(theirs, text);
    }
  }
}

TEST_F(LibraryCodecsTest, ZstdTakesOneStandardFrameOnly) {
  Use("zstd");
  const std::string text(500, 'x');
  const std::string stored = Encode(text);
  std::string raw(1000, '?');
  EXPECT_THAT(Decode(stored + stored, raw),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("its zstd frame ends after")));
  raw.resize(500);
  const std::string skippable("\x50\x2A\x4D\x18\x01\x00\x00\x00x", 9);
  EXPECT_THAT(
      Decode(skippable + stored, raw),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("not a zstd frame")));
}

// Early stopping is observable: the stored block's end is not needed.
TEST_F(LibraryCodecsTest, RangesStopAtTheirEnd) {
  TestRandom random(9);
  const std::string text = RandomText(random, 600000);
  for (const char* const spec : {"lz4", "zlib", "zstd"}) {
    SCOPED_TRACE(spec);
    Use(spec);
    std::string stored = Encode(text);
    stored.back() = static_cast<char>(~stored.back());
    std::string whole(text.size(), '?');
    const absl::Status damaged = Decode(stored, whole);
    EXPECT_TRUE(!damaged.ok() || whole != text);
    std::string out(5000, '?');
    QUIRE_EXPECT_OK(codec_->DecodeRange(AsBytes(stored), text.size(), 100000,
                                        AsMutableBytes(out), *scratch_));
    EXPECT_TRUE(out == text.substr(100000, 5000));
  }
}

}  // namespace
}  // namespace quire
