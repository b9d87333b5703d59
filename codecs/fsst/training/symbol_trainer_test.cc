// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/symbol_trainer.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/fsst/decode/fsst_decoder.h"
#include "testing/base/sanitized.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

SymbolTable Train(const std::vector<std::string>& texts,
                  const SymbolTrainerOptions& options = {}) {
  std::vector<ByteView> views;
  for (const std::string& text : texts) {
    views.push_back(AsBytes(text));
  }
  return TrainSymbolTable(views, options);
}

// Encodes and decodes; returns the size of the codes.
size_t RoundTripSize(const SymbolTable& table, const std::string& text,
                     FsstLevel level = FsstLevel::kDefault) {
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(text.size()));
  codes.resize(FsstEncoder(table, level).Encode(AsBytes(text), codes));
  std::string decoded(text.size(), '\0');
  EXPECT_TRUE(
      FsstDecoder(table).DecodeExactly(codes, AsMutableBytes(decoded)).ok());
  EXPECT_EQ(decoded, text);
  return codes.size();
}

bool HasSymbol(const SymbolTable& table, const std::string& text) {
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    const FsstSymbol& symbol = table.symbol(code);
    std::string bytes;
    for (size_t i = 0; i < symbol.size; ++i) {
      bytes += static_cast<char>(symbol.bytes >> (8 * i) & 0xff);
    }
    if (bytes == text) {
      return true;
    }
  }
  return false;
}

TEST(SymbolTrainerTest, NoTextGivesNoSymbols) {
  EXPECT_EQ(Train({}).symbol_count(), 0u);
  EXPECT_EQ(Train({"", ""}).symbol_count(), 0u);
  EXPECT_EQ(Train({"abc"}, {.sample_size_bytes = 0}).symbol_count(), 0u);
}

TEST(SymbolTrainerTest, OneByteIsOneSymbol) {
  const SymbolTable table = Train({"a"});
  EXPECT_TRUE(HasSymbol(table, "a"));
  EXPECT_EQ(RoundTripSize(table, "a"), 1u);
}

TEST(SymbolTrainerTest, ARunOfOneByteTakesAnEighth) {
  const std::string text(100000, 'a');
  const SymbolTable table = Train({text});
  EXPECT_TRUE(HasSymbol(table, "aaaaaaaa"));
  EXPECT_LT(RoundTripSize(table, text), text.size() / 8 + 1000);
}

TEST(SymbolTrainerTest, FindsWhatUrlsShare) {
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) {
    texts.push_back(
        absl::StrCat("http://www.example.org/", i * 7919 % 1000, ".html"));
  }
  const SymbolTable table = Train(texts);
  size_t size = 0;
  size_t codes_size = 0;
  for (const std::string& text : texts) {
    size += text.size();
    codes_size += RoundTripSize(table, text);
  }
  EXPECT_LT(codes_size, size / 4);
}

TEST(SymbolTrainerTest, RandomBytesDoNotGrowMuch) {
  TestRandom random(1);
  const std::string text = RandomBytes(random, 100000);
  EXPECT_LT(RoundTripSize(Train({text}), text), text.size() * 102 / 100);
}

TEST(SymbolTrainerTest, LearnsFromTheWholeOfTheTexts) {
  TestRandom random(1);
  const std::string front = RandomText(random, 1000000, 200);
  const std::string back = RandomBytes(random, 1 << 6);
  std::string text = front;
  for (int i = 0; i < 20000; ++i) {
    text += back;
  }
  EXPECT_LT(RoundTripSize(Train({text}), text), text.size() / 2);
}

TEST(SymbolTrainerTest, TakesManyTinyTexts) {
  const std::vector<std::string> texts(300000, "ab");
  const SymbolTable table = Train(texts);
  EXPECT_TRUE(HasSymbol(table, "ab"));
  // No symbol crosses the end of a text.
  EXPECT_FALSE(HasSymbol(table, "abab"));
}

TEST(SymbolTrainerTest, KeepsTheTerminatorApart) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    texts.push_back(absl::StrCat("name ", i % 10) + '\0');
  }
  for (const FsstLevel level : {FsstLevel::kDefault, FsstLevel::kHigh}) {
    const SymbolTable table =
        Train(texts, {.level = level, .zero_terminated = true});
    EXPECT_TRUE(table.zero_terminated());
    EXPECT_EQ(table.symbol(0), (FsstSymbol{.bytes = 0, .size = 1}));
    EXPECT_LE(table.symbol_count(), kFsstSymbolCountMax);
    EXPECT_EQ(RoundTripSize(table, texts[0], level), 2u);
  }
  EXPECT_EQ(Train({}, {.zero_terminated = true}).symbol_count(), 1u);
}

