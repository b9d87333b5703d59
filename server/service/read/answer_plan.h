// SPDX-License-Identifier: GPL-3.0-or-later
//
// Plan of one answer: its slices of blocks, its encoding and its memory.
// Computed once for each request, chunk or item, by one snapshot of what is
// withdrawn. Readers, ledgers and encoders use the plan, not the archive.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_PLAN_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "google/protobuf/repeated_field.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"
#include "server/service/catalog/catalog.h"

namespace quire {

// Form in which blocks are fetched.
enum class BlockForm {
  kText,
  // As MakeStoredReader() returns them.
  kStored,
};

// A range of one part of a block. Blocks are fetched as text by part, the unit
// that the codec decodes. Stored blocks have one part.
struct PlannedSlice {
  BlockAddress block;
  uint32_t part = 0;
  // Range in the part's text.
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
  // Size of the part's text, and memory of the fetched part.
  uint32_t part_size_bytes = 0;
  uint32_t fetched_size_bytes = 0;
  // Index of the next slice of the same part; 0 if there is none.
  uint32_t next_repeat = 0;
  // An earlier slice has the same part: one fetch serves both.
  bool is_repeat = false;
  // The text is copied as soon as it is fetched, and the block released.
  bool is_copied = false;
};

struct AnswerPlan {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  BlockForm form = BlockForm::kText;
  // In logical order.
  std::vector<PlannedSlice> slices = {};
  // Text of all slices, and of the copied ones.
  uint64_t size_bytes = 0;
  uint64_t copied_text_bytes = 0;
  // Parts of the text that are answered as zeros, as in
  // WithdrawnDocuments::ZerosIn(). If there are any, all slices are copied.
  std::vector<AnswerRange> zeros = {};

  // Memory that the answer holds from its fetch until gRPC has sent it, without
  // its description: blocks that it references, each once, and everything else.
  uint64_t block_bytes = 0;
  uint64_t own_bytes = 0;
  // The answer consists of pieces of its blocks, one for each slice. Several
  // answers may then share a block in memory.
  bool is_shareable = false;
  // Upper bound on the bytes that AnswerBytes copies of a shareable answer.
  uint64_t serialised_bytes = 0;

  uint64_t memory_bytes() const { return block_bytes + own_bytes; }
};

// Returns the first encoding in `accepted` that the archive's answers can have;
// identity if there is none, or if documents are withdrawn.
v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedContents& contents);

// Plans the answer of a range, with zeros for withdrawn documents. Slices that
// are not stored contiguously are answered in identity, as is a range of an
// archive with withdrawn documents, whatever `encoding` is; small slices are
// copied out of their blocks.
// REQUIRES: `range` lies within the archive.
AnswerPlan PlanAnswer(const ServedContents& contents, LogicalRange range,
                      v1::WireEncoding encoding);
// Plans an answer of at most `memory_bytes_max` that begins at the start of
// `range`. It has at least one block. Unless it reaches the end of the range it
// has whole blocks only, so that no block is needed twice.
AnswerPlan PlanChunk(const ServedContents& contents, LogicalRange range,
                     bool is_last, v1::WireEncoding encoding,
                     uint64_t memory_bytes_max);
// Plans the answer of slices that need not follow each other in the text.
// REQUIRES: no document is withdrawn.
AnswerPlan PlanSlices(const ServedArchive& archive,
                      std::span<const BlockSlice> slices,
                      v1::WireEncoding encoding);

// Returns an upper bound on memory_bytes() + serialised_bytes of any range of
// `size_bytes`; needs no plan.
uint64_t AnswerBytesMax(const ServedContents& contents, uint64_t size_bytes,
                        v1::WireEncoding encoding);
// Returns an upper bound on memory_bytes() of any part of one block.
uint64_t BlockAnswerBytesMax(const ServedArchive& archive,
                             v1::WireEncoding encoding);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_PLAN_H_
