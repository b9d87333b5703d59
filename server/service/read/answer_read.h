// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a range to the bytes of its answer, in whichever encoding.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/catalog/catalog.h"
#include "server/service/read/answer.h"
#include "server/service/read/range_read.h"

namespace quire {

// What the fields of an answer take at most besides its data, the description
// of its document and that of its blocks (EncodingDetails.blocks): tags, sizes,
// range, checksum, hashes.
inline constexpr uint64_t kAnswerFramingSizeBytesMax = 160;

// The first of the encodings that the archive's answers can have, identity if
// there is none. An answer in FSST or stored blocks may still come in identity:
// where it is empty, or would not be smaller in FSST.
v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedArchive& archive);

// The most memory in bytes that the data of an answer holds from its fetch
// until gRPC has sent it: whole blocks, however little of each is wanted, and
// what is made of them. What describes the data comes on top.
// With a layout what keeps the slices counts, too; a block that several of them
// are of, once.
uint64_t AnswerMemoryBytes(const ServedArchive& archive,
                           const std::vector<BlockSlice>& slices,
                           v1::WireEncoding encoding);

// The same for any range of so many bytes, rounded up, that is stored in a row:
// with a layout, a range may take more.
uint64_t AnswerMemoryBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                              v1::WireEncoding encoding);

// The same for any one block, whole or in part. What is stored may be larger
// than its text, though no builder makes such a block.
uint64_t BlockAnswerMemoryBytes(const ServedArchive& archive,
                                v1::WireEncoding encoding);

// Whether answers are made of nothing but the blocks themselves, which then may
// belong to several answers: pieces of them, one for each slice.
bool AnswersAreBlocks(const ServedArchive& archive, v1::WireEncoding encoding);

// What AnswerBytes copies of such an answer at most, which is held in addition
// to the blocks. REQUIRES: AnswersAreBlocks().
uint64_t CopiedBytesMax(const ServedArchive& archive,
                        const std::vector<BlockSlice>& slices,
                        v1::WireEncoding encoding);

// The same for any range of so many bytes, rounded up.
uint64_t CopiedBytesMax(const ServedArchive& archive, uint64_t size_bytes);

// What one of those blocks takes, in bytes.
uint64_t BlockMemoryBytes(const ServedArchive& archive, BlockAddress block,
                          v1::WireEncoding encoding);

// Reads `slices` and makes the answer of them. With a layout, slices that are
// not stored in a row are answered in identity, whatever `encoding` is.
// Encoding and decoding that takes longer than a tenth of a millisecond is done
// on the decode pool; the rest on the thread that the read ends on, which is
// the calling one if all blocks are cached. `done` is called exactly once,
// perhaps before this returns; its errors are those of RangeRead and
// EncodeAnswer(), and ResourceExhausted where an allocation failed, which is
// thrown by nothing here. It must not throw. What is returned may be null, and
// is for RangeRead::Cancel(). With a `bundle`, fetches begin with its Start().
// `store` must outlive the read.
using AnswerDone = std::function<void(absl::StatusOr<Answer>)>;
std::shared_ptr<RangeRead> StartAnswer(
    BlockStore& store, const std::shared_ptr<const ServedArchive>& archive,
    std::vector<BlockSlice> slices, v1::WireEncoding encoding,
    const Requester& requester, AnswerDone done, FetchBundle* bundle = nullptr);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_READ_H_
