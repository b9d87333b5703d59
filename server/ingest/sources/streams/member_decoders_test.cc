// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/member_decoders.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/streams/gzip_member_reader.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Decoded {
  // Up to the first error.
  std::string text;
  absl::Status status;
  // No check of the text is awaited at the end.
  bool is_checked = false;
};

Decoded DecodeAll(const std::string& compressed, size_t in_size = 4096,
                  size_t out_size = 4096,
                  uint64_t window_size_bytes_max = kWindowSizeBytesDefault) {
  Decoded decoded;
  const absl::StatusOr<CompressedText> whole = CompressedText::Detect(
      [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
        return std::make_unique<MemoryStream>(AsBytes(compressed), in_size);
      },
      "x", uint64_t{1} << 40, window_size_bytes_max);
  if (!whole.ok() || !whole->is_compressed()) {
    decoded.status = absl::InternalError("not detected");
    return decoded;
  }
  const absl::StatusOr<std::unique_ptr<ByteStream>> stream = whole->Open();
  std::string piece(out_size, '\0');
  while (true) {
    const absl::StatusOr<size_t> got = (*stream)->Read(AsMutableBytes(piece));
    decoded.status = got.status();
    if (!got.ok() || *got == 0) {
      decoded.is_checked =
          (*stream)->AwaitedCheck(decoded.text.size()) == nullptr;
      return decoded;
    }
    decoded.text.append(piece, 0, *got);
  }
}

std::string Compressed(const char* filter, const std::string& text) {
  return MakeTestArchive("raw", filter, {{"data", text}});
}

// Text that compress clears its table for.
std::string ChangingText(size_t size) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < size) {
    const auto first = static_cast<unsigned>(random() % 200);
    for (int i = 0; i < 60'000; ++i) {
      text.push_back(static_cast<char>(first + random() % 40));
    }
  }
  text.resize(size);
  return text;
}

constexpr const char* kFilters[] = {"bzip2", "xz",  "lzip",
                                    "lzma",  "lz4", "compress"};

