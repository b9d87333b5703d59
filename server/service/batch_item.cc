// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/batch_item.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/service/answer_read.h"
#include "server/service/batch_memory.h"
#include "server/service/service_error.h"

namespace quire {
namespace {

absl::Status ItemTooLarge(const std::string& limit, uint64_t size_bytes,
                          uint64_t size_bytes_max) {
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
      absl::StrCat("the item takes ", size_bytes, " bytes, over ", limit, ", ",
                   size_bytes_max, "; use ReadStream for it"),
      {{"limit", limit}});
}

}  // namespace

absl::StatusOr<ResolvedTarget> ResolveBatchItem(const ServiceCore& core,
                                                const ServedArchive& archive,
                                                v1::WireEncoding encoding,
                                                const v1::BatchItem& item) {
  const v1::Limits& limits = core.limits;
  QUIRE_ASSIGN_OR_RETURN(ResolvedTarget target,
                         ResolveTarget(*archive.archive, item,
                                       limits.document_id_size_bytes_max()));
  if (target.range.size_bytes > limits.read_size_bytes_max()) {
    return ItemTooLarge("read_size_bytes_max", target.range.size_bytes,
                        limits.read_size_bytes_max());
  }
  // Beside a message of items.
  const uint64_t memory_bytes =
      AnswerMemoryBytesMax(archive, target.range.size_bytes, encoding) +
      limits.batch_message_items_max() * BatchMemory::kWaitingItemBytes;
  if (memory_bytes > limits.client_in_flight_size_bytes_max()) {
    return ItemTooLarge("client_in_flight_size_bytes_max", memory_bytes,
                        limits.client_in_flight_size_bytes_max());
  }
  return target;
}

void AppendResult(const ServedArchive& archive, const BatchAnswer& item,
                  AnswerBytes& bytes, TallyByEncoding& tallies) {
  v1::BatchResult head;
  head.set_tag(item.tag);
  if (!item.outcome.ok()) {
    *head.mutable_status() = ToItemStatus(item.outcome.status());
    bytes.AppendNested(v1::BatchReadResponse::kResultsFieldNumber, head,
                       v1::BatchResult::kDataFieldNumber, {});
    return;
  }
  *head.mutable_range() = ToProto(item.target.range);
  if (item.target.document.has_value()) {
    *head.mutable_document() =
        DescribeDocument(*archive.archive, *item.target.document);
  }
  DescribeData(*item.outcome, head);
  bytes.AppendNested(v1::BatchReadResponse::kResultsFieldNumber, head,
                     v1::BatchResult::kDataFieldNumber, item.outcome->pieces);
  AnswerTally& tally = tallies[static_cast<size_t>(item.outcome->encoding)];
  ++tally.answer_count;
  tally.size_bytes += item.target.range.size_bytes;
  tally.data_size_bytes += item.outcome->data_size_bytes();
}

}  // namespace quire
