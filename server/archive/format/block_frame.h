// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block as it lies in a segment (FORMAT.md, "Block frame"): a word that says
// what the payload is, the payload, a checksum.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"

namespace quire {

inline constexpr size_t kFrameWordSizeBytes = 4;
// What a frame has besides its payload.
inline constexpr size_t kFrameOverheadSizeBytes = kFrameWordSizeBytes + 8;
inline constexpr uint32_t kPayloadSizeBytesMax = (uint32_t{1} << 24) - 1;

struct FrameWord {
  uint32_t payload_size_bytes = 0;
  // As in Payload.
  bool is_raw = false;
  bool has_recipe = false;
};

// Errors: DataLoss  there is no payload, a reserved bit is set, or the bits
//                   exclude each other.
absl::StatusOr<FrameWord> ParseFrameWord(uint32_t word);

// Where a block belongs; its checksum is seeded with it, so that a block in the
// wrong place shows.
struct FramePlace {
  uint32_t segment_number = 0;
  uint64_t block_index = 0;
};

// Makes the frame of a block in `frame`, replacing its contents. The text
// itself is stored if `payload` is raw, empty, or not smaller than `raw`.
// Returns the frame's checksum. REQUIRES: 0 < raw.size() <= kBlockSizeBytesMax.
uint64_t EncodeFrame(FramePlace place, ByteView raw, const Payload& payload,
                     std::vector<uint8_t>& frame);

// Checks a frame, which is untrusted, and returns its checksum.
// Errors: DataLoss  it is not the frame of this place, or is damaged.
absl::StatusOr<uint64_t> CheckFrame(FramePlace place, ByteView frame);

// Takes a frame apart: with its checksum behind it or, if `is_cut`, without.
// Errors: DataLoss  its word and its size do not agree, or the payload cannot
//                   be that of a block of `raw_size_bytes`.
absl::StatusOr<Payload> ParseFrame(ByteView frame, size_t raw_size_bytes,
                                   bool is_cut = false);

// Decodes a frame to `raw`, which has the size of the block's text.
// REQUIRES: CheckFrame() took it.
// Errors: DataLoss  its payload is not `raw.size()` bytes of text.
absl::Status DecodeFrame(ByteView frame, MutableByteView raw,
                         const PayloadCodec& codec,
                         PayloadCodec::Scratch& scratch);

// Folds the next block's checksum into that of all blocks before it, which is 0
// at first.
uint64_t ExtendBlockChain(uint64_t chain, uint64_t block_checksum);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_BLOCK_FRAME_H_
