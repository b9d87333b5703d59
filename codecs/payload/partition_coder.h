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

// Codes the partitions of a block independently of each other; the last one may
// have another form.
// Thread-safe, given one scratch per thread.
class PartitionCoder {
 public:
  using Scratch = BlockCodec::Scratch;

  virtual ~PartitionCoder() = default;

  // Upper bound on Encode()'s result for any partition of `raw_size` bytes.
  virtual size_t StoredSizeMax(size_t raw_size) const = 0;

  virtual std::unique_ptr<Scratch> NewScratch() const = 0;

  // See BlockCodec::MemoryBytes().
  virtual size_t MemoryBytes() const = 0;

  // Writes to the front of `stored` and returns the number of bytes, at least
  // one. Deterministic.
  // REQUIRES: !raw.empty(), stored.size() >= StoredSizeMax(raw.size()).
  // Errors: as BlockCodec::Encode().
  virtual absl::StatusOr<size_t> Encode(ByteView raw, bool is_last,
                                        MutableByteView stored,
                                        Scratch& scratch) const = 0;

  // Decodes a whole partition of `raw_size` bytes to the front of `output`. May
  // overwrite the rest of `output`; space there makes it faster. `stored` is
  // untrusted, and must hold this partition and nothing else.
  // REQUIRES: output.size() >= raw_size.
  // Errors: as BlockCodec::Decode().
  virtual absl::Status Decode(ByteView stored, bool is_last, size_t raw_size,
                              MutableByteView output,
                              Scratch& scratch) const = 0;

  // Decodes bytes [offset, offset + out.size()) of a partition. May stop at
  // their end, and then misses damage after it.
  // REQUIRES: offset + out.size() <= raw_size.
  // Errors: as Decode().
  virtual absl::Status DecodeRange(ByteView stored, bool is_last,
                                   size_t raw_size, size_t offset,
                                   MutableByteView out,
                                   Scratch& scratch) const = 0;
};

// Codes each partition as a piece of a DEFLATE stream. A piece ends with a full
// flush, the last one with the stream's final block. Together they are one
// stream, which any zlib inflates.
std::unique_ptr<PartitionCoder> MakeDeflatePartitions(int level, CodecUse use);

// Codes each partition as `codec` stores a block. REQUIRES: codec != nullptr.
std::unique_ptr<PartitionCoder> MakeCodecPartitions(
    std::unique_ptr<const BlockCodec> codec);

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_PARTITION_CODER_H_
