// SPDX-License-Identifier: GPL-3.0-or-later
//
// What one range is answered with.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/bytes.h"
#include "server/storage/base/block_types.h"

namespace quire {

// A part of a block. Keeps the block. Of a block that is not text, what
// RangeRead returns is the place in its text.
struct BlockPiece {
  BlockPtr block;
  uint32_t offset = 0;
  uint32_t size_bytes = 0;

  ByteView bytes() const { return block->bytes().subspan(offset, size_bytes); }
};

uint64_t SizeBytesOf(const std::vector<BlockPiece>& pieces);

// XXH3 of all pieces in a row.
uint64_t ChecksumOf(const std::vector<BlockPiece>& pieces);

struct Answer {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  // `data` of the answer, in a row.
  std::vector<BlockPiece> pieces;
  // Unset for identity.
  std::optional<v1::EncodingDetails> details;

  uint64_t data_size_bytes() const { return SizeBytesOf(pieces); }
};

// Fills in the fields that tell how `data` was encoded, in any of the messages
// that have them.
template <typename Message>
void DescribeData(const Answer& answer, Message& message) {
  message.set_encoding(answer.encoding);
  message.set_checksum(ChecksumOf(answer.pieces));
  if (answer.details.has_value()) {
    *message.mutable_details() = *answer.details;
  }
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_H_
