// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_READ_WIRE_ENCODER_H_
#define QUIRE_SERVER_SERVICE_READ_WIRE_ENCODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "server/service/read/answer.h"
#include "server/service/read/answer_plan.h"
#include "server/storage/fetch/buffer_pool.h"

namespace quire {

// Returns the size of the output buffer for a range of `size_bytes` in FSST. An
// answer that would take more is sent in identity.
uint64_t FsstBufferSizeMax(uint64_t size_bytes);

// Encodes the answer of a range from its blocks:
//
//   identity  references text; decodes a block stored in FSST codes
//   FSST      references a block stored in codes of the archive's table, from
//             the first symbol of the range to its last; encodes text once
//             into the memory that gRPC sends from. Uses identity instead if
//             the result is no smaller than the text
//   stored    references the payloads of the blocks unchecked
//
// `pieces` are those of the plan's slices.
// REQUIRES: the archive has a symbol table if the plan's encoding is FSST.
// Errors: DataLoss (BLOCK_DAMAGED)  stored codes are malformed.
absl::StatusOr<Answer> EncodeAnswer(BufferPool& buffers,
                                    const ServedArchive& archive,
                                    const AnswerPlan& plan,
                                    std::vector<BlockPiece> pieces);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_WIRE_ENCODER_H_
