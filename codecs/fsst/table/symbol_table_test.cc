// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/table/symbol_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/codecs/fsst_test_vectors.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string SymbolText(const SymbolTable& table, size_t code) {
  const FsstSymbol& symbol = table.symbol(code);
  std::string text;
  for (size_t i = 0; i < symbol.size; ++i) {
    text.push_back(static_cast<char>(symbol.bytes >> (8 * i)));
  }
  return text;
}

std::vector<std::string> SymbolTexts(const SymbolTable& table) {
  std::vector<std::string> texts;
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    texts.push_back(SymbolText(table, code));
  }
  return texts;
}

TEST(SymbolTableTest, WritesPublishedTablesAsItReadThem) {
  for (const FsstTestVector& vector : FsstTestVectors()) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                               SymbolTable::Parse(AsBytes(vector.table)));
    EXPECT_EQ(table.Serialise(), vector.table) << vector.name;
    EXPECT_EQ(table.zero_terminated(), vector.zero_terminated) << vector.name;
  }
}

TEST(SymbolTableTest, OrdersSymbolsAsPublished) {
  // The published tables are reproduced from their symbols alone, except for
  // the choice of a terminator (byte 2).
  for (const FsstTestVector& vector : FsstTestVectors()) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                               SymbolTable::Parse(AsBytes(vector.table)));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const SymbolTable again,
        SymbolTable::FromSymbols(
            std::vector<FsstSymbol>{&table.symbol(0),
                                    &table.symbol(0) + table.symbol_count()},
            table.zero_terminated()));
    std::string expected = vector.table;
    expected[2] = again.Serialise()[2];
    EXPECT_EQ(again.Serialise(), expected) << vector.name;
  }
}

TEST(SymbolTableTest, OrdersBySizeWithSingleBytesLast) {
  const SymbolTable table =
      MakeSymbolTable({"z", "abcdefgh", "ab", "xyz", "a", "cd", "xy"});
  EXPECT_EQ(SymbolTexts(table),
            (std::vector<std::string>{"cd", "ab", "xy", "xyz", "abcdefgh", "z",
                                      "a"}));
  // Only "cd" is not extended; 00 is in no symbol of two bytes or more.
  EXPECT_EQ(table.Serialise().substr(0, 4), std::string("\1\7\0\1", 4));
}

TEST(SymbolTableTest, TerminatorIsInNoLongerSymbol) {
  const SymbolTable table = MakeSymbolTable(
      {std::string("\1\0", 2), std::string("\2\4\3", 3), "\x5"});
  EXPECT_EQ(table.Serialise()[2], 5);
}

TEST(SymbolTableTest, ZeroTerminatedTablesBeginWithZero) {
  const std::string zero(1, '\0');
  for (const bool is_listed : {false, true}) {
    std::vector<std::string> symbols = {"b", "cd"};
    if (is_listed) {
      symbols.push_back(zero);
    }
    const SymbolTable table = MakeSymbolTable(symbols, true);
    EXPECT_EQ(SymbolTexts(table), (std::vector<std::string>{zero, "cd", "b"}));
    const std::string bytes = table.Serialise();
    EXPECT_EQ(bytes.substr(0, 4), std::string("\1\3\0\2", 4));
    EXPECT_EQ(bytes.substr(17), "cdb");
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable again,
                               SymbolTable::Parse(AsBytes(bytes)));
    EXPECT_EQ(again, table);
  }
}

TEST(SymbolTableTest, ATableWithoutSymbolsIsATable) {
  const std::string bytes = SymbolTable().Serialise();
  EXPECT_EQ(bytes.size(), 17);
  QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                             SymbolTable::Parse(AsBytes(bytes)));
  EXPECT_EQ(table.symbol_count(), 0);
  EXPECT_EQ(table, SymbolTable());
}

TEST(SymbolTableTest, TheLargestTableIsAsLargeAsSaid) {
  std::vector<std::string> symbols;
  for (size_t i = 0; i < kFsstSymbolCountMax; ++i) {
    symbols.push_back(std::string(7, 'x') + static_cast<char>(i));
  }
  const SymbolTable table = MakeSymbolTable(symbols);
  const std::string bytes = table.Serialise();
  EXPECT_EQ(bytes.size(), kSerialisedSymbolTableSizeMax);
  QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable again,
                             SymbolTable::Parse(AsBytes(bytes)));
  EXPECT_EQ(SymbolTexts(again), symbols);
}

TEST(SymbolTableTest, RefusesImpossibleSymbols) {
  const auto refuse = [](const std::vector<FsstSymbol>& symbols,
                         const std::string& fault, bool zero_terminated) {
    EXPECT_THAT(
        SymbolTable::FromSymbols(symbols, zero_terminated),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(fault)));
  };
  refuse({{.bytes = 0, .size = 0}}, "0 bytes", false);
  refuse({{.bytes = 1, .size = 9}}, "9 bytes", false);
  refuse({{.bytes = 0x6161, .size = 1}}, "behind", false);
  refuse({{.bytes = 'a', .size = 1}, {.bytes = 'a', .size = 1}}, "twice",
         false);
  refuse({{.bytes = 'a', .size = 2}}, "00", true);
  std::vector<FsstSymbol> many;
  for (size_t i = 0; i < 255; ++i) {
    many.push_back({.bytes = 0x0100 + i + 1, .size = 2});
  }
  QUIRE_EXPECT_OK(SymbolTable::FromSymbols(many));
  refuse(many, "256 symbols", true);
  many.push_back({.bytes = 'a', .size = 1});
  refuse(many, "256 symbols", false);
  // "a" and "a\0" are two symbols.
  QUIRE_EXPECT_OK(SymbolTable::FromSymbols(std::vector<FsstSymbol>{
      {.bytes = 'a', .size = 1}, {.bytes = 'a', .size = 2}}));
}

TEST(SymbolTableTest, RefusesWhatImportersMust) {
  for (const BadSymbolTable& bad : BadSymbolTables()) {
    EXPECT_THAT(SymbolTable::Parse(AsBytes(bad.bytes)),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(bad.fault)));
  }
}

TEST(SymbolTableTest, RefusesEveryTruncation) {
  for (const FsstTestVector& vector : FsstTestVectors()) {
    for (size_t size = 0; size < vector.table.size(); ++size) {
      EXPECT_THAT(SymbolTable::Parse(AsBytes(vector.table).first(size)),
                  HasCode(absl::StatusCode::kDataLoss));
    }
  }
}

TEST(SymbolTableTest, ReadsATableAtTheFrontOfMore) {
  const SymbolTable table = MakeSymbolTable({"a", "bcd"});
  const std::string bytes = table.Serialise();
  size_t size_bytes = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const SymbolTable again,
      SymbolTable::ParsePrefix(AsBytes(bytes + "more"), &size_bytes));
  EXPECT_EQ(again, table);
  EXPECT_EQ(size_bytes, bytes.size());
}

}  // namespace
}  // namespace quire
