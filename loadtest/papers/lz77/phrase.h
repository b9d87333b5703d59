// SPDX-License-Identifier: GPL-3.0-or-later
//
// Phrases of an LZ77 parse in the layout of an LZ4 block: a token byte (high
// half: number of literals, low half: size of the match less the smallest; 15
// continues in bytes of 255), literals, two bytes of distance. The last phrase
// has literals only. The smallest match has 4 bytes in LZ4, and 3 in a DEFLATE
// parse without its Huffman codes.
//
// "Random Read Speedup in Compression Enabled Storage Systems", section 2: a
// phrase there is one literal or one match; here it is a run of literals and
// the next match.
#ifndef QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_H_
#define QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/zlib/text_match.h"

namespace quire {

inline constexpr uint32_t kLz4MatchSizeMin = 4;
inline constexpr uint32_t kDeflateMatchSizeMin = 3;
// Upper bound on texts and stored blocks: 32 bits hold any position with space
// to spare.
inline constexpr size_t kPhraseTextSizeMax = size_t{1} << 30;

// Offsets at which a phrase begins.
struct PhrasePlace {
  uint32_t text_offset = 0;
  uint32_t stored_offset = 0;

  bool operator==(const PhrasePlace&) const = default;
};

struct Phrase {
  uint32_t literal_count = 0;
  // Offset in the stored block.
  uint32_t literal_offset = 0;
  // Both 0 in the last phrase.
  uint32_t match_size = 0;
  uint32_t distance = 0;
  // Offset of the next phrase in the stored block.
  uint32_t next_stored_offset = 0;

  uint32_t text_size() const { return literal_count + match_size; }
};

// A block with all phrases checked, and their offsets. The bytes are borrowed:
// they must outlive it unchanged.
class PhraseBlock {
 public:
  // Walks over all phrases. They must fill `stored` exactly and make
  // `text_size` bytes, each match within the text before it.
  // Errors: DataLoss         otherwise; names the offset.
  //         InvalidArgument  sizes over kPhraseTextSizeMax.
  static absl::StatusOr<PhraseBlock> Check(ByteView stored, size_t text_size,
                                           uint32_t match_size_min);

  // Returns the phrase that begins at `stored_offset`. REQUIRES: one does.
  Phrase Read(uint32_t stored_offset) const;

  ByteView stored() const { return stored_; }

  uint32_t text_size() const { return text_size_; }

  uint32_t match_size_min() const { return match_size_min_; }

  // Offsets of all phrases, in order. A block has at least one.
  std::vector<PhrasePlace> Places() const;

 private:
  PhraseBlock(ByteView stored, uint32_t text_size, uint32_t match_size_min)
      : stored_(stored),
        text_size_(text_size),
        match_size_min_(match_size_min) {}

  ByteView stored_;
  uint32_t text_size_;
  uint32_t match_size_min_;
};

inline Phrase PhraseBlock::Read(uint32_t stored_offset) const {
  const uint8_t* const begin = stored_.data();
  const uint8_t* at = begin + stored_offset;
  const uint32_t token = *at++;
  Phrase phrase;
  phrase.literal_count = token >> 4;
  if (phrase.literal_count == 15) [[unlikely]] {
    uint32_t more = 0;
    do {
      more = *at++;
      phrase.literal_count += more;
    } while (more == 255);
  }
  phrase.literal_offset = static_cast<uint32_t>(at - begin);
  at += phrase.literal_count;
  if (at == begin + stored_.size()) [[unlikely]] {
    phrase.next_stored_offset = static_cast<uint32_t>(stored_.size());
    return phrase;
  }
  phrase.distance = LoadLittleEndian<uint16_t>(at);
  at += 2;
  phrase.match_size = (token & 15) + match_size_min_;
  if ((token & 15) == 15) [[unlikely]] {
    uint32_t more = 0;
    do {
      more = *at++;
      phrase.match_size += more;
    } while (more == 255);
  }
  phrase.next_stored_offset = static_cast<uint32_t>(at - begin);
  return phrase;
}

// Returns a block whose phrases are `matches` and the text between them.
// REQUIRES: matches are in order and within the text, of kDeflateMatchSizeMin
//           bytes or more, at distances of 1 to 65,535.
std::vector<uint8_t> StorePhrases(ByteView text,
                                  const std::vector<TextMatch>& matches);

// Decodes the first out.size() bytes of the text, phrase by phrase.
// REQUIRES: out.size() <= block.text_size().
void DecodePhrases(const PhraseBlock& block, MutableByteView out);

}  // namespace quire

#endif  // QUIRE_LOADTEST_PAPERS_LZ77_PHRASE_H_
