// SPDX-License-Identifier: Apache-2.0
#include "client/cli/item_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/cli/capture_choice.h"
#include "client/cli/shown_text.h"
#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "client/quire/payload/record_header.h"
#include "client/quire/payload_search.h"
#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Items in flight, which the server sorts, and the memory that they take: on a
// rotational disk more items give shorter seeks.
constexpr size_t kInFlightMax = 100'000;
constexpr size_t kInFlightSizeBytesMax = size_t{64} << 20;
// Upper bound on payloads that are decoded into memory; the server's limit may
// be lower.
constexpr uint64_t kPayloadSizeBytesMaxInMemory = uint64_t{8} << 20;
// Estimated size of a PayloadSearch that waits for another record.
constexpr size_t kSearchSizeBytes = 4096;
// A longer record whose status is still undecided has none.
constexpr size_t kStatusSizeBytesMax = 2 * kRecordHeaderSizeBytesMax;

size_t ItemSizeBytes(const ReadTarget& target) {
  return sizeof(ReadTarget) + TextSizeBytes(target);
}

// An item of a payload is also in `searches_`.
size_t SearchItemSizeBytes(const DocumentKey& key) {
  return 2 * ItemSizeBytes(key);
}

absl::Status TooLarge() {
  return absl::ResourceExhaustedError("too large for a batch");
}

bool IsTypeMissing(const absl::Status& status) {
  return ErrorReasonOf(status) ==
         v1::ErrorReason_Name(v1::RECORD_TYPE_NOT_FOUND);
}

// Reads the document of `target` and returns true if it passes `filter`. If the
// filter needs the HTTP status, this reads the document's first bytes.
absl::StatusOr<bool> TargetPasses(CliRun& run, const DocumentFilter& filter,
                                  const ReadTarget& target) {
  bool passes = false;
  bool is_decided = false;
  std::string head;
  const auto stop = [&](bool result) {
    passes = result;
    is_decided = true;
    return absl::CancelledError("decided");
  };
  const absl::Status status = run.Stream(
      target, /*payload=*/false,
      [&](const PayloadOrigin& origin) -> absl::Status {
        head.clear();
        v1::Document document = origin.document;
        QUIRE_ASSIGN_OR_RETURN(const bool document_passes,
                               PassesFilter(run, filter, document));
        if (!document_passes) {
          return stop(false);
        }
        return filter.needs_status() ? absl::OkStatus() : stop(true);
      },
      [&](ByteView bytes) -> absl::Status {
        head.append(AsText(bytes).data(), bytes.size());
        const HttpStatusSearch found = FindHttpStatus(AsBytes(head));
        return found.is_decided || head.size() > kStatusSizeBytesMax
                   ? stop(filter.PassesStatus(found.code))
                   : absl::OkStatus();
      });
  if (is_decided) {
    return passes;
  }
  QUIRE_RETURN_IF_ERROR(status);
  return filter.PassesStatus(FindHttpStatus(AsBytes(head)).code);
}

// The same for the page that a read of `key` chooses because newer captures are
// not pages; false if no capture was passed.
absl::StatusOr<bool> PagePasses(CliRun& run, const DocumentFilter& filter,
                                const DocumentKey& key) {
  std::optional<uint64_t> ordinal;
  const absl::Status status = run.Stream(
      key, /*payload=*/true,
      [&](const PayloadOrigin& origin) {
        if (origin.passed_count > 0) {
          ordinal = origin.revisit.has_value() ? origin.revisit->ordinal()
                                               : origin.document.ordinal();
        }
        return absl::CancelledError("found");
      },
      [](ByteView) { return absl::OkStatus(); });
  if (!ordinal.has_value()) {
    return IsOfOtherContents(status) ? absl::StatusOr<bool>(status) : false;
  }
  return TargetPasses(run, filter, DocumentKey::Ordinal(*ordinal));
}

