// SPDX-License-Identifier: GPL-3.0-or-later
//
// The answer to one range: pieces of blocks.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/catalog.h"
#include "server/storage/base/block_types.h"
#include "server/storage/fetch/buffer_pool.h"

namespace quire {

// Upper bound in bytes on the fields of an answer: tags, sizes, range,
// checksum, hashes. Excludes its data, the description of its document and
// EncodingDetails.blocks.
inline constexpr uint64_t kAnswerFramingSizeBytesMax = 160;

// Bytes computed for one answer. A block, so that they are sent like blocks.
class MadeBytes final : public DecodedBlock {
 public:
  explicit MadeBytes(Buffer buffer) : buffer_(std::move(buffer)) {}

  ByteView bytes() const override { return buffer_.bytes(); }

  MutableByteView mutable_bytes() { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

inline std::shared_ptr<MadeBytes> MakeBytes(BufferPool& buffers,
                                            uint64_t size_bytes) {
  return std::make_shared<MadeBytes>(buffers.Allocate(size_bytes));
}

// A part of a block, which it keeps alive. `offset` is in the block's text
// until the answer is encoded, then in its bytes.
struct BlockPiece {
  BlockPtr block;
  uint32_t offset = 0;
  uint32_t size_bytes = 0;

  ByteView bytes() const { return block->bytes().subspan(offset, size_bytes); }
};

uint64_t SizeBytesOf(const std::vector<BlockPiece>& pieces);

// Returns XXH3 of the concatenated pieces.
uint64_t ChecksumOf(const std::vector<BlockPiece>& pieces);

struct Answer {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  // `data` of the answer, in order.
  std::vector<BlockPiece> pieces;
  // Unset for identity.
  std::optional<v1::EncodingDetails> details;

  uint64_t data_size_bytes() const { return SizeBytesOf(pieces); }
};

// Returns the error of a block as answers state it: BLOCK_DAMAGED,
// DEVICE_FAILED, SERVER_BUSY or CALL_CANCELLED. `more` is added to the metadata
// of a damaged block.
absl::Status ExplainBlockError(const ServedArchive& archive,
                               const absl::Status& status, BlockAddress block,
                               const ErrorMetadata& more = {});

// Sets the fields that describe the encoding of `data`, in any message that has
// them.
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
