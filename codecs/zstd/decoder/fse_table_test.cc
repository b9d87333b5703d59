// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/fse_table.h"

#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/zstd_test_bits.h"

namespace quire {
namespace {

// Writes counts by RFC 8878, section 4.1.1.
std::vector<uint8_t> Describe(const std::vector<int>& counts, unsigned log) {
  TestBitWriter writer;
  writer.Write(log - 5, 4);
  int left = 1 << log;
  for (size_t i = 0; i < counts.size() && left > 0; ++i) {
    const auto value = static_cast<uint64_t>(counts[i]) + 1;
    // Values 0 to left + 1 in `width` bits, the lowest in one bit less.
    unsigned width = 0;
    while (1 << width <= left + 1) {
      ++width;
    }
    const uint64_t half = uint64_t{1} << (width - 1);
    const uint64_t short_count = 2 * half - 2 - static_cast<uint64_t>(left);
    if (value < short_count) {
      writer.Write(value, width - 1);
    } else {
      writer.Write(value < half ? value : value + short_count, width);
    }
    left -= std::abs(counts[i]);
    if (counts[i] == 0) {
      size_t more = 0;
      while (i + 1 < counts.size() && counts[i + 1] == 0) {
        ++more;
        ++i;
      }
      for (; more >= 3; more -= 3) {
        writer.Write(3, 2);
      }
      writer.Write(more, 2);
    }
  }
  return writer.bytes();
}

std::vector<int> RandomCounts(TestRandom& random, unsigned log,
                              size_t symbol_count_max) {
  std::vector<int> counts;
  int left = 1 << log;
  while (left > 0 && counts.size() + 1 < symbol_count_max) {
    const size_t kind = RandomBelow(random, 4);
    const int count = kind == 0 ? 0
                      : kind == 1
                          ? -1
                          : 1 + static_cast<int>(RandomBelow(
                                    random, static_cast<size_t>(left + 3) / 4));
    counts.push_back(count);
    left -= std::abs(count);
  }
  if (left > 0) {
    counts.push_back(left);
  }
  return counts;
}

TEST(FseTableTest, ReadsDescriptionsAndNoneThatAreCut) {
  TestRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto log = static_cast<unsigned>(5 + RandomBelow(random, 5));
    const std::vector<int> expected = RandomCounts(random, log, 53);
    const std::vector<uint8_t> described = Describe(expected, log);
    std::vector<uint8_t> more = described;
    more.insert(more.end(), 3, 0x5A);
    FseCounts counts;
    ASSERT_EQ(ReadFseCounts(more, kFseLogMax, kFseSymbolMax, counts),
              described.size());
    EXPECT_EQ(counts.log, log);
    ASSERT_EQ(counts.symbol_count, expected.size());
    for (size_t symbol = 0; symbol < expected.size(); ++symbol) {
      EXPECT_EQ(counts.counts[symbol], expected[symbol]);
    }
    for (size_t size = 0; size < described.size(); ++size) {
      EXPECT_EQ(ReadFseCounts(ByteView(described).first(size), kFseLogMax,
                              kFseSymbolMax, counts),
                0u);
    }
  }
}

TEST(FseTableTest, RefusesTablesAndAlphabetsThatAreTooLarge) {
  FseCounts counts;
  const std::vector<uint8_t> table = Describe({100, 0, 0, 0, 0, 27, -1}, 7);
  EXPECT_NE(ReadFseCounts(table, 7, 6, counts), 0u);
  EXPECT_EQ(ReadFseCounts(table, 6, 6, counts), 0u);
  EXPECT_EQ(ReadFseCounts(table, 7, 5, counts), 0u);
  EXPECT_EQ(ReadFseCounts(table, 7, 3, counts), 0u);
  // Only steps over absent symbols.
  const std::vector<uint8_t> steps(100, 0xFF);
  EXPECT_EQ(ReadFseCounts(steps, kFseLogMax, kFseSymbolMax, counts), 0u);
}

TEST(FseTableTest, TheStatesOfASymbolLeadToEveryStateOnce) {
  TestRandom random(1);
  for (int i = 0; i < 500; ++i) {
    const auto log = static_cast<unsigned>(5 + RandomBelow(random, 5));
    const std::vector<int> expected = RandomCounts(random, log, 53);
    FseCounts counts = {.symbol_count = static_cast<unsigned>(expected.size()),
                        .log = log};
    for (size_t symbol = 0; symbol < expected.size(); ++symbol) {
      counts.counts[symbol] = static_cast<int16_t>(expected[symbol]);
    }
    const size_t size = size_t{1} << log;
    std::vector<FseStep> steps;
    BuildFseTable(counts, [&](size_t state, const FseStep& step) {
      EXPECT_EQ(state, steps.size());
      steps.push_back(step);
    });
    ASSERT_EQ(steps.size(), size);
    for (size_t symbol = 0; symbol < expected.size(); ++symbol) {
      std::vector<int> reached(size, 0);
      int states = 0;
      for (size_t state = 0; state < size; ++state) {
        if (steps[state].symbol != symbol) {
          continue;
        }
        ++states;
        for (size_t bits = 0; bits < size_t{1} << steps[state].bit_count;
             ++bits) {
          ++reached.at(steps[state].next_base + bits);
        }
      }
      ASSERT_EQ(states, std::abs(expected[symbol]));
      EXPECT_EQ(reached, std::vector<int>(size, states == 0 ? 0 : 1));
    }
  }
}

}  // namespace
}  // namespace quire
