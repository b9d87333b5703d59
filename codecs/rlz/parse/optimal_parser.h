// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_OPTIMAL_PARSER_H_
#define QUIRE_CODECS_RLZ_PARSE_OPTIMAL_PARSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/rlz/parse/cheapest_steps.h"
#include "codecs/rlz/parse/copy_finder.h"
#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/match_length.h"
#include "codecs/rlz/parse/parser.h"
#include "codecs/rlz/parse/recent_distances.h"
#include "codecs/rlz/parse/sequence.h"
#include "codecs/rlz/parse/sequence_prices.h"

namespace quire {

// All of these affect size and speed.
struct OptimalParserOptions {
  CopyFinderOptions finder;
  // How often the block is parsed: the prices of each round are those of the
  // parse before it, and of the first those of typical text. At least 1.
  uint32_t rounds = 2;
  // All rounds but the last only count what is used. Those may pass over a
  // position if the next is dearer by less than this, in 1/256 bit.
  int32_t draft_tolerance = 1024;
  // Copies that are at least this long are cut only where they are of
  // cut_length_max bytes or less, or where a better copy begins ...
  uint32_t long_length = 48;
  uint32_t cut_length_max = 32;
  // ... and after that many positions inside of one, all are passed over until
  // a better one begins or it ends.
  uint32_t settled_after = 64;
};

// Finds the cheapest parse of a block, given what each step costs: for each
// position, from the front, the cheapest way to reach it.
//
// It is not quite the cheapest: a position remembers the recent distances of
// its cheapest way only, and long copies are not cut everywhere.
// Memory is kept from block to block. Thread-compatible.
class OptimalParser final : public Parser {
 public:
  explicit OptimalParser(const OptimalParserOptions& options)
      : options_(options), finder_(options.finder) {}

  void Parse(const DictionaryIndex& index, const BlockText& text,
             uint32_t piece_size, SequenceList& sequences) override;

 private:
  // What follows from the cheapest way to a position, once that is known.
  struct State {
    // Literals since the last copy.
    uint32_t literal_run = 0;
    RecentDistances recent;
  };

  // Something that can be copied: up to `end`, or for any length up to
  // `length`.
  struct Source {
    uint32_t end = 0;
    uint32_t distance = 0;
  };

  struct Choice {
    uint32_t length = 0;
    uint32_t distance = 0;
    // Of the distance.
    int32_t price = 0;
  };

  // Where the parser is inside a long copy.
  struct LongCopy {
    uint32_t end = 0;
    uint32_t entered = 0;
    // Where the first copy begins that goes on farther; `end` if none does.
    uint32_t next_begin = 0;
  };

  // Sources are dropped beyond that many: the nearest, which end first.
  static constexpr size_t kSourceCountMax = 16;
  static constexpr size_t kChoiceCountMax = kSourceCountMax + 3;

  SequenceStatistics GuessStatistics() const;
  SequenceStatistics CountParse(const SequenceList& sequences,
                                size_t first) const;
  void ParsePiece(int32_t tolerance);
  bool IsHopeless(uint32_t position, int32_t tolerance) const;
  void Settle(uint32_t position);
  void EnterCopies(uint32_t position);
  void AddSource(const Source& source);
  void ListChoices(uint32_t position);
  void AddRecentChoices(uint32_t position);
  uint32_t RecentLength(uint32_t position, uint32_t distance);
  uint32_t TryChoices(uint32_t position);
  uint32_t TryLongChoices(uint32_t position, uint32_t longest);
  void FindNextBegin(uint32_t position, uint32_t end);
  void TryAllLengths(uint32_t position, uint32_t length_max);
  void TryLiteral(uint32_t position);
  void TryLength(uint32_t position, uint32_t length, const Choice& choice);
  void EmitPiece(SequenceList& sequences) const;

  const OptimalParserOptions options_;
  CopyFinder finder_;
  SequencePrices prices_;
  const BlockText* text_ = nullptr;
  // The piece that is parsed.
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  // The recent distances at its begin.
  RecentDistances recent_;
  // By position in the piece.
  CheapestSteps steps_;
  std::vector<State> states_;
  // What can be copied, nearest first; farther ones go on longer.
  std::vector<Source> sources_;
  // Copies that begin before are, or were, among sources_.
  uint32_t entered_ = 0;
  LongCopy long_copy_;
  // What can be copied at a position: by recent distances, then the others.
  std::array<Choice, kChoiceCountMax> choices_;
  size_t recent_choice_count_ = 0;
  size_t choice_count_ = 0;
  // Ends of the last copies by recent distances, not to compare them again.
  std::array<Source, 4> recent_sources_;
  size_t recent_source_next_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_OPTIMAL_PARSER_H_
