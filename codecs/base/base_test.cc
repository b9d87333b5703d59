// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/memory/free_memory.h"
#include "codecs/base/varint.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

TEST(HeaderFieldsTest, FindsTheEmptyLine) {
  EXPECT_EQ(FindHeaderEnd(AsBytes("")), std::nullopt);
  EXPECT_EQ(FindHeaderEnd(AsBytes("a\r\nb\r\n")), std::nullopt);
  EXPECT_EQ(FindHeaderEnd(AsBytes("a\r\nb\r\n\r")), std::nullopt);
  EXPECT_EQ(FindHeaderEnd(AsBytes("a\r\nb\r\n\r\nc")), 8);
  EXPECT_EQ(FindHeaderEnd(AsBytes("a\nb\n\nc")), 5);
}

TEST(HeaderFieldsTest, TakesFieldsUpToTheEmptyLine) {
  absl::string_view rest =
      "first line\r\nA : 1 \nB:\r\n\tfolded\r\n  twice\r\nno colon\r\n"
      "\r\nC: behind";
  EXPECT_EQ(TakeHeaderLine(rest), "first line");
  std::optional<HeaderField> field = TakeHeaderField(rest);
  EXPECT_EQ(field->name, "A");
  EXPECT_EQ(field->value, "1");
  field = TakeHeaderField(rest);
  EXPECT_EQ(field->name, "B");
  EXPECT_EQ(field->value, "folded twice");
  field = TakeHeaderField(rest);
  EXPECT_EQ(field->name, "");
  EXPECT_EQ(field->value, "no colon");
  EXPECT_FALSE(TakeHeaderField(rest).has_value());
  EXPECT_EQ(rest, "C: behind");
}

TEST(FreeMemoryTest, EmptiesAndFrees) {
  std::string text(1000, 'x');
  FreeMemory(text);
  EXPECT_EQ(text, "");
  EXPECT_LT(text.capacity(), 1000);
  std::vector<int> numbers(1000);
  FreeMemory(numbers);
  EXPECT_EQ(numbers.capacity(), 0);
}

TEST(DurationTextTest, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<std::string, absl::Duration>> cases = {
      {"10s", absl::Seconds(10)},        {"2m", absl::Minutes(2)},
      {"14d", absl::Hours(336)},         {"1d12h", absl::Hours(36)},
      {"0.5d", absl::Hours(12)},         {"1h30m", absl::Minutes(90)},
      {"1.5m", absl::Seconds(90)},       {"500ms", absl::Milliseconds(500)},
      {"30", absl::Seconds(30)},         {"0.25", absl::Milliseconds(250)},
      {" 5s ", absl::Seconds(5)},        {"0", absl::ZeroDuration()},
      {"inf", absl::InfiniteDuration()},
  };
  for (const auto& [text, duration] : cases) {
    const absl::StatusOr<absl::Duration> got = ParseDurationText(text);
    ASSERT_THAT(got, IsOk()) << text;
    EXPECT_EQ(*got, duration) << text;
  }
  for (const char* bad : {"", "-1", "-2s", "soon", "nan", "5 apples", "5x", "s",
                          "1h 30m", "10S", "-inf"}) {
    EXPECT_THAT(ParseDurationText(bad),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          ::testing::StartsWith("must be a time, in seconds")))
        << bad;
  }
}

TEST(DurationTextTest, KeepsToARange) {
  const DurationRange range = {.min = absl::Milliseconds(100),
                               .max = absl::Hours(24)};
  EXPECT_EQ(*ParseDurationText("100ms", range), absl::Milliseconds(100));
  EXPECT_EQ(*ParseDurationText("24h", range), absl::Hours(24));
  for (const char* bad : {"99ms", "86401", "inf", "0", "nan"}) {
    EXPECT_THAT(ParseDurationText(bad, range),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          ::testing::HasSubstr("from 100ms to 24h")))
        << bad;
  }
  EXPECT_THAT(ParseDurationText("0", {.min = absl::Milliseconds(1)}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("of at least 1ms")));
}

