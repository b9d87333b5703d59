// SPDX-License-Identifier: Apache-2.0
//
// Requirements on every parse: its steps rebuild the text, within the limits of
// their format.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/rlz/parse/lazy_parser.h"
#include "codecs/rlz/parse/match_length.h"
#include "codecs/rlz/parse/optimal_parser.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

absl::StatusOr<std::unique_ptr<const DictionaryIndex>> BuildFine(
    const std::string& dictionary) {
  return DictionaryIndex::Build(AsBytes(dictionary),
                                DictionaryIndex::Detail::kFine);
}

// Parsers of all kinds, including options that no level uses.
struct NamedParser {
  std::string name;
  std::unique_ptr<Parser> parser;
};

std::vector<NamedParser> AllParsers() {
  std::vector<NamedParser> all;
  all.push_back({"greedy", std::make_unique<LazyParser>(LazyParserOptions{
                               .chain_depth_max = 2, .lookahead = 0})});
  all.push_back({"lazy", std::make_unique<LazyParser>(LazyParserOptions())});
  all.push_back(
      {"optimal", std::make_unique<OptimalParser>(OptimalParserOptions())});
  all.push_back({"optimal, thorough",
                 std::make_unique<OptimalParser>(
                     OptimalParserOptions{.finder = {.chain_depth_max = 100,
                                                     .long_key_stride = 1,
                                                     .good_length = 400,
                                                     .long_length = 500,
                                                     .long_stride = 1,
                                                     .longest_length = 600,
                                                     .longest_stride = 1},
                                          .rounds = 3,
                                          .rival_margin = 1 << 20,
                                          .long_length = 1000,
                                          .cut_length_max = 999,
                                          .settled_after = 1000})});
  all.push_back(
      {"optimal, hasty", std::make_unique<OptimalParser>(OptimalParserOptions{
                             .finder = {.chain_depth_max = 1,
                                        .long_key_stride = 16,
                                        .good_length = 4,
                                        .long_length = 8,
                                        .long_stride = 16,
                                        .longest_length = 8,
                                        .longest_stride = 16,
                                        .edit_size_max = 200,
                                        .lead_to_length = 3},
                             .rounds = 1,
                             .rival_margin = 1,
                             .long_length = 8,
                             .cut_length_max = 4,
                             .settled_after = 1})});
  return all;
}

// Copies as defined by the format, byte by byte.
std::string Rebuild(const SequenceList& sequences,
                    const std::string& dictionary, const std::string& block) {
  std::string all = dictionary;
  for (const Sequence& sequence : sequences) {
    all += block.substr(all.size() - dictionary.size(), sequence.literal_run);
    if (sequence.distance > all.size()) {
      return absl::StrCat("distance ", sequence.distance, " at ", all.size());
    }
    for (uint32_t i = 0; i < sequence.match_length; ++i) {
      all.push_back(all[all.size() - sequence.distance]);
    }
  }
  return all.substr(dictionary.size());
}

void ExpectGoodForm(const SequenceList& sequences, uint32_t piece_size,
                    size_t size) {
  ASSERT_FALSE(sequences.empty());
  size_t position = 0;
  size_t piece_end = std::min<size_t>(piece_size, size);
  for (const Sequence& sequence : sequences) {
    position += sequence.literal_run + sequence.match_length;
    ASSERT_LE(position, piece_end);
    if (sequence.match_length == 0) {
      EXPECT_EQ(sequence.distance, 0u);
      EXPECT_EQ(position, piece_end);
      piece_end = std::min<size_t>(piece_end + piece_size, size);
    } else {
      EXPECT_GE(sequence.match_length, 3u);
      EXPECT_GT(sequence.distance, 0u);
    }
  }
  EXPECT_EQ(position, size);
  EXPECT_EQ(sequences.back().match_length, 0u);
}

