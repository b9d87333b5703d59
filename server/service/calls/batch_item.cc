// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/batch_item.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/limits/batch_memory.h"
#include "server/service/read/answer_plan.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// Limit on a message: errors of the storage name archive, segment and block.
constexpr uint64_t kItemMessageSizeBytesMax = 512;

absl::Status ItemTooLarge(const std::string& limit, uint64_t size_bytes,
                          uint64_t size_bytes_max) {
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
      absl::StrCat("the item takes ", size_bytes, " bytes, over ", limit, ", ",
                   size_bytes_max, "; use ReadStream for it"),
      {{"limit", limit}});
}

}  // namespace

absl::StatusOr<WaitingItem> ResolveBatchItem(const ServiceCore& core,
                                             const ServedContents& contents,
                                             v1::WireEncoding encoding,
                                             const v1::BatchItem& item) {
  const v1::Limits& limits = core.limits;
  WaitingItem waiting{.tag = item.tag(),
                      .generation = contents.withdrawal.generation};
  QUIRE_ASSIGN_OR_RETURN(
      waiting.target,
      ResolveTarget(contents, item, limits.document_id_size_bytes_max()));
  const LogicalRange range = waiting.target.range;
  if (range.size_bytes > limits.read_size_bytes_max()) {
    return ItemTooLarge("read_size_bytes_max", range.size_bytes,
                        limits.read_size_bytes_max());
  }
  const uint64_t head_bytes =
      BatchMemory::kActiveItemBytes + kAnswerFramingSizeBytesMax +
      (waiting.target.document.has_value()
           ? DescriptionSizeBytesMax(*contents.view.archive)
           : 0);
  // Memory of a message of items, which comes on top.
  const uint64_t message_bytes =
      limits.batch_message_items_max() * BatchMemory::kItemBytes;
  const uint64_t memory_bytes_max =
      Admission::StreamShareBytes(limits.client_in_flight_size_bytes_max());
  waiting.answer_bytes_max =
      AnswerBytesMax(contents, range.size_bytes, encoding) + head_bytes;
  if (waiting.answer_bytes_max + message_bytes > memory_bytes_max) {
    // The plan has the exact sizes.
    const AnswerPlan plan = PlanAnswer(contents, range, encoding);
    waiting.answer_bytes_max =
        plan.memory_bytes() + plan.serialised_bytes + head_bytes;
  }
  if (waiting.answer_bytes_max + message_bytes > memory_bytes_max) {
    return ItemTooLarge("client_in_flight_size_bytes_max",
                        waiting.answer_bytes_max + message_bytes,
                        memory_bytes_max);
  }
  return waiting;
}

void RefuseIfWithdrawn(const ServedArchive& archive, BatchAnswer& item) {
  absl::Status status = CheckStillThere(archive, item.target, item.generation);
  if (!status.ok()) {
    item.outcome = std::move(status);
  }
}

uint64_t ResultSizeBytesMax(const BatchAnswer& item) {
  if (!item.refusal.empty()) {
    return kAnswerFramingSizeBytesMax + item.refusal.size();
  }
  if (!item.outcome.ok()) {
    return kAnswerFramingSizeBytesMax + kItemMessageSizeBytesMax;
  }
  const Answer& answer = *item.outcome;
  return kAnswerFramingSizeBytesMax + item.description.size() +
         (answer.details.has_value() ? answer.details->ByteSizeLong() : 0) +
         answer.data_size_bytes();
}

void AppendResult(const BatchAnswer& item, v1::BatchResult& head,
                  AnswerBytes& bytes, TallyByEncoding& tallies) {
  if (!item.refusal.empty() || !item.outcome.ok()) {
    const std::string status =
        item.refusal.empty()
            ? ToItemStatus(item.outcome.status()).SerializeAsString()
            : item.refusal;
    v1::BatchResult tag_only;
    tag_only.set_tag(item.tag);
    bytes.AppendNested(v1::BatchReadResponse::kResultsFieldNumber, tag_only,
                       {v1::BatchResult::kStatusFieldNumber, status},
                       v1::BatchResult::kDataFieldNumber, {});
    return;
  }
  // Sets each field that it ever sets. Clear() would free the range.
  head.set_tag(item.tag);
  head.mutable_range()->set_offset(item.target.range.offset.value);
  head.mutable_range()->set_size_bytes(item.target.range.size_bytes);
  head.clear_details();
  DescribeData(*item.outcome, head);
  bytes.AppendNested(v1::BatchReadResponse::kResultsFieldNumber, head,
                     {v1::BatchResult::kDocumentFieldNumber, item.description},
                     v1::BatchResult::kDataFieldNumber, item.outcome->pieces);
  AnswerTally& tally = tallies[static_cast<size_t>(item.outcome->encoding)];
  ++tally.answer_count;
  tally.size_bytes += item.target.range.size_bytes;
  tally.data_size_bytes += item.outcome->data_size_bytes();
}

}  // namespace quire
