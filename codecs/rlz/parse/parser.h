// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_PARSER_H_
#define QUIRE_CODECS_RLZ_PARSE_PARSER_H_

#include <cstdint>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/match_length.h"
#include "codecs/rlz/parse/sequence.h"

namespace quire {

// Decides which parts of a block are copied, and their sources. The result
// depends on the text, the dictionary and the parser's options, not on earlier
// blocks. Memory is reused from block to block. Thread-compatible.
class Parser {
 public:
  virtual ~Parser() = default;

  // Writes the parse of `text` to `sequences`. The block is parsed in pieces of
  // `piece_size` bytes; the last may be shorter. Each ends with a step without
  // a copy, and no copy crosses into the next.
  // REQUIRES: `index` is that of the text's dictionary; piece_size > 0; the
  // block is not empty.
  virtual void Parse(const DictionaryIndex& index, const BlockText& text,
                     uint32_t piece_size, SequenceList& sequences) = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_PARSER_H_
