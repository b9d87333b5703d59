// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/parse_lattice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

FsstSymbol SymbolOf(const std::string& text) {
  FsstSymbol symbol;
  for (const char byte : text) {
    symbol.bytes |= uint64_t{static_cast<uint8_t>(byte)} << (8 * symbol.size++);
  }
  return symbol;
}

// A step of a parse: a string that is a symbol at one offset only.
struct Place {
  size_t at = kNowhere;
  size_t size = 0;
};

// Size of the smallest parse, by exhaustive search. It does not use the symbol
// at `without`, and may use one at `with`.
uint32_t SmallestSize(const std::vector<std::string>& symbols,
                      const std::string& text, Place without, Place with,
                      size_t from = 0) {
  if (from == text.size()) {
    return 0;
  }
  uint32_t smallest = 2 + SmallestSize(symbols, text, without, with, from + 1);
  for (const std::string& symbol : symbols) {
    if (text.compare(from, symbol.size(), symbol) == 0 &&
        (from != without.at || symbol.size() != without.size)) {
      smallest = std::min(
          smallest,
          1 + SmallestSize(symbols, text, without, with, from + symbol.size()));
    }
  }
  if (from == with.at) {
    smallest = std::min(smallest, 1 + SmallestSize(symbols, text, without, with,
                                                   from + with.size));
  }
  return smallest;
}

std::string Word(TestRandom& random, size_t size_max, size_t alphabet) {
  std::string word(1 + RandomBelow(random, size_max), '\0');
  for (char& byte : word) {
    byte = static_cast<char>('a' + RandomBelow(random, alphabet));
  }
  return word;
}

struct Case {
  explicit Case(TestRandom& random) {
    while (symbols.size() < 6) {
      const std::string word = Word(random, 8, 2);
      if (std::ranges::find(symbols, word) == symbols.end()) {
        symbols.push_back(word);
      }
    }
    text = Word(random, 12, 3);
    std::vector<FsstSymbol> all;
    for (const std::string& symbol : symbols) {
      all.push_back(SymbolOf(symbol));
    }
    matcher.SetSymbols(all);
    padded = text + std::string(TrainingSample::kReadableBehindBytes, 'a');
    lattice.Parse(AsBytes(padded).first(text.size()), matcher);
  }

  std::vector<std::string> symbols;
  std::string text;
  std::string padded;
  SymbolMatcher matcher;
  ParseLattice lattice;
};

TEST(ParseLatticeTest, LossesAreThoseOfGoingAroundOnePlace) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Case test(random);
    const uint32_t smallest = SmallestSize(test.symbols, test.text, {}, {});
    EXPECT_EQ(test.lattice.SmallestSize(), smallest);
    // The losses come in the order of the parse, with escapes between them.
    size_t at = 0;
    uint32_t size = 0;
    test.lattice.ForEachLoss([&](uint16_t index, uint32_t loss) {
      const std::string& symbol = test.symbols[index];
      while (test.text.compare(at, symbol.size(), symbol) != 0) {
        ++at;
        size += 2;
        ASSERT_LT(at, test.text.size());
      }
      EXPECT_EQ(loss,
                SmallestSize(test.symbols, test.text, {at, symbol.size()}, {}) -
                    smallest);
      at += symbol.size();
      ++size;
    });
    EXPECT_EQ(size + 2 * (test.text.size() - at), smallest);
  }
}

TEST(ParseLatticeTest, GainsAreThoseOfASymbolAtOnePlace) {
  using Gains = std::map<std::tuple<uint64_t, uint8_t>, uint32_t>;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Case test(random);
    const uint32_t smallest = SmallestSize(test.symbols, test.text, {}, {});
    Gains expected;
    for (size_t at = 0; at < test.text.size(); ++at) {
      for (size_t size = 1; size <= std::min<size_t>(8, test.text.size() - at);
           ++size) {
        const uint32_t with =
            SmallestSize(test.symbols, test.text, {}, {at, size});
        if (with < smallest) {
          const FsstSymbol symbol = SymbolOf(test.text.substr(at, size));
          expected[{symbol.bytes, symbol.size}] += smallest - with;
        }
      }
    }
    Gains gains;
    test.lattice.ForEachGain([&](const FsstSymbol& symbol, uint32_t gain) {
      gains[{symbol.bytes, symbol.size}] += gain;
    });
    EXPECT_EQ(gains, expected);
  }
}

TEST(ParseLatticeTest, HoldsTheLongestPieceWithoutAnySymbol) {
  SymbolMatcher matcher;
  ParseLattice lattice;
  const std::string text(
      TrainingSample::kPieceSizeBytesMax + TrainingSample::kReadableBehindBytes,
      'a');
  lattice.Parse(AsBytes(text).first(TrainingSample::kPieceSizeBytesMax),
                matcher);
  EXPECT_EQ(lattice.SmallestSize(), 2 * TrainingSample::kPieceSizeBytesMax);
  uint32_t gain_max = 0;
  lattice.ForEachGain([&](const FsstSymbol&, uint32_t gain) {
    gain_max = std::max(gain_max, gain);
  });
  EXPECT_EQ(gain_max, 15u);
}

}  // namespace
}  // namespace quire