// Answers an item that is too large for a batch, or must not wait for it: by
// ResourceExhausted, left out if it does not pass the filter, or by the error
// of reading its description. Blocks.
ItemAnswer AnswerForStream(CliRun& run, const ItemBatchOptions& options,
                           uint64_t tag, const ReadTarget& target) {
  ItemAnswer item{.tag = tag, .target = target, .result = TooLarge()};
  if (options.filter == nullptr || !options.filter->is_set() ||
      std::holds_alternative<ByteSpan>(target)) {
    return item;
  }
  const auto& key = std::get<DocumentKey>(target);
  absl::StatusOr<bool> passes =
      TargetPasses(run, *options.filter,
                   options.payload ? PayloadSearch::FirstTarget(key) : key);
  if (options.payload && passes.ok() && !*passes) {
    passes = PagePasses(run, *options.filter, key);
  }
  if (passes.ok()) {
    item.is_left_out = !*passes;
  } else if (options.filter->has_record_types() &&
             IsTypeMissing(passes.status())) {
    item.is_left_out = true;
  } else {
    item.result = passes.status();
  }
  if (item.is_left_out) {
    item.result = ReadResult();
  }
  return item;
}

// Reads the items of one batch. Thread-compatible.
class ItemBatch {
 public:
  // `payload_size_bytes_max`: larger payloads are read as streams. The other
  // arguments must outlive the batch.
  ItemBatch(CliRun& run, ItemSource& source, AnswerOrder& order,
            const ItemBatchOptions& options, uint64_t payload_size_bytes_max)
      : run_(run),
        source_(source),
        order_(order),
        options_(options),
        payload_size_bytes_max_(payload_size_bytes_max),
        batch_(run.client().StartBatch(
            run.settings().archive,
            {.archive_uuid = run.read_options().archive_uuid})) {}

  // As ReadItems().
  absl::Status Run();

 private:
  // An item whose payload is being read.
  struct Search {
    DocumentKey key;
    // Null before the first answer.
    std::unique_ptr<PayloadSearch> search = nullptr;
    // The filters leave out the capture that was received last, or the error.
    absl::StatusOr<bool> is_left_out = false;
  };

  absl::Status RequestItems();
  absl::Status Take(BatchAnswer answer);
  absl::Status TakePayload(BatchAnswer answer);
  // Passes a record to the item's search. Returns nothing if the search needs
  // another record; otherwise fills in `item`.
  std::optional<absl::Status> Decode(Search& state,
                                     absl::StatusOr<ReadResult> record,
                                     ItemAnswer& item);
  absl::StatusOr<bool> IsLeftOut(const ReadTarget& target,
                                 absl::StatusOr<ReadResult>& result) const;

  CliRun& run_;
  ItemSource& source_;
  AnswerOrder& order_;
  const ItemBatchOptions& options_;
  const uint64_t payload_size_bytes_max_;
  const std::unique_ptr<BatchReader> batch_;
  // By tag; used for payloads only.
  std::unordered_map<uint64_t, Search> searches_;
  size_t in_flight_size_bytes_ = 0;
  bool closed_ = false;
};

absl::Status ItemBatch::Run() {
  while (!run_.unreachable()) {
    QUIRE_RETURN_IF_ERROR(RequestItems());
    std::optional<BatchAnswer> answer = batch_->Next();
    if (answer.has_value()) {
      QUIRE_RETURN_IF_ERROR(Take(*std::move(answer)));
    } else if (source_.at_end()) {
      break;
    }
    // The next answers may come much later.
    if (batch_->unanswered_count() == 0) {
      QUIRE_RETURN_IF_ERROR(run_.output().Flush());
    }
  }
  return absl::OkStatus();
}

