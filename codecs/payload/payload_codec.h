// SPDX-License-Identifier: Apache-2.0
//
// The payload of a block: the text itself, or
//
//   [recipe]  if the block's compressed members are stored as their text
//             (recipe.h): how to reproduce them
//   [sizes]   of all partitions but the last, as varints (partition_table.h)
//   partitions of the coded text, each coded without regard to the others
//
// The coded text is the block's text, inflated if there is a recipe. It is
// divided into partitions of equal size, the last one shorter: this is the
// partition-aware extraction of "Random Read Speedup in Compression Enabled
// Storage Systems", section 3. A block of one partition and without recipe is
// exactly what its codec makes of it. CODECS.md states the bytes.
//
// Everything above codecs/ reads and writes blocks through PayloadCodec.
#ifndef QUIRE_CODECS_PAYLOAD_PAYLOAD_CODEC_H_
#define QUIRE_CODECS_PAYLOAD_PAYLOAD_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/block_codec.h"
#include "codecs/payload/partition_coder.h"
#include "codecs/payload/recipe.h"

namespace quire {

struct Payload {
  ByteView bytes;
  // The bytes are the block's text.
  bool is_raw = false;
  // The bytes begin with a recipe. Not together with is_raw.
  bool has_recipe = false;
};

// Upper bound, in bytes, on the memory of a PayloadCodec's scratch that has
// only decoded blocks of at most `block_size_bytes_max` of text, none of them
// with a recipe unless `has_recipes`.
size_t DecodeScratchBytesMax(CodecId codec, size_t block_size_bytes_max,
                             bool has_recipes);

// Upper bound on DecodeScratchBytesMax() for every codec and block.
inline constexpr size_t kDecodeScratchBytesMax = size_t{13} << 20;

// Thread-safe, given one scratch per thread.
class PayloadCodec {
 public:
  using Scratch = BlockCodec::Scratch;

  // `partition_size_bytes` is 0 for a single partition, else
  // IsPartitionSize(). Encoding inflates members of at most
  // `inflated_text_size_max` bytes of text. If it is 0, encoding inflates none
  // and decoding refuses recipes; otherwise decoding does not depend on it.
  PayloadCodec(const CodecInfo& info,
               std::unique_ptr<const PartitionCoder> coder,
               uint32_t partition_size_bytes, size_t inflated_text_size_max);

  const CodecInfo& info() const { return info_; }

  uint32_t partition_size_bytes() const { return partition_size_; }

  // Lets Encode() inflate these members without searching for their parameters
  // and reproducing them, so that only the caller's comparison of the decoded
  // block shows a wrong one. REQUIRES: no scratch has encoded; `known` outlives
  // the codec.
  void SetKnownMembers(const KnownDeflateMembers* known) { known_ = known; }

  // Upper bound on the size of Encode()'s result, in bytes.
  size_t StoredSizeMax(size_t raw_size) const;

  std::unique_ptr<Scratch> NewScratch() const;

  // See BlockCodec::MemoryBytes().
  size_t MemoryBytes() const;

  // Encodes a block. The result is `raw` itself where encoding does not make it
  // smaller, else a view into `stored`. With members, it is the smaller of the
  // block as it is and inflated; where inflating takes less than
  // three quarters of the members' size, only that is tried.
  // REQUIRES, Errors: as BlockCodec::Encode().
  absl::StatusOr<Payload> Encode(ByteView raw, MutableByteView stored,
                                 Scratch& scratch) const;

  // Decodes a whole block, or bytes [offset, offset + out.size()) of a block of
  // `raw_size` bytes. A range decodes the partitions and reproduces the members
  // that it touches, and no others; damage elsewhere is not noticed. `payload`
  // is untrusted. On failure the contents of the output are unspecified.
  // REQUIRES: offset + out.size() <= raw_size <= kBlockSizeBytesMax.
  // Errors: as BlockCodec::Decode().
  absl::Status Decode(const Payload& payload, MutableByteView raw,
                      Scratch& scratch) const;
  absl::Status DecodeRange(const Payload& payload, size_t raw_size,
                           size_t offset, MutableByteView out,
                           Scratch& scratch) const;

  // Decodes several parts of a block, which need not be adjacent. Like a
  // DecodeRange() of each, but reproduces a member that several of them touch
  // only once.
  // REQUIRES: as DecodeRange(), for each part.
  // Errors: as BlockCodec::Decode().
  absl::Status DecodeParts(const Payload& payload, size_t raw_size,
                           std::span<const BlockPart> parts,
                           Scratch& scratch) const;

  // Decodes a block to its coded text: its text with the members of its recipe
  // inflated, none of which is reproduced. Without a recipe, `recipe` has no
  // members afterwards.
  // REQUIRES: raw_size <= kBlockSizeBytesMax.
  // Errors: as BlockCodec::Decode().
  absl::Status DecodeInflated(const Payload& payload, size_t raw_size,
                              std::vector<uint8_t>& text, Recipe& recipe,
                              Scratch& scratch) const;

  // Returns the range of text that is decoded together with `range`, and that a
  // cache may therefore keep: whole partitions of the block's text; all of it
  // without partitions. An empty range touches none.
  TextRange DecodedRange(size_t raw_size, TextRange range) const;

 private:
  struct PayloadScratch;

  // Errors: DataLoss  the payload has a recipe, and no block may have one.
  absl::Status CheckRecipe(const Payload& payload) const;
  // Returns the payload with the members of `raw` inflated; unset if there are
  // none. Valid until the next call.
  absl::StatusOr<std::optional<ByteView>> EncodeInflated(
      ByteView raw, PayloadScratch& scratch) const;
  absl::StatusOr<size_t> EncodeText(ByteView text, MutableByteView stored,
                                    Scratch& of_coder) const;
  size_t EncodedTextSizeMax(size_t text_size) const;
  absl::Status DecodeText(ByteView stored, size_t text_size, size_t offset,
                          MutableByteView out, Scratch& of_coder) const;
  absl::Status DecodeWithRecipe(ByteView stored, size_t raw_size,
                                std::span<const BlockPart> parts,
                                PayloadScratch& scratch) const;

  const CodecInfo& info_;
  const std::unique_ptr<const PartitionCoder> coder_;
  const uint32_t partition_size_;
  const size_t inflated_text_size_max_;
  const KnownDeflateMembers* known_ = nullptr;
};

// Returns the payload codec of `spec`. Errors: as MakeBlockCodec().
absl::StatusOr<std::unique_ptr<PayloadCodec>> MakePayloadCodec(
    const CodecSpec& spec, std::shared_ptr<const CodecContext> context,
    CodecUse use, size_t inflated_text_size_max = 0);

// Same, with a codec that exists already.
std::unique_ptr<PayloadCodec> MakePayloadCodec(
    std::unique_ptr<const BlockCodec> codec, const CodecSpec& spec,
    size_t inflated_text_size_max = 0);

// Returns the bytes to append to a stored partition so that a decoder of the
// codec accepts it as a whole block. Empty, except for zlib, whose final block
// only the last partition has. Always valid.
ByteView PartitionTail(CodecId codec, bool is_last);

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_PAYLOAD_CODEC_H_