TEST(ByteSizeTest, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<std::string, uint64_t>> cases = {
      {"0", 0},
      {"17", 17},
      {"64KiB", 65536},
      {"64kib", 65536},
      {"64K", 65536},
      {" 16 MiB ", 16 * kMiB},
      {"1.5GiB", 3 * kGiB / 2},
      {"1MB", 1000000},
      {"3 B", 3},
      {"2TiB", 2048 * kGiB}};
  for (const auto& [text, size_bytes] : cases) {
    EXPECT_THAT(ParseByteSize(text), IsOk()) << text;
    EXPECT_EQ(ParseByteSize(text).value_or(1), size_bytes) << text;
  }
}

TEST(ByteSizeTest, RefusesTheRest) {
  for (const char* text : {"", "KiB", "-1", "1.0001KiB", "64 Kib s", "1e3",
                           "9223372036854775808", "99999999999TiB", "1..5M"}) {
    EXPECT_THAT(ParseByteSize(text),
                HasCode(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST(ByteSizeTest, SaysWhatIsTooLarge) {
  for (const char* text : {"9223372036854775808", "99999999999TiB",
                           "100000000000000000000", "8388608.5TiB"}) {
    EXPECT_THAT(
        ParseByteSize(text),
        FailsWith(absl::StatusCode::kInvalidArgument,
                  testing::HasSubstr("must be at most 2^63 - 1 bytes, got \"")))
        << text;
  }
  EXPECT_EQ(ParseByteSize("9223372036854775807").value_or(0), INT64_MAX);
  EXPECT_EQ(ParseByteSize("8388607.5TiB").value_or(0),
            (uint64_t{1} << 63) - (uint64_t{1} << 39));
}

TEST(ByteSizeTest, Prints) {
  EXPECT_EQ(FormatByteSize(0), "0 B");
  EXPECT_EQ(FormatByteSize(1023), "1023 B");
  EXPECT_EQ(FormatByteSize(65536), "64 KiB");
  EXPECT_EQ(FormatByteSize(1536), "1.50 KiB");
  EXPECT_EQ(FormatByteSize(1555555555), "1.45 GiB");
  EXPECT_EQ(FormatByteSize(1022 * kKiB + 100), "1022 KiB");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCounted(0, "block", "blocks"), "0 blocks");
  EXPECT_EQ(FormatCounted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(FormatCounted(1001, "entry", "entries"), "1,001 entries");
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1500}, 64 * kKiB, 3 * kGiB}) {
    EXPECT_EQ(ParseByteSize(FormatByteSizeExact(size)).value_or(1), size);
  }
}

TEST(VarintTest, RoundTripsAtEveryLength) {
  for (int shift = 0; shift < 64; ++shift) {
    for (const uint64_t value :
         {uint64_t{1} << shift, (uint64_t{1} << shift) - 1,
          std::numeric_limits<uint64_t>::max() >> shift}) {
      std::string out;
      AppendVarint(value, out);
      ByteView in = AsBytes(out);
      QUIRE_ASSERT_OK_AND_ASSIGN(const uint64_t back, TakeVarint(in));
      EXPECT_EQ(back, value);
      EXPECT_TRUE(in.empty());
      ByteView cut = AsBytes(out).first(out.size() - 1);
      EXPECT_FALSE(TakeVarint(cut).ok());
      const auto negative = -static_cast<int64_t>(value >> 1);
      EXPECT_EQ(UnZigZag(ZigZag(negative)), negative);
    }
  }
}

TEST(VarintTest, RefusesLongAndOverflowingForms) {
  for (const std::vector<uint8_t>& bytes :
       {std::vector<uint8_t>{0x80, 0x00},
        std::vector<uint8_t>{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                             0xFF, 0x02},
        std::vector<uint8_t>(11, 0x80)}) {
    ByteView in = bytes;
    EXPECT_THAT(TakeVarint(in), HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST(ChecksumTest, IsXxh3) {
  // Values of XXH3_64bits from the algorithm's own test vectors.
  EXPECT_EQ(Checksum64({}), 0x2D06800538D394C2u);
  EXPECT_NE(Checksum64(AsBytes("quire"), 1), Checksum64(AsBytes("quire"), 2));
}

TEST(ChecksumTest, OfPiecesIsThatOfTheWhole) {
  std::string text;
  Checksummer64 checksummer;
  for (size_t size = 0; size < 700; size += 13) {
    const std::string piece(size, static_cast<char>(size));
    text += piece;
    checksummer.Add(AsBytes(piece));
    EXPECT_EQ(checksummer.Get(), Checksum64(AsBytes(text))) << text.size();
  }
}

}  // namespace
}  // namespace quire
