// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_DECODE_MEMORY_H_
#define QUIRE_CODECS_DECODE_MEMORY_H_

#include <cstddef>

#include "codecs/block_codec.h"

namespace quire {

// Upper bound, in bytes, on the memory of a BlockCodec::Scratch that has only
// decoded partitions of at most `partition_size_bytes_max` of text.
size_t PartitionScratchBytesMax(CodecId codec, size_t partition_size_bytes_max);

}  // namespace quire

#endif  // QUIRE_CODECS_DECODE_MEMORY_H_