absl::Status ItemBatch::RequestItems() {
  std::vector<BatchReader::Item> items;
  const size_t unanswered_count = batch_->unanswered_count();
  while (!source_.at_end() && order_.has_room() &&
         unanswered_count + items.size() < kInFlightMax &&
         in_flight_size_bytes_ < kInFlightSizeBytesMax) {
    QUIRE_ASSIGN_OR_RETURN(
        std::optional<ReadTarget> target,
        source_.Next(/*may_wait=*/unanswered_count + items.size() == 0));
    if (!target.has_value()) {
      break;
    }
    const uint64_t tag = order_.Ask(*target);
    if (options_.payload) {
      const auto& key = std::get<DocumentKey>(*target);
      in_flight_size_bytes_ += SearchItemSizeBytes(key);
      items.push_back({.tag = tag, .target = PayloadSearch::FirstTarget(key)});
      searches_.emplace(tag, Search{.key = key});
    } else {
      in_flight_size_bytes_ += ItemSizeBytes(*target);
      items.push_back({.tag = tag, .target = *std::move(target)});
    }
  }
  if (!items.empty()) {
    batch_->AddAll(std::move(items));
  }
  // Payloads may need more records after the last item.
  if (source_.at_end() && !closed_ && !options_.payload) {
    batch_->CloseAdds();
    closed_ = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ItemBatch::IsLeftOut(
    const ReadTarget& target, absl::StatusOr<ReadResult>& result) const {
  const DocumentFilter* filter = options_.filter;
  if (filter == nullptr || !std::holds_alternative<DocumentKey>(target)) {
    return false;
  }
  if (!result.ok()) {
    return filter->has_record_types() && IsTypeMissing(result.status());
  }
  QUIRE_ASSIGN_OR_RETURN(const bool passes,
                         PassesFilter(run_, *filter, *result->document));
  return !passes ||
         (filter->needs_status() &&
          !filter->PassesStatus(FindHttpStatus(AsBytes(result->data)).code));
}

absl::Status ItemBatch::Take(BatchAnswer answer) {
  if (options_.payload) {
    return TakePayload(std::move(answer));
  }
  in_flight_size_bytes_ -= ItemSizeBytes(answer.target);
  if (IsTooLargeForBatch(answer.result.status())) {
    return order_.Take(
        AnswerForStream(run_, options_, answer.tag, answer.target));
  }
  ItemAnswer item{.tag = answer.tag,
                  .target = std::move(answer.target),
                  .result = std::move(answer.result)};
  const absl::StatusOr<bool> is_left_out = IsLeftOut(item.target, item.result);
  if (!is_left_out.ok()) {
    item.result = is_left_out.status();
  } else if (*is_left_out) {
    item.is_left_out = true;
    item.result = ReadResult();
  }
  return order_.Take(std::move(item));
}

absl::Status ItemBatch::TakePayload(BatchAnswer answer) {
  const auto found = searches_.find(answer.tag);
  Search& state = found->second;
  ItemAnswer item{.tag = answer.tag, .target = state.key};
  const bool is_too_large = IsTooLargeForBatch(answer.result.status());
  const bool is_capture =
      state.search == nullptr || state.search->reads_capture();
  if (is_capture && !is_too_large) {
    state.is_left_out = IsLeftOut(state.key, answer.result);
  }
  if (is_too_large) {
    item = is_capture ? AnswerForStream(run_, options_, answer.tag, state.key)
                      : ItemAnswer{.tag = answer.tag,
                                   .target = state.key,
                                   .result = TooLarge()};
  } else if (!state.is_left_out.ok()) {
    item.result = state.is_left_out.status();
  } else {
    if (state.search == nullptr) {
      state.search = std::make_unique<PayloadSearch>(
          state.key, [this](const DocumentKey& key) {
            return ListCaptures(run_.client(), run_.settings().archive, key,
                                run_.read_options());
          });
      in_flight_size_bytes_ += kSearchSizeBytes;
    }
    if (is_capture) {
      state.search->set_takes_redirect(options_.filter != nullptr &&
                                       options_.filter->needs_status() &&
                                       !*state.is_left_out);
    }
    const bool has_record = answer.result.ok();
    std::optional<absl::Status> outcome =
        Decode(state, std::move(answer.result), item);
    const bool has_failed = has_record && outcome.has_value() &&
                            !outcome->ok() && !IsPayloadFault(*outcome) &&
                            !IsTooLargeForBatch(*outcome);
    // Redirects and answers to HEAD are passed before the filter is applied.
    if (*state.is_left_out && !has_failed &&
        (outcome.has_value() || !state.search->reads_capture())) {
      item.is_left_out = true;
    } else if (!outcome.has_value()) {
      batch_->Add(item.tag, state.search->target());
      return absl::OkStatus();
    } else if (!outcome->ok()) {
      item.result = *std::move(outcome);
    }
  }
  if (item.is_left_out) {
    item.result = ReadResult();
  }
  in_flight_size_bytes_ -= SearchItemSizeBytes(state.key) +
                           (state.search == nullptr ? 0 : kSearchSizeBytes);
  searches_.erase(found);
  return order_.Take(std::move(item));
}

std::optional<absl::Status> ItemBatch::Decode(Search& state,
                                              absl::StatusOr<ReadResult> record,
                                              ItemAnswer& item) {
  PayloadOrigin origin;
  std::string payload;
  bool is_too_large = false;
  const auto on_origin = [&](const PayloadOrigin& found) {
    origin = found;
    return absl::OkStatus();
  };
  const auto sink = [&](ByteView bytes) -> absl::Status {
    is_too_large = bytes.size() > payload_size_bytes_max_ - payload.size();
    if (is_too_large) {
      return TooLarge();
    }
    payload.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  };
  absl::Status status = record.status();
  if (status.ok()) {
    state.search->TakeDocument(*record->document);
    if (!record->data.empty()) {
      status = state.search->TakeBytes(AsBytes(record->data), on_origin, sink);
    }
  }
  std::optional<absl::Status> outcome =
      state.search->EndRecord(std::move(status), on_origin, sink);
  if (is_too_large) {
    return TooLarge();
  }
  if (outcome.has_value() && outcome->ok()) {
    // A capture that stands in for one that is not in the archive.
    item.is_left_out = !origin.unresolved.empty() &&
                       options_.filter != nullptr &&
                       !options_.filter->Passes(origin.document);
    item.result =
        ReadResult{.document = origin.revisit.has_value() ? *origin.revisit
                                                          : origin.document,
                   .data = std::move(payload)};
    item.origin = std::move(origin);
  }
  return outcome;
}

}  // namespace

TargetItems::TargetItems(const std::vector<uint64_t>& ordinals,
                         std::optional<ByteSpan> part) {
  targets_.reserve(ordinals.size());
  for (const uint64_t ordinal : ordinals) {
    DocumentKey key = DocumentKey::Ordinal(ordinal);
    key.part = part;
    targets_.emplace_back(std::move(key));
  }
}

std::string FileNameOf(const ReadTarget& target) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    return absl::StrCat(span->offset, "-", span->size_bytes);
  }
  const auto& key = std::get<DocumentKey>(target);
  if (const auto* ordinal = std::get_if<uint64_t>(&key.name)) {
    return absl::StrCat(*ordinal);
  }
  std::string name = SafeFileName(std::get<std::string>(key.name));
  if (key.occurrence.has_value()) {
    absl::StrAppend(&name, "@", *key.occurrence);
  }
  return name;
}

