// SPDX-License-Identifier: GPL-3.0-or-later
//
// The plan of one answer: which parts of which blocks it is made of, in which
// encoding, and how much memory it holds. Made once for each request, chunk or
// item; whatever reads, counts or encodes looks at the plan and not at the
// archive.
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

// The form in which blocks are fetched.
enum class BlockForm {
  kText,
  // As MakeStoredReader() says.
  kStored,
};

// A range of one part of a block. Blocks are fetched as text part by part, as
// the codec decodes them; stored blocks have one part.
struct PlannedSlice {
  BlockAddress block;
  uint32_t part = 0;
  // Range of the part's text.
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
  // Size of the part's text, and what the fetched part takes in memory.
  uint32_t part_size_bytes = 0;
  uint32_t fetched_size_bytes = 0;
  // Index of the next slice of the same part; 0 if there is none.
  uint32_t next_repeat = 0;
  // An earlier slice is of the same part: one fetch serves both.
  bool is_repeat = false;
  // The text is copied as soon as it is there, and the block let go.
  bool is_copied = false;
};

struct AnswerPlan {
  v1::WireEncoding encoding = v1::WIRE_ENCODING_IDENTITY;
  BlockForm form = BlockForm::kText;
  // In logical order.
  std::vector<PlannedSlice> slices = {};
  // Text of all slices, and of those that are copied.
  uint64_t size_bytes = 0;
  uint64_t copied_text_bytes = 0;

  // Memory that the answer holds from its fetch until gRPC has sent it, without
  // what describes it: blocks that it refers to, each once, and everything
  // else.
  uint64_t block_bytes = 0;
  uint64_t own_bytes = 0;
  // The answer is pieces of its blocks, one for each slice, so that several
  // answers may share a block in memory.
  bool is_shareable = false;
  // Upper bound on what AnswerBytes copies of a shareable answer.
  uint64_t serialised_bytes = 0;

  uint64_t memory_bytes() const { return block_bytes + own_bytes; }
};

// The first of the encodings that the archive's answers can have; identity if
// there is none.
v1::WireEncoding ChooseEncoding(
    const google::protobuf::RepeatedField<int>& accepted,
    const ServedArchive& archive);

// Plans the answer of `slices`. Slices that are not stored in a row are
// answered in identity, whatever `encoding` is, and small ones are copied out
// of their blocks.
AnswerPlan PlanAnswer(const ServedArchive& archive,
                      std::span<const BlockSlice> slices,
                      v1::WireEncoding encoding);
// Plans the answer of a range. REQUIRES: `range` lies within the archive.
AnswerPlan PlanAnswer(const ServedArchive& archive, LogicalRange range,
                      v1::WireEncoding encoding);
// Plans an answer of at most `memory_bytes_max` that begins where `range` does:
// at least one block of it, and otherwise only whole blocks before the end of
// the range, so that no block is needed twice.
AnswerPlan PlanChunk(const ServedArchive& archive, LogicalRange range,
                     bool is_last, v1::WireEncoding encoding,
                     uint64_t memory_bytes_max);

// Upper bound on memory_bytes() + serialised_bytes of any range of
// `size_bytes`; known without a plan.
uint64_t AnswerBytesMax(const ServedArchive& archive, uint64_t size_bytes,
                        v1::WireEncoding encoding);
// Upper bound on memory_bytes() of any part of one block.
uint64_t BlockAnswerBytesMax(const ServedArchive& archive,
                             v1::WireEncoding encoding);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_PLAN_H_
