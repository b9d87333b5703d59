// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_encoder.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/fsst/decode/fsst_decoder.h"
#include "testing/base/guarded_bytes.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/fsst_test_vectors.h"

namespace quire {
namespace {

// Algorithm 2 over pieces of 511 bytes, written plainly.
std::string PlainEncode(const SymbolTable& table, absl::string_view text) {
  std::string codes;
  for (size_t i = 0; i < text.size();) {
    const size_t left =
        std::min(text.size() - i, kFsstStringSizeMax - i % kFsstStringSizeMax);
    size_t best_size = 0;
    size_t best_code = 0;
    for (size_t code = 0; code < table.symbol_count(); ++code) {
      const FsstSymbol& symbol = table.symbol(code);
      size_t k = 0;
      while (k < symbol.size && k < left &&
             static_cast<uint8_t>(text[i + k]) ==
                 (symbol.bytes >> (8 * k) & 0xff)) {
        ++k;
      }
      if (k == symbol.size && k > best_size) {
        best_size = k;
        best_code = code;
      }
    }
    codes.push_back(
        static_cast<char>(best_size == 0 ? kFsstEscape : best_code));
    if (best_size == 0) {
      codes.push_back(text[i]);
    }
    i += std::max<size_t>(best_size, 1);
  }
  return codes;
}

// Reads from a buffer and writes to one that end at a guard page.
std::string Encode(const FsstEncoder& encoder, absl::string_view text) {
  const GuardedBytes exact(AsBytes(text));
  const GuardedBytes guarded(FsstEncoder::CodesSizeMax(text.size()));
  const MutableByteView codes = guarded.bytes();
  const size_t size = encoder.Encode(exact.bytes(), codes);
  EXPECT_LE(size, codes.size());
  return std::string(AsText(codes).substr(0, size));
}

std::vector<std::string> EncodeAll(const FsstEncoder& encoder,
                                   const std::vector<std::string>& texts) {
  std::vector<std::vector<uint8_t>> exact;
  std::vector<ByteView> views;
  size_t text_size = 0;
  for (const std::string& text : texts) {
    exact.emplace_back(text.begin(), text.end());
    text_size += text.size();
  }
  views.assign(exact.begin(), exact.end());
  const GuardedBytes guarded(FsstEncoder::CodesSizeMax(text_size));
  const MutableByteView codes = guarded.bytes();
  std::vector<uint32_t> ends(texts.size());
  const size_t size = encoder.EncodeStrings(views, codes, ends);
  EXPECT_EQ(size, ends.empty() ? 0 : ends.back());
  std::vector<std::string> strings;
  size_t begin = 0;
  for (const uint32_t end : ends) {
    strings.emplace_back(AsText(codes).substr(begin, end - begin));
    begin = end;
  }
  return strings;
}

std::string Decode(const SymbolTable& table, const std::string& codes) {
  std::vector<uint8_t> out(codes.size() * kFsstExpansionMax);
  const auto size = FsstDecoder(table).Decode(AsBytes(codes), out);
  EXPECT_THAT(size, IsOk());
  return size.ok() ? std::string(AsText(out).substr(0, *size)) : "";
}

// A text of up to `size_max` bytes, and a table with which to encode it.
struct Case {
  std::string text;
  SymbolTable table;
};

Case RandomCase(TestRandom& random, size_t size_max) {
  const size_t size = RandomBelow(random, size_max + 1);
  Case result;
  switch (RandomBelow(random, 4)) {
    case 0:
      result.text = RandomBytes(random, size);
      break;
    case 1:
      // Few different bytes, so that symbols have many extensions.
      for (size_t i = 0; i < size; ++i) {
        result.text.push_back("ab\0"[RandomBelow(random, 3)]);
      }
      break;
    default:
      result.text = RandomText(random, size);
  }
  result.table =
      RandomSymbolTable(random, result.text, RandomBelow(random, 256));
  return result;
}

TEST(FsstEncoderTest, EncodesAsPublished) {
  for (const FsstTestVector& vector : FsstTestVectors()) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                               SymbolTable::Parse(AsBytes(vector.table)));
    const FsstEncoder encoder(table);
    for (const FsstTestString& string : vector.strings) {
      EXPECT_EQ(Encode(encoder, string.text), string.codes) << vector.name;
    }
  }
}

TEST(FsstEncoderTest, TakesTheLongestSymbolEverywhere) {
  for (uint64_t seed = 0; seed < Fewer(200u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Case made = RandomCase(random, 3000);
    const std::string codes = Encode(FsstEncoder(made.table), made.text);
    ASSERT_EQ(codes, PlainEncode(made.table, made.text));
    ASSERT_EQ(Decode(made.table, codes), made.text);
  }
}

TEST(FsstEncoderTest, EncodesTextsOfEverySize) {
  TestRandom random(1);
  const std::string text = RandomText(random, 1100);
  const SymbolTable table = RandomSymbolTable(random, text, 200);
  const FsstEncoder encoder(table);
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string part = text.substr(text.size() - size);
    ASSERT_EQ(Encode(encoder, part), PlainEncode(table, part));
  }
}

