// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/wire_encoders.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/fsst/table/symbol_table.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// A table of `count` symbols of eight bytes that start with a number.
WireTable MakeTable(uint8_t number, size_t count) {
  std::vector<FsstSymbol> symbols;
  for (uint64_t i = 0; i < count; ++i) {
    symbols.push_back(
        {.bytes = i << 56 | uint64_t{number} << 8 | 'a', .size = 8});
  }
  return WireTable(SymbolTable::FromSymbols(symbols).value());
}

TEST(WireEncodersTest, KeepsTheOnesUsedLast) {
  // Each takes some 0.9 MB at most.
  std::vector<WireTable> tables;
  for (uint8_t i = 0; i < 6; ++i) {
    tables.push_back(MakeTable(i, 60));
  }
  const size_t count = WireEncoders::kBytesMax /
                       FsstEncoder::MemoryBytesMax(tables[0].serialised.size());
  ASSERT_GE(count, 3u);
  ASSERT_LT(count, tables.size());
  WireEncoders encoders;
  std::vector<std::weak_ptr<const FsstEncoder>> made;
  for (size_t i = 0; i < count; ++i) {
    made.push_back(encoders.Get(tables[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(encoders.Get(tables[i]), made[i].lock()) << i;
  }
  EXPECT_EQ(encoders.Get(tables[0]), made[0].lock());
  const std::weak_ptr<const FsstEncoder> next = encoders.Get(tables[count]);
  EXPECT_FALSE(next.expired());
  EXPECT_FALSE(made[0].expired());
  EXPECT_TRUE(made[1].expired());
  EXPECT_FALSE(made[2].expired());
}

TEST(WireEncodersTest, KeepsOneThatTakesAll) {
  WireEncoders encoders;
  const WireTable small = MakeTable(0, 60);
  const WireTable large = MakeTable(1, kFsstSymbolCountMax);
  const std::weak_ptr<const FsstEncoder> first = encoders.Get(small);
  const std::weak_ptr<const FsstEncoder> second = encoders.Get(large);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
}

TEST(WireEncodersTest, ServesManyThreads) {
  WireEncoders encoders;
  std::vector<WireTable> tables;
  for (uint8_t i = 0; i < 8; ++i) {
    tables.push_back(MakeTable(i, 100));
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 50; ++i) {
        EXPECT_NE(encoders.Get(tables[(i * (t + 1)) % tables.size()]), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace quire
