// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_LAZY_PARSER_H_
#define QUIRE_CODECS_RLZ_PARSE_LAZY_PARSER_H_

#include <cstdint>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/hash_chains.h"
#include "codecs/rlz/parse/match_length.h"
#include "codecs/rlz/parse/parser.h"
#include "codecs/rlz/parse/sequence.h"

namespace quire {

// Both affect size and speed.
struct LazyParserOptions {
  // Maximum number of earlier positions of the block to compare.
  uint32_t chain_depth_max = 80;
  // Positions searched for a better copy before one is taken.
  uint32_t lookahead = 2;
};

// Parses a block from front to back. At each position it chooses the copy that
// saves most, by an estimate in bits, unless one of the next positions has a
// better one. Memory is reused from block to block. Thread-compatible.
class LazyParser final : public Parser {
 public:
  explicit LazyParser(const LazyParserOptions& options) : options_(options) {}

  void Parse(const DictionaryIndex& index, const BlockText& text,
             uint32_t piece_size, SequenceList& sequences) override;

 private:
  const LazyParserOptions options_;
  BlockHashChains chains_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_LAZY_PARSER_H_
