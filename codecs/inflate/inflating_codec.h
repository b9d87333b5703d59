// SPDX-License-Identifier: Apache-2.0
//
// A codec that stores compressed members inside blocks as their text, which
// another codec then compresses against the dictionary, and makes the same
// compressed bytes again when the block is decoded.
//
// A stored block begins with the number of its members as a varint. With 0, the
// rest is the block in the other codec; otherwise the rest of an InflatedHead
// (inflated_block.h) follows, and then the inflated text in the other codec. A
// text of more than kInflatedPartSize is divided into parts of so many bytes,
// the last of what is left, which the other codec encodes one by one: then the
// stored size of each part but the last precedes them, as a varint.
#ifndef QUIRE_CODECS_INFLATE_INFLATING_CODEC_H_
#define QUIRE_CODECS_INFLATE_INFLATING_CODEC_H_

#include <cstddef>
#include <memory>

#include "codecs/block_codec.h"
#include "codecs/inflate/inflated_block.h"

namespace quire {

// What Scratch takes at most for decoding, in addition to that of the other
// codec. Bytes.
inline constexpr size_t kInflatingScratchSizeMax = size_t{3} << 20;

// `info` is the codec's entry in the registry, `text_codec` the other codec,
// made for the same use. No block becomes larger than with `text_codec` by more
// than one byte. Encoding leaves members of more text than
// `member_text_size_max` as they are; decoding does not depend on it. Scratch
// takes, in addition to that of `text_codec`, kInflatingScratchSizeMax for
// decoding, and for encoding as much again as BlockInflater and the encoded
// text.
std::unique_ptr<BlockCodec> MakeInflatingCodec(
    const CodecInfo& info, std::unique_ptr<BlockCodec> text_codec, CodecUse use,
    size_t member_text_size_max = kInflatedBlockSizeMax);

}  // namespace quire

#endif  // QUIRE_CODECS_INFLATE_INFLATING_CODEC_H_