TEST(SymbolTrainerTest, TheSameTextsGiveTheSameTable) {
  TestRandom random(1);
  const std::string text = RandomText(random, 200000);
  const std::string table = Train({text}).Serialise();
  EXPECT_EQ(Train({text}).Serialise(), table);
  EXPECT_EQ(Train({"", text, ""}).Serialise(), table);
}

std::string Hex(TestRandom& random, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += "0123456789abcdef"[RandomBelow(random, 16)];
  }
  return text;
}

// One line of a column. One random number per statement: compilers differ in
// the order of evaluating arguments.
std::string Line(const std::string& column, TestRandom& random) {
  std::string line;
  if (column == "text") {
    line = RandomText(random, 1000, 300);
  } else if (column == "url") {
    absl::StrAppend(&line, "http://www.example.org/", RandomBelow(random, 9));
    absl::StrAppend(&line, "/page-", RandomBelow(random, 10000), ".html");
  } else if (column == "email") {
    line = RandomText(random, 8, 1000);
    line += RandomBelow(random, 2) == 0 ? "@gmail.com" : "@yahoo.com";
  } else if (column == "hex") {
    line = Hex(random, 8);
  } else if (column == "uuid") {
    line = Hex(random, 8) + "-2da5-11e8-";
    line += Hex(random, 4) + "-";
    line += Hex(random, 12);
  } else if (column == "genome") {
    while (line.size() < 9) {
      line += "acgt"[RandomBelow(random, 4)];
    }
  } else if (column == "json") {
    absl::StrAppend(&line, "{\"id\": ", RandomBelow(random, 1000000));
    absl::StrAppend(&line, ", \"name\": \"", RandomText(random, 9, 500));
    line += "\", \"ok\": true}";
  }
  return line + "\n";
}

// Bytes of codes for columns of 100,000 bytes. A change here changes the
// quality of training, for better or worse.
TEST(SymbolTrainerTest, SizesAreTheseToTheByte) {
  struct Row {
    std::string column;
    size_t default_size;
    size_t high_size;
  };

  const std::vector<Row> rows = {
      {"text", 67160, 65284}, {"url", 16707, 14980},  {"email", 38268, 36041},
      {"hex", 54463, 53063},  {"uuid", 45728, 43652}, {"genome", 31546, 29664},
      {"json", 31100, 27774},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.column);
    TestRandom random(1);
    std::string text;
    while (text.size() < 100000) {
      text += Line(row.column, random);
    }
    text.resize(100000);
    EXPECT_EQ(RoundTripSize(Train({text}), text), row.default_size);
    EXPECT_EQ(RoundTripSize(Train({text}, {.level = FsstLevel::kHigh}), text,
                            FsstLevel::kHigh),
              row.high_size);
  }
}

// Any texts give a table that works, no worse than its bytes alone.
TEST(SymbolTrainerTest, AnyTextsGiveATableThatWorks) {
  for (uint64_t seed = 1; seed <= Fewer(16u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<std::string> texts;
    for (size_t i = 0, count = RandomBelow(random, 20); i < count; ++i) {
      std::string text = RandomBytes(random, RandomBelow(random, 600));
      const size_t alphabet = 1 + RandomBelow(random, 256);
      for (char& byte : text) {
        byte = static_cast<char>(static_cast<uint8_t>(byte) % alphabet);
      }
      texts.push_back(text);
    }
    const SymbolTrainerOptions options = {
        .sample_size_bytes = RandomBelow(random, 20000),
        .rounds = static_cast<int>(RandomBelow(random, 8)),
        .level = RandomBelow(random, 2) == 0 ? FsstLevel::kDefault
                                             : FsstLevel::kHigh};
    const SymbolTable table = Train(texts, options);
    EXPECT_EQ(Train(texts, options), table);
    for (const std::string& text : texts) {
      RoundTripSize(table, text, options.level);
    }
  }
}

}  // namespace
}  // namespace quire
