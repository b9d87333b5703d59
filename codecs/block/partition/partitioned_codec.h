// SPDX-License-Identifier: Apache-2.0
//
// Blocks in partitions that are decoded one by one: the partition-aware
// extraction (PEX) of "Random Read Speedup in Compression Enabled Storage
// Systems", section 3. A large block is one read of the device and one entry of
// the indexes, and a short range of it costs no more than a small block would.
//
// The stored block is a head (partition_table.h) and the partitions. zlib-pex
// has pieces of one raw DEFLATE stream, zstd-pex a Zstandard frame each,
// lz4-pex an LZ4 block each, rlz-pex a frame of rlz each.
#ifndef QUIRE_CODECS_BLOCK_PARTITION_PARTITIONED_CODEC_H_
#define QUIRE_CODECS_BLOCK_PARTITION_PARTITIONED_CODEC_H_

#include <cstdint>
#include <memory>

#include "codecs/base/bytes.h"
#include "codecs/block/partition/partition_coder.h"
#include "codecs/block_codec.h"

namespace quire {

// A range is decoded from the begin of its first partition to its own end.
// Damage is seen in the head and in all that is decoded: a range of whole
// partitions is accepted exactly if decoding the whole block would accept them.
//
// `info` is the codec's entry in the registry.
// REQUIRES: IsPartitionSize(partition_size), coder != nullptr.
std::unique_ptr<BlockCodec> MakePartitionedCodec(
    const CodecInfo& info, uint32_t partition_size,
    std::unique_ptr<const PartitionCoder> coder, CodecUse use);

// What is to follow the stored form of a partition, so that it is a block of
// info.partition_codec, which any decoder of that codec decodes without the
// rest: nothing, but of zlib-pex the final block that only the last one has.
// Valid for ever. REQUIRES: info.has_partitions().
ByteView PartitionTail(const CodecInfo& info, bool is_last);

}  // namespace quire

#endif  // QUIRE_CODECS_BLOCK_PARTITION_PARTITIONED_CODEC_H_
