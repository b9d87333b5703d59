// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block as a segment stores it (FORMAT.md, "Block frame"): a word that
// describes the payload, the payload, a checksum.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

inline constexpr size_t kFrameWordSizeBytes = 4;
// Size of a frame without its payload.
inline constexpr size_t kFrameOverheadSizeBytes = kFrameWordSizeBytes + 8;
inline constexpr uint32_t kPayloadSizeBytesMax = (uint32_t{1} << 24) - 1;

struct FrameWord {
  uint32_t payload_size_bytes = 0;
  // See Payload.
  bool is_raw = false;
  bool has_recipe = false;
};

// Errors: DataLoss  there is no payload, a reserved bit is set, or the bits
//                   exclude each other.
absl::StatusOr<FrameWord> ParseFrameWord(uint32_t word);
// Same without a message, for searches; unset on an error.
std::optional<FrameWord> FindFrameWord(uint32_t word);

// The position of a block. It seeds the block's checksum, so that a block at a
// wrong position is detected.
struct FramePlace {
  uint32_t segment_number = 0;
  uint64_t block_index = 0;
};

// Returns what is stored of a block: the text itself if `payload` is raw,
// empty, or not smaller than `raw`.
Payload StoredPayload(ByteView raw, const Payload& payload);

// Replaces the contents of `frame` by the frame of a block, whose payload is a
// StoredPayload(). Returns the frame's checksum.
// REQUIRES: 0 < payload.bytes.size() <= kBlockSizeBytesMax.
uint64_t EncodeFrame(FramePlace place, const Payload& payload,
                     std::vector<uint8_t>& frame);

inline uint64_t EncodeFrame(FramePlace place, ByteView raw,
                            const Payload& payload,
                            std::vector<uint8_t>& frame) {
  return EncodeFrame(place, StoredPayload(raw, payload), frame);
}

// Checks a frame, which is untrusted, and returns its checksum.
// Errors: DataLoss  not the frame of this block, or damaged.
absl::StatusOr<uint64_t> CheckFrame(FramePlace place, ByteView frame);
// True if CheckFrame() would succeed; makes no message.
bool IsFrameOf(FramePlace place, ByteView frame);

// Returns the payload of a frame; with `is_cut` the frame lacks its checksum.
// Errors: DataLoss  its word and its size do not agree, or the payload cannot
//                   be that of a block of `raw_size_bytes`.
absl::StatusOr<Payload> ParseFrame(ByteView frame, size_t raw_size_bytes,
                                   bool is_cut = false);

// Decodes a frame to `raw`, which has the size of the block's text.
// REQUIRES: CheckFrame() succeeded.
// Errors: DataLoss  its payload is not `raw.size()` bytes of text.
absl::Status DecodeFrame(ByteView frame, MutableByteView raw,
                         const PayloadCodec& codec,
                         PayloadCodec::Scratch& scratch);

// Returns the chain extended by the next block's checksum; the first chain is
// 0.
uint64_t ExtendBlockChain(uint64_t chain, uint64_t block_checksum);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_
