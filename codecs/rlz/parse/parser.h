// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_PARSER_H_
#define QUIRE_CODECS_RLZ_PARSE_PARSER_H_

#include <cstdint>

#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/match_length.h"
#include "codecs/rlz/parse/sequence.h"

namespace quire {

// Decides what of a block is copied, and from where. The result depends on the
// text, the dictionary and the parser's options, not on earlier blocks.
// Memory is kept from block to block. Thread-compatible.
class Parser {
 public:
  virtual ~Parser() = default;

  // Writes the parse of `text` to `sequences`. The block is parsed in pieces of
  // `piece_size` bytes, the last of which may be shorter: each ends with a step
  // that has no copy, and no copy goes on into the next.
  // REQUIRES: `index` is that of the text's dictionary; piece_size > 0; the
  // block is not empty.
  virtual void Parse(const DictionaryIndex& index, const BlockText& text,
                     uint32_t piece_size, SequenceList& sequences) = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_PARSER_H_
