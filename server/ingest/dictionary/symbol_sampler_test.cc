// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary/symbol_sampler.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

std::string Lines(const std::string& stem, size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) {
    absl::StrAppend(&text, stem, i % 97, "\n");
  }
  return text.substr(0, size);
}

std::string TrainOn(const std::string& text, uint64_t announced_size,
                    size_t piece_size_max) {
  std::mt19937_64 random(3);
  SymbolSampler sampler(announced_size);
  for (ByteView left = AsBytes(text); !left.empty();) {
    const size_t size =
        std::min<size_t>(left.size(), 1 + random() % piece_size_max);
    sampler.Add(left.first(size));
    left = left.subspan(size);
  }
  return sampler.Train();
}

size_t EncodedSize(const std::string& serialised, const std::string& text) {
  const auto table = SymbolTable::Parse(AsBytes(serialised));
  EXPECT_THAT(table, IsOk());
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(text.size()));
  return FsstEncoder(*table).Encode(AsBytes(text), codes);
}

TEST(SymbolSamplerTest, DoesNotDependOnPieces) {
  const std::string text = Lines("one line of many, ", 3000000);
  const std::string table = TrainOn(text, text.size(), text.size());
  for (const size_t piece_size_max :
       std::initializer_list<size_t>{1000, 100000, 1000000}) {
    EXPECT_EQ(TrainOn(text, text.size(), piece_size_max), table);
  }
}

// A collection of two halves without common text.
TEST(SymbolSamplerTest, SeesTheWholeCollection) {
  const std::string front = Lines("lorem ipsum dolor ", 4 << 20);
  const std::string back = Lines("0123456789=+/-*", 4 << 20);
  const std::string table = TrainOn(front + back, 8 << 20, 1 << 20);
  EXPECT_LT(EncodedSize(table, front), front.size() / 3);
  EXPECT_LT(EncodedSize(table, back), back.size() / 3);
}

TEST(SymbolSamplerTest, TakesAllOfShortText) {
  const std::string text = "abcabcabcabcabcabcabcabc";
  EXPECT_LT(EncodedSize(TrainOn(text, text.size(), 5), text), text.size() / 2);
  QUIRE_EXPECT_OK(SymbolTable::Parse(AsBytes(TrainOn("", 0, 1))));
}

TEST(SymbolSamplerTest, BearsTextOfAnotherSizeThanAnnounced) {
  const std::string text = Lines("one line of many, ", 2000000);
  for (const uint64_t announced : {uint64_t{0}, uint64_t{5}, uint64_t{1000000},
                                   uint64_t{3000000}, ~uint64_t{0}}) {
    QUIRE_EXPECT_OK(
        SymbolTable::Parse(AsBytes(TrainOn(text, announced, 70000))));
  }
  EXPECT_LT(EncodedSize(TrainOn(text, 3000000, 70000), text), text.size() / 3);
}

}  // namespace
}  // namespace quire
