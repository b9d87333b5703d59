// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a range to the bytes of its answer, in whichever encoding.
#ifndef QUIRE_SERVER_SERVICE_ANSWER_READ_H_
#define QUIRE_SERVER_SERVICE_ANSWER_READ_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/catalog.h"
#include "server/service/range_read.h"

namespace quire {

// What one range is answered with.
struct Answer {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  // `data` of the answer, in a row.
  std::vector<BlockPiece> pieces;
  // Unset for identity.
  std::optional<v1::EncodingDetails> details;

  uint64_t data_size_bytes() const;
};

// The first of the encodings that the archive's answers can have, identity if
// there is none. An answer in FSST or stored blocks may still come in identity:
// where it is empty, or would not be smaller in FSST.
v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedArchive& archive);

// The most memory in bytes that an answer holds from its fetch until gRPC has
// sent it: whole blocks, however little of each is wanted, and what is made of
// them.
uint64_t AnswerMemoryBytes(const ServedArchive& archive,
                           const std::vector<BlockSlice>& slices,
                           v1::WireEncoding encoding);

// The same for any range of so many bytes, rounded up.
uint64_t AnswerMemoryBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                              v1::WireEncoding encoding);

// The same for any one block, whole or in part. What is stored may be larger
// than its text, though no builder makes such a block.
uint64_t BlockAnswerMemoryBytes(const ServedArchive& archive,
                                v1::WireEncoding encoding);

// Whether answers are made of nothing but the blocks themselves, which then may
// belong to several answers: pieces of them, one for each slice.
bool AnswersAreBlocks(const ServedArchive& archive, v1::WireEncoding encoding);

// What one of those blocks takes, in bytes.
uint64_t BlockMemoryBytes(const ServedArchive& archive, BlockAddress block,
                          v1::WireEncoding encoding);

// Reads `slices` and makes the answer of them. Short work is done on the thread
// that the last block came on, which is the calling one where all are cached;
// from there long work goes to the decode pool.
// `done` is called exactly once, perhaps before this returns; its errors are
// those of RangeRead. What is returned may be null, and is for
// RangeRead::Cancel(). With a `bundle`, fetches begin with its Start().
// `store` must outlive the read.
using AnswerDone = std::function<void(absl::StatusOr<Answer>)>;
std::shared_ptr<RangeRead> StartAnswer(
    BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
    std::vector<BlockSlice> slices, v1::WireEncoding encoding, Asker asker,
    AnswerDone done, FetchBundle* bundle = nullptr);

// Fills in the fields that tell how `data` came to be, in any of the messages
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

#endif  // QUIRE_SERVER_SERVICE_ANSWER_READ_H_