bool IsTooLargeForBatch(const absl::Status& status) {
  // With a delay the server has refused the batch, not the item.
  return absl::IsResourceExhausted(status) && !IsPayloadFault(status) &&
         !RetryDelayOf(status).has_value();
}

absl::Status ReadItems(CliRun& run, ItemSource& source,
                       const ItemBatchOptions& options,
                       const AnswerOrder::Sink& sink) {
  uint64_t payload_size_bytes_max = 0;
  if (options.payload) {
    QUIRE_ASSIGN_OR_RETURN(const v1::Limits limits,
                           run.client().GetLimits(run.settings().archive));
    payload_size_bytes_max =
        std::min(limits.read_size_bytes_max(), kPayloadSizeBytesMaxInMemory);
  }
  AnswerOrder order({.ordered = options.ordered}, sink,
                    [&](uint64_t tag, const ReadTarget& target) {
                      return AnswerForStream(run, options, tag, target);
                    });
  return ItemBatch(run, source, order, options, payload_size_bytes_max).Run();
}

absl::Status PassData(CliRun& run, const ItemAnswer& answer, bool payload,
                      PayloadOriginSink on_begin, PayloadSink sink) {
  const auto pass = [&](ByteView bytes) {
    run.progress().Add(bytes.size(), 0);
    return sink(bytes);
  };
  if (!answer.result.ok()) {
    return run.Stream(answer.target, payload, on_begin, pass);
  }
  if (answer.result->document.has_value()) {
    QUIRE_RETURN_IF_ERROR(on_begin(answer.origin.value_or(
        PayloadOrigin{.document = *answer.result->document})));
  }
  return pass(AsBytes(answer.result->data));
}

}  // namespace quire