TEST(MemberDecodersTest, ReadTextInPiecesOfAnySize) {
  for (const char* filter : kFilters) {
    for (const size_t size : {size_t{1}, size_t{5000}, size_t{600'000}}) {
      const std::string text =
          size > 10'000 ? ChangingText(size) : MakeTestText(size, size);
      const std::string compressed = Compressed(filter, text);
      for (const auto& [in_size, out_size] :
           {std::pair<size_t, size_t>(1'000'000, 1'000'000), {777, 10'000}}) {
        const Decoded decoded = DecodeAll(compressed, in_size, out_size);
        EXPECT_THAT(decoded.status, IsOk()) << filter;
        EXPECT_TRUE(decoded.text == text) << filter << " " << size;
      }
      if (size == 5000) {
        EXPECT_EQ(DecodeAll(compressed, 1, 1).text, text) << filter;
      }
    }
  }
}

TEST(MemberDecodersTest, ReadSeveralMembers) {
  for (const char* filter : {"bzip2", "xz", "lzip", "lz4"}) {
    const std::string one = Compressed(filter, "first\n");
    const std::string two = Compressed(filter, "second\n");
    const Decoded decoded = DecodeAll(one + two + one, 7);
    EXPECT_THAT(decoded.status, IsOk()) << filter;
    EXPECT_EQ(decoded.text, "first\nsecond\nfirst\n") << filter;
    EXPECT_TRUE(decoded.is_checked);
  }
}

TEST(MemberDecodersTest, BytesAfterTheEndAreAnError) {
  for (const char* filter : {"bzip2", "xz", "lzip", "lz4", "lzma"}) {
    const std::string one = Compressed(filter, "text\n");
    for (const std::string& rest :
         {std::string("x"), std::string("junk"), std::string("more words")}) {
      const Decoded decoded = DecodeAll(one + rest, 5);
      EXPECT_EQ(decoded.text, "text\n") << filter;
      EXPECT_TRUE(decoded.is_checked) << filter;
      if (std::string(filter) == "lz4" && rest.size() < 4) {
        EXPECT_THAT(decoded.status, HasCode(absl::StatusCode::kDataLoss));
        continue;
      }
      EXPECT_THAT(
          decoded.status,
          FailsWith(absl::StatusCode::kDataLoss,
                    AllOf(HasSubstr(absl::StrCat(
                              "its last ", rest.size(),
                              rest.size() == 1 ? " byte" : " bytes",
                              ", from byte ", one.size())),
                          HasSubstr(absl::StrCat("truncate -s ", one.size())))))
          << filter;
      // The advice helps.
      EXPECT_THAT(DecodeAll((one + rest).substr(0, one.size())).status, IsOk());
    }
    // Padding to the size of a medium's block.
    EXPECT_THAT(DecodeAll(one + std::string(100, '\0')).status, IsOk())
        << filter;
    EXPECT_THAT(DecodeAll(one + std::string(100, '\0') + "x").status,
                HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST(MemberDecodersTest, ZerosBetweenStreamsOfXzComeInFours) {
  const std::string one = Compressed("xz", "text\n");
  const std::string zeros(8, '\0');
  EXPECT_EQ(DecodeAll(one + zeros + one + zeros).text, "text\ntext\n");
  EXPECT_THAT(DecodeAll(one + zeros + one + zeros).status, IsOk());
  EXPECT_THAT(DecodeAll(one + std::string(3, '\0')).status,
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("multiple of 4, and is 3")));
  EXPECT_THAT(DecodeAll(one + std::string(3, '\0') + one).status,
              HasCode(absl::StatusCode::kDataLoss));
}

TEST(MemberDecodersTest, EveryCutIsAnErrorAndKeepsTheTextBefore) {
  const std::string text = MakeTestText(3000, 1);
  for (const char* filter : {"bzip2", "xz", "lzip", "lz4", "lzma"}) {
    const std::string one = Compressed(filter, text);
    const std::string whole = one + Compressed(filter, "more");
    const size_t step = 7;
    for (size_t size = 14; size < one.size() * 2 && size < whole.size();
         size += step) {
      if (size >= one.size() && std::string(filter) == "lzma") {
        break;
      }
      const Decoded decoded = DecodeAll(whole.substr(0, size));
      EXPECT_TRUE(absl::StartsWith(text + "more", decoded.text)) << filter;
      EXPECT_TRUE(size < one.size() || decoded.text.size() >= text.size());
      if (size != one.size()) {
        EXPECT_THAT(decoded.status,
                    FailsWith(absl::StatusCode::kDataLoss,
                              HasSubstr("the file ends (is it truncated?)")))
            << filter << " " << size;
        EXPECT_EQ(
            decoded.is_checked,
            decoded.text.empty() || (size > one.size() && decoded.text == text))
            << filter << " " << size;
      }
    }
  }
}

TEST(MemberDecodersTest, DamageIsAnErrorThatNamesTheMember) {
  for (const char* filter : {"bzip2", "xz", "lzip"}) {
    const std::string one = Compressed(filter, MakeTestText(3000, 1));
    std::string damaged = one;
    damaged[one.size() / 2] = static_cast<char>(damaged[one.size() / 2] ^ 0x55);
    const Decoded decoded = DecodeAll(one + damaged + one);
    EXPECT_THAT(decoded.status,
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr(absl::StrCat(" 2 that starts at byte ",
                                                 one.size()))))
        << filter;
    EXPECT_TRUE(absl::StartsWith(decoded.text, MakeTestText(3000, 1)));
  }
}

TEST(MemberDecodersTest, ReadTheLegacyFormatOfLz4) {
  const auto block = [](const std::string& literals) {
    std::string bytes(4, '\0');
    StoreLittleEndian(static_cast<uint32_t>(literals.size() + 1),
                      AsMutableBytes(bytes).data());
    bytes.push_back(static_cast<char>(literals.size() << 4));
    return bytes + literals;
  };
  const std::string magic = "\x02\x21\x4C\x18";
  const std::string one = magic + block("ab\n") + block("cd\n");
  for (const size_t in_size : {size_t{1}, size_t{100}}) {
    EXPECT_EQ(DecodeAll(one, in_size, 2).text, "ab\ncd\n");
    const Decoded both =
        DecodeAll(one + one + Compressed("lz4", "ef\n") + one, in_size);
    EXPECT_THAT(both.status, IsOk());
    EXPECT_EQ(both.text, "ab\ncd\nab\ncd\nef\nab\ncd\n");
  }
  EXPECT_THAT(DecodeAll(one.substr(0, one.size() - 1)).status,
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeAll(one + "junk").status,
              HasCode(absl::StatusCode::kDataLoss));
}

TEST(MemberDecodersTest, ReadCompressWithoutClearing) {
  // By compress -C: "aaaaaaaaaa" is 97, 256, 257, 258 in 9 bits each.
  std::string bits;
  for (const int code : {97, 256, 257, 258}) {
    for (int i = 0; i < 9; ++i) {
      bits.push_back((code >> i & 1) != 0 ? '1' : '0');
    }
  }
  std::string compressed = "\x1F\x9D\x10";
  for (size_t i = 0; i < bits.size(); i += 8) {
    int byte = 0;
    for (size_t j = i; j < std::min(bits.size(), i + 8); ++j) {
      byte |= (bits[j] - '0') << (j - i);
    }
    compressed.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(DecodeAll(compressed, 1).text, "aaaaaaaaaa");
  // A code that stands for no text yet.
  EXPECT_THAT(DecodeAll("\x1F\x9D\x90"
                        "abc")
                  .status,
              HasCode(absl::StatusCode::kDataLoss));
}

TEST(MemberDecodersTest, NameTheLimitOnDictionaries) {
  std::string lzma = Compressed("lzma", "text\n");
  StoreLittleEndian(uint32_t{1} << 30, AsMutableBytes(lzma).data() + 1);
  EXPECT_EQ(DecodeAll(lzma).text, "text\n");
  EXPECT_THAT(DecodeAll(lzma, 4096, 4096, uint64_t{64} << 20).status,
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("is over the limit of 64 MiB"),
                              HasSubstr("give --window-max 1025MiB"))));
  StoreLittleEndian(UINT32_MAX, AsMutableBytes(lzma).data() + 1);
  EXPECT_THAT(DecodeAll(lzma, 4096, 4096, kWindowSizeBytesMax).status,
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("with a dictionary of less than 2 GiB")));
}

// A stream of empty blocks has no text, and any size.
TEST(GzipMemberReaderTest, DropsTheBytesOfALargeMember) {
  constexpr size_t kKeptSizeMax = 100'000;
  std::string bytes("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
  while (bytes.size() < 10 * kKeptSizeMax) {
    bytes.append("\0\0\0\xFF\xFF", 5);
  }
  bytes.append("\1\0\0\xFF\xFF\0\0\0\0\0\0\0\0", 13);
  const std::string small = Gzip("text");
  bytes += small;
  const auto ignore = [](ByteView) {};
  GzipMemberReader reader(std::make_unique<MemoryStream>(AsBytes(bytes)),
                          kKeptSizeMax, ignore, ignore);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::optional<GzipMember> large,
                             reader.Next());
  ASSERT_TRUE(large.has_value());
  EXPECT_TRUE(large->is_member);
  EXPECT_EQ(large->size_bytes, bytes.size() - small.size());
  EXPECT_EQ(large->bytes.capacity(), 0U);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::optional<GzipMember> last,
                             reader.Next());
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(AsText(last->bytes), small);
}

}  // namespace
}  // namespace quire
