// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/guarded_bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"
#include "testing/codecs/zstd_test_bits.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;

void ExpectLikeZlib(const std::string& stored, size_t size,
                    const std::string& dictionary = "") {
  for (const size_t output : {size, size + 1, size - std::min<size_t>(size, 1),
                              size / 2, size + 400}) {
    ASSERT_EQ(
        DifferenceToZlib(AsBytes(stored), AsBytes(dictionary), output, 77), "")
        << output;
  }
}

TEST(DeflateDecoderTest, DecodesWhatZlibWrites) {
  TestRandom random(kSeed);
  const std::string dictionary = RandomText(random, 40000);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{10}, size_t{300},
                            size_t{5000}, size_t{70000}, size_t{300000}}) {
    for (const TestInput& input : TestInputs(random, size, dictionary)) {
      for (const int level : {0, 1, 6, 9}) {
        for (const int strategy :
             {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
          SCOPED_TRACE(absl::StrCat(input.name, ", ", size, " bytes, level ",
                                    level, ", strategy ", strategy));
          const std::string stored =
              RawDeflate(input.text, "", level, strategy);
          std::string text(size, '?');
          DeflateDecoder decoder;
          decoder.Start(AsBytes(stored), AsMutableBytes(text));
          EXPECT_EQ(decoder.DecodeTo(size).value_or(size + 1), size);
          QUIRE_EXPECT_OK(decoder.Finish(size));
          EXPECT_TRUE(text == input.text);
          ExpectLikeZlib(stored, size);
        }
      }
    }
  }
}

TEST(DeflateDecoderTest, ReachesBackIntoTheDictionary) {
  TestRandom random(kSeed);
  const std::string all = RandomText(random, 50000);
  for (const size_t dictionary_size :
       {size_t{1}, size_t{100}, size_t{32767}, size_t{32768}, size_t{40000}}) {
    const std::string dictionary = all.substr(0, dictionary_size);
    for (const size_t size : {size_t{5}, size_t{400}, size_t{60000}}) {
      SCOPED_TRACE(absl::StrCat(dictionary_size, " ", size));
      const std::string text = EditedPieces(random, dictionary, size);
      const std::string stored = RawDeflate(text, dictionary);
      ExpectLikeZlib(stored, size, dictionary);
      // With a shorter dictionary, some match may reach too far.
      ExpectLikeZlib(stored, size, dictionary.substr(dictionary_size / 2));
      ExpectLikeZlib(stored, size);
    }
  }
}

// A stream whose first match begins at the dictionary's first byte, decoded in
// the fast loop (spare space after the text) and in the careful one.
TEST(DeflateDecoderTest, ReachesTheDictionarysFirstByteAndNoFurther) {
  TestRandom random(kSeed);
  for (const size_t size :
       {size_t{3}, size_t{100}, size_t{258}, size_t{5000}, size_t{32000}}) {
    const std::string dictionary = RandomBytes(random, size);
    // zlib never finds a match at the first byte that it is primed with.
    const std::string stored = RawDeflate(dictionary, "?" + dictionary);
    for (const size_t slack : {size_t{0}, DeflateDecoder::kFastLoopMargin}) {
      SCOPED_TRACE(absl::StrCat(size, " bytes, slack ", slack));
      const auto decode = [&](absl::string_view primed_with) {
        const GuardedBytes front(AsBytes(primed_with),
                                 GuardedBytes::Side::kBegin);
        const GuardedBytes in(AsBytes(stored));
        const GuardedBytes out(size + slack);
        DeflateDecoder decoder;
        decoder.Start(in.bytes(), out.bytes(), front.bytes());
        const auto decoded = decoder.DecodeTo(size);
        EXPECT_TRUE(!decoded.ok() ||
                    AsText(out.bytes().first(size)) == dictionary);
        return decoded.status();
      };
      QUIRE_EXPECT_OK(decode(dictionary));
      EXPECT_THAT(decode(absl::string_view(dictionary).substr(1)),
                  FailsWith(absl::StatusCode::kDataLoss,
                            HasSubstr("distance that there is not")));
    }
  }
}

