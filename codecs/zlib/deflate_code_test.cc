// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/deflate_code.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

// The shapes that DeflateDecoder uses.
struct TableShape {
  size_t symbol_count;
  unsigned root_bits_max;
  size_t size;
};

constexpr TableShape kShapes[] = {{288, 11, 2342}, {32, 8, 402}, {19, 7, 2342}};
constexpr uint32_t kUntouched = 0xDEADBEEF;

// Symbols whose values are their numbers.
std::vector<uint32_t> NumberedSymbols(size_t count) {
  std::vector<uint32_t> symbols(count);
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = i << 16;
  }
  return symbols;
}

// Returns lengths of a complete code of `used` of the symbols: the depths of
// the leaves of a tree that splits at random, or always at one of its deepest
// leaves.
std::vector<uint8_t> CompleteCode(TestRandom& random, size_t symbol_count,
                                  size_t used, bool is_deep) {
  std::vector<uint8_t> leaves = {0};
  while (leaves.size() < used) {
    const size_t split =
        is_deep ? leaves.size() - 1 : RandomBelow(random, leaves.size());
    if (leaves[split] < kDeflateCodeLengthMax) {
      ++leaves[split];
      leaves.push_back(leaves[split]);
    } else {
      std::ranges::sort(leaves, std::greater<>());
    }
  }
  leaves.resize(symbol_count, 0);
  std::ranges::shuffle(leaves, random);
  return leaves;
}

// Returns the code of each symbol, by RFC 1951, section 3.2.2, with its bits in
// the order in which they are read, from the lowest on.
std::vector<uint32_t> ReversedCodes(const std::vector<uint8_t>& lengths) {
  std::array<uint32_t, kDeflateCodeLengthMax + 2> next = {};
  for (size_t length = 1; length <= kDeflateCodeLengthMax; ++length) {
    const auto count = static_cast<uint32_t>(
        std::ranges::count(lengths, static_cast<uint8_t>(length)));
    next[length + 1] = (next[length] + count) << 1;
  }
  std::vector<uint32_t> codes(lengths.size(), 0);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const uint32_t code = lengths[i] == 0 ? 0 : next[lengths[i]]++;
    for (unsigned bit = 0; bit < lengths[i]; ++bit) {
      codes[i] |= (code >> bit & 1) << (lengths[i] - 1 - bit);
    }
  }
  return codes;
}

struct Found {
  uint32_t entry = 0;
  unsigned bits = 0;
};

// Returns the table's entry for a stream that continues with `stream`.
Found LookUp(const std::vector<uint32_t>& table, unsigned root_bits,
             uint32_t stream) {
  uint32_t entry = table[stream & ((1u << root_bits) - 1)];
  if ((entry & kDeflateSpecial) == 0 ||
      (entry & (kDeflateInvalid | kDeflateEndOfBlock)) != 0) {
    return {entry, DeflateEntryBits(entry)};
  }
  const unsigned root = DeflateEntryBits(entry);
  const uint32_t index =
      stream >> root & ((1u << DeflateEntryCodeBits(entry)) - 1);
  entry = table[(entry >> 16) + index];
  return {entry, root + DeflateEntryBits(entry)};
}

TEST(DeflateCodeTest, FindsEverySymbolOfACompleteCode) {
  const uint64_t seed = 31;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  for (const TableShape& shape : kShapes) {
    const std::vector<uint32_t> symbols = NumberedSymbols(shape.symbol_count);
    for (int round = 0; round < 200; ++round) {
      const size_t used = 2 + RandomBelow(random, shape.symbol_count - 1);
      const std::vector<uint8_t> lengths =
          CompleteCode(random, shape.symbol_count, used, round % 3 == 0);
      // One more entry, which must not be written.
      std::vector<uint32_t> table(shape.size + 1, kUntouched);
      unsigned root_bits = 0;
      ASSERT_TRUE(BuildDeflateTable(lengths, symbols, shape.root_bits_max,
                                    /*complete_only=*/true,
                                    std::span(table).first(shape.size),
                                    root_bits));
      EXPECT_EQ(table.back(), kUntouched);
      EXPECT_LE(root_bits, shape.root_bits_max);
      const std::vector<uint32_t> codes = ReversedCodes(lengths);
      for (uint32_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == 0) {
          continue;
        }
        // The bits after the code do not matter.
        for (const uint32_t rest : {uint32_t{0}, UINT32_MAX}) {
          const Found found =
              LookUp(table, root_bits, codes[i] | rest << lengths[i]);
          ASSERT_EQ(found.entry >> 16, i);
          ASSERT_EQ(found.bits, lengths[i]);
        }
      }
    }
  }
}