class ParsersTest : public ::testing::Test {
 protected:
  // Each parser's parse must rebuild the text.
  void ExpectRebuilt(const std::string& dictionary, const std::string& block,
                     uint32_t piece_size = 128 << 10) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, BuildFine(dictionary));
    const BlockText text(AsBytes(dictionary), AsBytes(block));
    for (const NamedParser& named : parsers_) {
      SCOPED_TRACE(absl::StrCat(named.name, ", ", dictionary.size(), " + ",
                                block.size(), " bytes"));
      named.parser->Parse(*index, text, piece_size, sequences_);
      ExpectGoodForm(sequences_, piece_size, block.size());
      EXPECT_TRUE(Rebuild(sequences_, dictionary, block) == block);
    }
  }

  // Each parser must copy all bytes except `literals_max`.
  void ExpectCopied(const std::string& dictionary, const std::string& block,
                    size_t literals_max) {
    ExpectRebuilt(dictionary, block);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, BuildFine(dictionary));
    const BlockText text(AsBytes(dictionary), AsBytes(block));
    for (const NamedParser& named : parsers_) {
      named.parser->Parse(*index, text, 128 << 10, sequences_);
      size_t literals = 0;
      for (const Sequence& sequence : sequences_) {
        literals += sequence.literal_run;
      }
      EXPECT_LE(literals, literals_max) << named.name;
    }
  }

  const std::vector<NamedParser> parsers_ = AllParsers();
  SequenceList sequences_;
};

TEST_F(ParsersTest, RebuildTextsOfAllKindsAndSizes) {
  TestRandom random(1);
  const std::string dictionary = MakeTestContext(60000)->dictionary;
  for (size_t size = 1; size < 80; size += kIsSanitized ? 6 : 1) {
    for (const TestInput& input : TestInputs(random, size, dictionary)) {
      ExpectRebuilt(dictionary, input.text);
    }
  }
  for (const size_t size : {size_t{1000}, size_t{4096}, size_t{20001}}) {
    for (const TestInput& input : TestInputs(random, size, dictionary)) {
      ExpectRebuilt(dictionary, input.text);
    }
  }
}

TEST_F(ParsersTest, RebuildWithSmallDictionaries) {
  TestRandom random(1);
  for (size_t size = 0; size < 40; size += kIsSanitized ? 4 : 1) {
    const std::string dictionary = RandomText(random, size);
    ExpectRebuilt(dictionary, RandomText(random, 300, 20) + dictionary);
    if (size > 0) {
      ExpectRebuilt(dictionary, EditedPieces(random, dictionary, 500));
    }
  }
}

TEST_F(ParsersTest, EndPiecesWhereTheyShould) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 5000);
  for (const uint32_t piece_size : {1u, 2u, 3u, 7u, 64u, 1000u, 1200u}) {
    for (const TestInput& input : TestInputs(random, 1200, dictionary)) {
      ExpectRebuilt(dictionary, input.text, piece_size);
    }
  }
}

TEST_F(ParsersTest, RebuildFewLettersThatMatchEverywhere) {
  TestRandom random(1);
  for (const size_t letters : {size_t{2}, size_t{3}}) {
    std::string dictionary;
    std::string block;
    for (int i = 0; i < 5000; ++i) {
      dictionary.push_back(
          static_cast<char>('a' + RandomBelow(random, letters)));
      block.push_back(static_cast<char>('a' + RandomBelow(random, letters)));
    }
    ExpectRebuilt(dictionary, block);
    ExpectRebuilt(dictionary, dictionary);
  }
}

TEST_F(ParsersTest, CopyAWholeBlockOfTheDictionary) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 100001);
  // Also from odd offsets, and up to the dictionary's last byte.
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{50}, size_t{33333}}) {
    ExpectCopied(dictionary, dictionary.substr(begin, 3000), 1);
  }
  ExpectCopied(dictionary, dictionary.substr(dictionary.size() - 3000), 1);
}

// "xyz" once in the dictionary, at its very end; the block continues like a
// copy that overlaps its own target.
TEST_F(ParsersTest, RunOverFromTheDictionaryIntoTheBlock) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 1000) + "0123456789abcdef";
  std::string block;
  while (block.size() < 500) {
    block += "0123456789abcdef";
  }
  ExpectCopied(dictionary, block, 0);
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  EXPECT_EQ(text.MatchLength(0, 16, text.size()), block.size());
  EXPECT_EQ(text.MatchLength(15, 16, text.size()), block.size() - 15);
  EXPECT_EQ(text.MatchLength(15, 16, 20), 5u);
}