// Without a dictionary, up to the text's first byte.
TEST(DeflateDecoderTest, ReachesTheTextsFirstByteAndNoFurther) {
  // A final block of fixed codes (RFC 1951, section 3.2.6): three times "a",
  // then a match of three bytes at distance 3 or 4 (both without extra bits).
  const auto stored = [](unsigned distance_symbol) {
    const auto code = [](TestBitWriter& bits, unsigned value, unsigned count) {
      for (unsigned i = count; i > 0; --i) {
        bits.Write(value >> (i - 1) & 1, 1);
      }
    };
    TestBitWriter bits;
    bits.Write(1, 1).Write(1, 2);
    for (int i = 0; i < 3; ++i) {
      code(bits, 0x30 + 'a', 8);
    }
    code(bits, 1, 7);  // Symbol 257: three bytes.
    code(bits, distance_symbol, 5);
    code(bits, 0, 7);
    return std::string(AsText(bits.bytes()));
  };
  for (const size_t slack : {size_t{0}, DeflateDecoder::kFastLoopMargin}) {
    const auto decode = [&](const std::string& stream) {
      const GuardedBytes out(6 + slack, GuardedBytes::Side::kBegin);
      DeflateDecoder decoder;
      decoder.Start(AsBytes(stream), out.bytes());
      const auto decoded = decoder.DecodeTo(6);
      EXPECT_TRUE(!decoded.ok() || AsText(out.bytes().first(6)) == "aaaaaa");
      return decoded.status();
    };
    QUIRE_EXPECT_OK(decode(stored(2)));
    EXPECT_THAT(decode(stored(3)), HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST(DeflateDecoderTest, TakesAndRefusesDamagedStreamsAsZlibDoes) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  const std::string dictionary = RandomText(random, 5000, 100);
  for (int round = 0; round < 3000; ++round) {
    const size_t size = RandomBelow(random, 3000);
    const std::string text = round % 2 == 0
                                 ? RandomText(random, size, 50)
                                 : EditedPieces(random, dictionary, size);
    const int strategy = round % 5 == 0 ? Z_FIXED : Z_DEFAULT_STRATEGY;
    std::string stored = RawDeflate(text, "", round % 7 == 0 ? 0 : 9, strategy);
    switch (RandomBelow(random, 4)) {
      case 0:
        stored.resize(RandomBelow(random, stored.size()));
        break;
      case 1:
        // Mostly in the header, where the codes are.
        for (int i = 0; i < 2; ++i) {
          stored[RandomBelow(random, std::min<size_t>(stored.size(), 80))] ^=
              static_cast<char>(1 << RandomBelow(random, 8));
        }
        break;
      case 2:
        stored[RandomBelow(random, stored.size())] ^=
            static_cast<char>(1 << RandomBelow(random, 8));
        break;
      default:
        stored += RandomBytes(random, RandomBelow(random, 12));
        break;
    }
    ASSERT_EQ(DifferenceToZlib(AsBytes(stored), AsBytes(dictionary), size, 50),
              "")
        << round;
  }
}

TEST(DeflateDecoderTest, TakesAndRefusesRandomHeadersAsZlibDoes) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  TestRandom random(kSeed);
  for (int round = 0; round < 30000; ++round) {
    // A final block with codes, then anything. Few code lengths, so that codes
    // are often complete.
    TestBitWriter bits;
    bits.Write(1, 1).Write(2, 2);
    bits.Write(RandomBelow(random, 32), 5).Write(RandomBelow(random, 32), 5);
    bits.Write(14, 4);
    const unsigned kind = static_cast<unsigned>(RandomBelow(random, 3));
    for (int i = 0; i < 18; ++i) {
      // Two codes of one bit, four of two, or anything.
      const bool used = kind == 0   ? i == 3 || i == 17
                        : kind == 1 ? i == 2 || i == 3 || i == 15 || i == 17
                                    : RandomBelow(random, 3) == 0;
      bits.Write(!used ? 0 : kind == 0 ? 1 : kind == 1 ? 2 : 3, 3);
    }
    const std::string stored =
        std::string(AsText(bits.bytes())) + RandomBytes(random, 300);
    ASSERT_EQ(DifferenceToZlib(AsBytes(stored), {}, 2000, 50), "") << round;
  }
}

TEST(DeflateDecoderTest, SaysWhatIsWrong) {
  const auto decode = [](const std::string& stored) {
    std::string text(100, '?');
    DeflateDecoder decoder;
    decoder.Start(AsBytes(stored), AsMutableBytes(text));
    const auto size = decoder.DecodeTo(3);
    return size.ok() ? decoder.Finish(3) : size.status();
  };
  const std::string good = RawDeflate("abc", "", 9, Z_FIXED);
  QUIRE_EXPECT_OK(decode(good));
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(decode(stored),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  expect("", "cut short");
  expect(good.substr(0, 2), "cut short");
  expect(good + "x", "1 bytes follow the end");
  expect(RawDeflate("ab", "", 9, Z_FIXED), "ends after 2 bytes");
  expect(RawDeflate("abcd", "", 9, Z_FIXED), "more than expected");
  expect("\x07", "type 3");
  expect(std::string("\x01\x03\x00\x00\x00xyz", 8), "stored block");
  TestBitWriter symbols;
  symbols.Write(1, 1).Write(2, 2).Write(30, 5).Write(0, 30);
  expect(std::string(AsText(symbols.bytes())), "too many symbols");
  // 258 code lengths, in two codes of one bit: 16 repeats the last length, 18
  // stands for 11 zeros and more.
  const auto lengths = [] {
    TestBitWriter bits;
    bits.Write(1, 1).Write(2, 2).Write(0, 5).Write(0, 5).Write(15, 4);
    for (int i = 0; i < 19; ++i) {
      bits.Write(i == 0 || i == 2 ? 1 : 0, 3);
    }
    return bits;
  };
  const auto zeros = [&](unsigned count) {
    TestBitWriter bits = lengths();
    bits.Write(1, 1).Write(127, 7).Write(1, 1).Write(count - 138 - 11, 7);
    return std::string(AsText(bits.Write(0, 64).bytes()));
  };
  expect(std::string(AsText(lengths().Write(0, 64).bytes())),
         "the code lengths");
  expect(zeros(259), "the code lengths");
  expect(zeros(258), "a code");
}

}  // namespace
}  // namespace quire
