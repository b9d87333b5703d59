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
  CopyFinderOptions finder = {};
  // Minimum number of parses of the block. Prices of a round come from the
  // previous parse; those of the first from typical text. At least 1.
  uint32_t rounds = 2;
  // Maximum; between the two, rounds are added while the parse costs less than
  // predicted by its prices by at least this, in 1/1024.
  uint32_t rounds_max = 5;
  uint32_t surprise_min = 10;
  // All rounds except the last only collect statistics. They may skip a
  // position if the next is more expensive by less than this, in 1/256 bit.
  int32_t draft_tolerance = 1024;
  // In the last round, rival paths (CheapestSteps) are continued if they cost
  // at most this much more than the cheapest; 0: none are.
  int32_t rival_margin = 3072;
  // Copies of this length or more are cut only to cut_length_max bytes or less,
  // or where a better copy begins ...
  uint32_t long_length = 80;
  uint32_t cut_length_max = 64;
  // ... and after this many positions inside one, all are skipped until a
  // better one begins or it ends.
  uint32_t settled_after = 64;
  // The same in all rounds except the last, if less.
  uint32_t draft_cut_length_max = 32;
  uint32_t draft_settled_after = 64;
};

// Finds the cheapest parse of a block for given prices of steps: for each
// position, from the front, the cheapest path to it.
//
// An approximation: a position remembers only the recent distances of its
// cheapest path and one rival, and long copies are not cut everywhere. Memory
// is reused from block to block. Thread-compatible.
class OptimalParser final : public Parser {
 public:
  explicit OptimalParser(const OptimalParserOptions& options)
      : options_(options), finder_(options.finder) {}

  void Parse(const DictionaryIndex& index, const BlockText& text,
             uint32_t piece_size, SequenceList& sequences) override;

  // The two parts of Parse(), each about half of its time: only the first reads
  // the index. `text` must outlive both.
  void FindCopies(const DictionaryIndex& index, const BlockText& text);

  // REQUIRES: FindCopies() was called for the text.
  void ParseFound(uint32_t piece_size, SequenceList& sequences);

 private:
  // State after the cheapest path to a position, once final.
  struct State {
    // Literals since the last copy.
    uint32_t literal_run = 0;
    RecentDistances recent;
  };

  // A source of copies: up to `end`, or for any length up to `length`.
  struct Source {
    uint32_t end = 0;
    uint32_t distance = 0;
  };

  struct Choice {
    uint32_t length = 0;
    uint32_t distance = 0;
    // Price of the distance.
    int32_t price = 0;
  };

  // Position of the parser inside a long copy.
  struct LongCopy {
    uint32_t end = 0;
    uint32_t entered = 0;
    // Start of the first copy that extends farther; `end` if there is none.
    uint32_t next_begin = 0;
  };

  // Maximum number of sources: further ones replace the nearest, which end
  // first. Of leads: the earliest.
  static constexpr size_t kSourceCountMax = 16;
  static constexpr size_t kLeadCountMax = 8;
  static constexpr size_t kChoiceCountMax = kSourceCountMax + 3;

  SequenceStatistics GuessStatistics() const;
  SequenceStatistics CountParse(const SequenceList& sequences,
                                size_t first) const;
  bool IsSurprising(const SequenceStatistics& statistics) const;
  void ParseDraft();
  void ParseFinal();
  template <bool kRivals>
  void ParsePiece(int32_t tolerance);
  bool IsHopeless(uint32_t position, int32_t tolerance) const;
  void Settle(uint32_t position);
  State StateAfterStep(uint32_t at, uint32_t path) const;
  void EnterCopies(uint32_t position);
  void AddSource(const Source& source);
  void AddLead(const Source& source);
  void ListChoices(uint32_t position);
  void AddRecentChoices(uint32_t position);
  uint32_t RecentLength(uint32_t position, uint32_t distance);
  template <bool kRivals>
  uint32_t TryChoices(uint32_t position);
  template <bool kRivals>
  uint32_t TryLongChoices(uint32_t position, uint32_t longest);
  void FindNextBegin(uint32_t position, uint32_t end);
  template <bool kRivals>
  void TryAllLengths(uint32_t position, uint32_t length_max);
  template <bool kRivals>
  void TryLiteral(uint32_t position, uint32_t path);
  template <bool kRivals>
  void TryLength(uint32_t position, uint32_t length, const Choice& choice);
  void TryLeads(uint32_t position);
  void ContinueRival(uint32_t position);
  void EmitPiece(SequenceList& sequences) const;

  const OptimalParserOptions options_;
  CopyFinder finder_;
  SequencePrices prices_;
  const BlockText* text_ = nullptr;
  // Those of the options for this round.
  uint32_t cut_length_max_ = 0;
  uint32_t settled_after_ = 0;
  // The current piece.
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  // The recent distances at its start.
  RecentDistances recent_;
  // By position in the piece, the states also by path.
  CheapestSteps steps_;
  std::array<std::vector<State>, 2> states_;
  // Current sources, nearest first; farther ones extend farther.
  std::vector<Source> sources_;
  // Current leads, which are not among sources_.
  std::vector<Source> leads_;
  // Copies that begin before this are, or were, among sources_
  // or leads_.
  uint32_t entered_ = 0;
  LongCopy long_copy_;
  // Choices at a position: recent distances, then the others.
  std::array<Choice, kChoiceCountMax> choices_;
  size_t recent_choice_count_ = 0;
  size_t choice_count_ = 0;
  // Ends of the last copies by recent distances, to avoid comparing them again.
  std::array<Source, 4> recent_sources_;
  size_t recent_source_next_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_OPTIMAL_PARSER_H_