TEST_F(ParsersTest, CopyFromTheDictionarysLastByte) {
  const std::string dictionary = "no such letters: z";
  const std::string block = std::string(400, 'z');
  ExpectRebuilt(dictionary, block);
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  EXPECT_EQ(text.MatchLength(0, 1, text.size()), 400u);
  EXPECT_EQ(text.MatchLength(0, 19, text.size()), 0u);
  EXPECT_EQ(text.MatchLength(5, 0xFFFFFFFF, text.size()), 0u);
}

// Bytes in memory before a dictionary are not part of it, even if they equal
// the block's.
TEST(BlockTextTest, ExtendsNoCopyToBeforeTheDictionary) {
  const std::string memory = "abcabc";
  const ByteView dictionary = AsBytes(memory).subspan(3);
  const BlockText text(dictionary, AsBytes(memory));
  EXPECT_EQ(text.MatchLength(3, 6, text.size()), 3u);
  EXPECT_EQ(text.MatchLengthBefore(3, 6, 3), 0u);
  EXPECT_EQ(text.MatchLengthBefore(5, 6, 5), 2u);
}

// After a changed byte a copy continues at the same distance.
TEST_F(ParsersTest, GoOnAfterEdits) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 50000);
  std::string block = dictionary.substr(20000, 4000);
  for (size_t i = 100; i < block.size(); i += 100) {
    block[i] = static_cast<char>(block[i] + 1);
  }
  ExpectCopied(dictionary, block, 40);
}

// Each line begins with a short copy, whose second byte begins a long one.
TEST_F(ParsersTest, LooksAheadForALongerCopy) {
  constexpr size_t kLineCount = 100;
  TestRandom random(1);
  std::string dictionary;
  std::string block;
  for (size_t i = 0; i < kLineCount; ++i) {
    const std::string line = RandomBytes(random, 60);
    dictionary += line.substr(0, 12) + RandomBytes(random, 8);
    dictionary += line.substr(1) + RandomBytes(random, 9);
    block += line;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, BuildFine(dictionary));
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  LazyParser parser((LazyParserOptions()));
  parser.Parse(*index, text, 128 << 10, sequences_);
  EXPECT_LE(sequences_.size(), kLineCount + kLineCount / 10);
}

TEST_F(ParsersTest, CopyFromTheBlockItself) {
  TestRandom random(1);
  const std::string piece = RandomBytes(random, 2000);
  ExpectCopied("", piece + piece + piece, 2001);
  ExpectCopied(RandomBytes(random, 5000), piece + piece + piece, 2001);
}

// Finds a copy inside bytes that match nothing.
TEST_F(ParsersTest, FindCopiesBehindTextThatCameCompressed) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 50000);
  const std::string noise = RandomBytes(random, 20000);
  const std::string block = noise + dictionary.substr(30001, 8000) + noise;
  // The noise once; the second time it is a copy.
  ExpectCopied(dictionary, block, noise.size() + 300);
}

TEST_F(ParsersTest, DoNotDependOnEarlierBlocks) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 50000);
  const std::string block = EditedPieces(random, dictionary, 20000);
  const std::string other = RandomText(random, 30000, 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, BuildFine(dictionary));
  for (const NamedParser& named : parsers_) {
    const auto parse = [&](const std::string& text) {
      named.parser->Parse(*index, BlockText(AsBytes(dictionary), AsBytes(text)),
                          128 << 10, sequences_);
      return sequences_;
    };
    const SequenceList first = parse(block);
    parse(other);
    EXPECT_EQ(parse(block), first) << named.name;
  }
}

// Size of a parse in 1/256 bit, if it is coded by its own statistics.
int64_t OwnCost(const BlockText& text, const SequenceList& sequences) {
  SequenceStatistics statistics;
  RecentDistances recent;
  const uint8_t* literals_at = text.block().data();
  for (const Sequence& step : sequences) {
    statistics.Add(literals_at, step, recent);
    literals_at += step.literal_run + step.match_length;
  }
  SequencePrices prices;
  prices.Set(statistics);
  return prices.Total(statistics);
}