TEST(FsstEncoderTest, EncodesWhenEveryByteIsInLongerSymbols) {
  std::vector<std::string> symbols;
  for (int i = 0; i < 255; ++i) {
    symbols.push_back({static_cast<char>(i), static_cast<char>(i + 1)});
  }
  const SymbolTable table = MakeSymbolTable(symbols);
  const FsstEncoder encoder(table);
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text.push_back(static_cast<char>(i));
    ASSERT_EQ(Encode(encoder, text), PlainEncode(table, text));
  }
  TestRandom random(1);
  text = RandomBytes(random, 5000);
  EXPECT_EQ(Encode(encoder, text), PlainEncode(table, text));
}

// Symbols that share fronts and have no short ones: up to seven bytes wait for
// the rest of a symbol, and become up to fourteen bytes of codes.
TEST(FsstEncoderTest, EncodesTextsThatLeaveLongSymbolsLate) {
  for (uint64_t seed = 0; seed < Fewer(100u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::string source;
    for (size_t i = 0; i < 3000; ++i) {
      source.push_back(
          "ab"[RandomBelow(random, seed % 2 == 0 ? 2 : 1 + i % 2)]);
    }
    std::set<std::string> symbols;
    for (size_t i = 0; i < 250; ++i) {
      const size_t size = 8 - RandomBelow(random, 1 + seed % 7);
      symbols.insert(source.substr(RandomBelow(random, 2900), size));
    }
    const SymbolTable table = MakeSymbolTable({symbols.begin(), symbols.end()});
    std::string text;
    while (text.size() < 40000) {
      text += source.substr(RandomBelow(random, 2900), RandomBelow(random, 20));
      text += "cd"[RandomBelow(random, 2)];
    }
    ASSERT_EQ(Encode(FsstEncoder(table), text), PlainEncode(table, text));
  }
}

TEST(FsstEncoderTest, WorstCaseFillsAllRoom) {
  const FsstEncoder encoder{SymbolTable()};
  const std::string text(5000, 'x');
  EXPECT_EQ(Encode(encoder, text).size(), FsstEncoder::CodesSizeMax(5000));
}

TEST(FsstEncoderTest, ZeroTerminatedStringsStayZeroTerminated) {
  for (uint64_t seed = 0; seed < Fewer(50u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::string text = RandomText(random, RandomBelow(random, 2000));
    text.push_back('\0');
    const SymbolTable table =
        RandomSymbolTable(random, text, RandomBelow(random, 256), true);
    const std::string codes = Encode(FsstEncoder(table), text);
    ASSERT_EQ(codes, PlainEncode(table, text));
    EXPECT_EQ(codes.find('\0'), codes.size() - 1);
  }
}

TEST(FsstEncoderTest, EqualTextsHaveEqualCodesWhateverTheirNeighbours) {
  for (uint64_t seed = 0; seed < Fewer(30u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Case made = RandomCase(random, 20000);
    const FsstEncoder encoder(made.table);
    const size_t size_max = 1 + RandomBelow(random, seed % 3 == 0 ? 2000 : 30);
    std::vector<std::string> texts;
    for (size_t i = 0; i < 200; ++i) {
      const size_t begin = RandomBelow(random, made.text.size() + 1);
      texts.push_back(
          made.text.substr(begin, RandomBelow(random, size_max + 1)));
    }
    const std::vector<std::string> once = EncodeAll(encoder, texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(once[i], PlainEncode(made.table, texts[i]));
      ASSERT_EQ(once[i], Encode(encoder, texts[i]));
    }
    std::vector<std::string> shuffled = texts;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const std::vector<std::string> twice = EncodeAll(encoder, shuffled);
    for (size_t i = 0; i < texts.size(); ++i) {
      for (size_t k = 0; k < texts.size(); k += 7) {
        ASSERT_EQ(once[i] == twice[k], texts[i] == shuffled[k]);
      }
    }
  }
}

TEST(FsstEncoderTest, NoTextsHaveNoCodes) {
  const FsstEncoder encoder{SymbolTable()};
  EXPECT_TRUE(EncodeAll(encoder, {}).empty());
  EXPECT_EQ(EncodeAll(encoder, {"", "", "a", ""}),
            (std::vector<std::string>{"", "",
                                      "\xff"
                                      "a",
                                      ""}));
}

}  // namespace
}  // namespace quire
