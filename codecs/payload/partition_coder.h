// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_PAYLOAD_PARTITION_CODER_H_
#define QUIRE_CODECS_PAYLOAD_PARTITION_CODER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

// Codes one partition of a block without regard to the others, but for this:
// the last one may be stored in another way.
// Thread-safe, given a scratch of its own for each thread.
class PartitionCoder {
 public:
  using Scratch = BlockCodec::Scratch;

  virtual ~PartitionCoder() = default;

  // An upper bound of Encode()'s result for any partition of `raw_size` bytes.
  virtual size_t StoredSizeMax(size_t raw_size) const = 0;

  virtual std::unique_ptr<Scratch> NewScratch() const = 0;

  // As BlockCodec::MemoryBytes().
  virtual size_t MemoryBytes() const = 0;

  // Returns how many bytes it wrote to the front of `stored`; at least one.
  // Deterministic.
  // REQUIRES: !raw.empty(), stored.size() >= StoredSizeMax(raw.size()).
  // Errors: as BlockCodec::Encode().
  virtual absl::StatusOr<size_t> Encode(ByteView raw, bool is_last,
                                        MutableByteView stored,
                                        Scratch& scratch) const = 0;

  // Decodes all of a partition of `raw_size` bytes to the front of `output`;
  // what is behind it there may be overwritten, and helps to be fast. `stored`
  // is untrusted, and must be this partition and nothing else.
  // REQUIRES: output.size() >= raw_size.
  // Errors: as BlockCodec::Decode().
  virtual absl::Status Decode(ByteView stored, bool is_last, size_t raw_size,
                              MutableByteView output,
                              Scratch& scratch) const = 0;

  // Decodes bytes [offset, offset + out.size()) of it; may stop where they end,
  // and then misses damage behind them.
  // REQUIRES: offset + out.size() <= raw_size.
  // Errors: as Decode().
  virtual absl::Status DecodeRange(ByteView stored, bool is_last,
                                   size_t raw_size, size_t offset,
                                   MutableByteView out,
                                   Scratch& scratch) const = 0;
};

// Each partition as a DEFLATE stream's piece: it ends with a full flush, the
// last one with the stream's final block. In a row they are one stream, which
// any zlib inflates.
std::unique_ptr<PartitionCoder> MakeDeflatePartitions(int level, CodecUse use);

// Each partition as `codec` stores a block. REQUIRES: codec != nullptr.
std::unique_ptr<PartitionCoder> MakeCodecPartitions(
    std::unique_ptr<const BlockCodec> codec);

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_PARTITION_CODER_H_