TEST_F(ParsersTest, FurtherRoundsAndSearchAreWorthTheirTime) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 200000);
  const std::string block = EditedPieces(random, dictionary, 60000);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto index, BuildFine(dictionary));
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  // In order of effort: the entropy of the result must not grow.
  int64_t cost_before = INT64_MAX;
  for (const size_t which : {0u, 1u, 2u}) {
    parsers_[which].parser->Parse(*index, text, 128 << 10, sequences_);
    const int64_t cost = OwnCost(text, sequences_);
    EXPECT_LE(cost, cost_before) << parsers_[which].name;
    cost_before = cost;
  }
}

// Costs of parses of `block`: with the default options, and without one part.
struct CostsOfParts {
  int64_t all = 0;
  int64_t without_rivals = 0;
  int64_t without_leads = 0;
  int64_t without_rounds = 0;
};

CostsOfParts MeasureParts(const std::string& dictionary,
                          const std::string& block) {
  const auto index = BuildFine(dictionary);
  EXPECT_THAT(index, IsOk());
  const BlockText text(AsBytes(dictionary), AsBytes(block));
  const auto measure = [&](const OptimalParserOptions& options) {
    SequenceList sequences;
    OptimalParser(options).Parse(**index, text, 128 << 10, sequences);
    EXPECT_TRUE(Rebuild(sequences, dictionary, block) == block);
    return OwnCost(text, sequences);
  };
  return {.all = measure({}),
          .without_rivals = measure({.rival_margin = 1}),
          .without_leads = measure({.finder = {.edit_size_max = 0}}),
          .without_rounds = measure({.rounds_max = 2})};
}

// Two versions of each line in the dictionary: the later one is nearer and at
// first longer, but only the earlier one continues after an edit.
TEST_F(ParsersTest, TakesTheDistanceThatContinuesAfterAnEdit) {
  TestRandom random(1);
  std::string earlier;
  std::string later;
  std::string block;
  for (int i = 0; i < 300; ++i) {
    const std::string front = RandomBytes(random, 40);
    const auto edit = static_cast<char>('a' + RandomBelow(random, 4));
    const std::string back = RandomBytes(random, 40);
    earlier += front + '-' + back + RandomBytes(random, 300);
    later += front + edit + RandomBytes(random, 340);
    block += front + edit + back;
    // Edits are usual in this text, hence cheap.
    const std::string other_front = RandomBytes(random, 40);
    const std::string other_back = RandomBytes(random, 40);
    earlier += other_front + '-' + other_back;
    block += other_front + edit + other_back;
  }
  const CostsOfParts costs = MeasureParts(earlier + later, block);
  EXPECT_LT(costs.all, costs.without_leads);
}

// Versions of a text, each with other edits.
TEST_F(ParsersTest, KeepsADistanceThatIsCheaperAfterAnEdit) {
  TestRandom random(1);
  const std::string first = RandomText(random, 60000, 500);
  const auto edited = [&] {
    std::string version = first;
    for (int i = 0; i < 2000; ++i) {
      version[RandomBelow(random, version.size())] = 'e';
    }
    return version;
  };
  const std::string dictionary = edited() + edited() + edited() + edited();
  const CostsOfParts costs = MeasureParts(dictionary, edited());
  EXPECT_LT(costs.all, costs.without_rivals);
}

// Unlike typical text: few lengths and distances, hardly any literals.
TEST_F(ParsersTest, AddsRoundsWherePricesWereWrong) {
  TestRandom random(1);
  std::vector<std::string> words;
  for (int i = 0; i < 400; ++i) {
    words.push_back(RandomText(random, 3 + RandomBelow(random, 12)));
  }
  std::string block;
  while (block.size() < 60000) {
    block += words[RandomBelow(random, words.size())];
    block += static_cast<char>('a' + RandomBelow(random, 3));
  }
  const CostsOfParts costs = MeasureParts("", block);
  EXPECT_LT(costs.all, costs.without_rounds);
}

}  // namespace
}  // namespace quire