TEST(DeflateCodeTest, TakesAndRefusesWhatZlibDoes) {
  const std::vector<uint32_t> symbols = NumberedSymbols(4);
  const auto takes = [&](const std::vector<uint8_t>& lengths,
                         bool complete_only) {
    std::vector<uint32_t> table(2342);
    unsigned root_bits = 0;
    return BuildDeflateTable(lengths, symbols, 11, complete_only, table,
                             root_bits);
  };
  for (const bool complete_only : {false, true}) {
    EXPECT_TRUE(takes({1, 1, 0, 0}, complete_only));
    EXPECT_TRUE(takes({2, 1, 0, 2}, complete_only));
    // Too many codes, too few.
    EXPECT_FALSE(takes({1, 1, 1, 0}, complete_only));
    EXPECT_FALSE(takes({2, 2, 2, 1}, complete_only));
    EXPECT_FALSE(takes({2, 2, 2, 0}, complete_only));
    EXPECT_FALSE(takes({0, 2, 0, 0}, complete_only));
    EXPECT_FALSE(takes({15, 0, 0, 0}, complete_only));
    // A single code of one bit, and none.
    EXPECT_EQ(takes({0, 1, 0, 0}, complete_only), !complete_only);
    EXPECT_EQ(takes({0, 0, 0, 0}, complete_only), !complete_only);
    EXPECT_EQ(takes({}, complete_only), !complete_only);
  }
}

TEST(DeflateCodeTest, MarksWhatNoCodeBeginsWith) {
  std::vector<uint32_t> table(402, 0);
  unsigned root_bits = 0;
  const std::vector<uint8_t> one = {0, 1};
  ASSERT_TRUE(BuildDeflateTable(one, DeflateDistanceSymbols(), 8,
                                /*complete_only=*/false, table, root_bits));
  EXPECT_EQ(LookUp(table, root_bits, 0).entry >> 16, 2u);
  EXPECT_NE(LookUp(table, root_bits, 1).entry & kDeflateInvalid, 0u);
  const std::vector<uint8_t> none(30, 0);
  ASSERT_TRUE(BuildDeflateTable(none, DeflateDistanceSymbols(), 8,
                                /*complete_only=*/false, table, root_bits));
  for (const uint32_t stream : {0u, 1u}) {
    EXPECT_NE(LookUp(table, root_bits, stream).entry & kDeflateInvalid, 0u);
  }
}

// The tables of RFC 1951, section 3.2.5.
TEST(DeflateCodeTest, SymbolsMeanWhatTheFormatSays) {
  struct Meaning {
    size_t symbol;
    uint32_t base;
    unsigned extra_bits;
  };

  const auto lengths = DeflateLiteralAndLengthSymbols();
  const auto distances = DeflateDistanceSymbols();
  ASSERT_EQ(lengths.size(), 288u);
  ASSERT_EQ(distances.size(), 32u);
  for (const Meaning& m :
       {Meaning{257, 3, 0}, Meaning{264, 10, 0}, Meaning{265, 11, 1},
        Meaning{269, 19, 2}, Meaning{280, 115, 4}, Meaning{281, 131, 5},
        Meaning{284, 227, 5}, Meaning{285, 258, 0}}) {
    EXPECT_EQ(lengths[m.symbol], m.base << 16 | m.extra_bits) << m.symbol;
  }
  for (const Meaning& m :
       {Meaning{0, 1, 0}, Meaning{3, 4, 0}, Meaning{4, 5, 1}, Meaning{9, 25, 3},
        Meaning{28, 16385, 13}, Meaning{29, 24577, 13}}) {
    EXPECT_EQ(distances[m.symbol], m.base << 16 | m.extra_bits) << m.symbol;
  }
  EXPECT_EQ(lengths['a'], kDeflateLiteral | uint32_t{'a'} << 16);
  EXPECT_EQ(lengths[256], kDeflateSpecial | kDeflateEndOfBlock);
  for (const uint32_t symbol :
       {lengths[286], lengths[287], distances[30], distances[31]}) {
    EXPECT_EQ(symbol, kDeflateSpecial | kDeflateInvalid);
  }
  for (uint32_t i = 0; i < 19; ++i) {
    EXPECT_EQ(DeflateCodeLengthSymbols()[i], i << 16);
  }
}

// All lengths once and the longest twice are a complete code.
TEST(DeflateCodeTest, RefusesOneCodeMoreThanThereIsSpaceFor) {
  std::vector<uint8_t> lengths;
  for (uint8_t length = 1; length <= kDeflateCodeLengthMax; ++length) {
    lengths.push_back(length);
  }
  lengths.push_back(kDeflateCodeLengthMax);
  const std::vector<uint32_t> symbols = NumberedSymbols(288);
  std::vector<uint32_t> table(2342);
  unsigned root_bits = 0;
  EXPECT_TRUE(BuildDeflateTable(lengths, symbols, 11, /*complete_only=*/true,
                                table, root_bits));
  lengths.push_back(kDeflateCodeLengthMax);
  EXPECT_FALSE(BuildDeflateTable(lengths, symbols, 11, /*complete_only=*/false,
                                 table, root_bits));
}

}  // namespace
}  // namespace quire
