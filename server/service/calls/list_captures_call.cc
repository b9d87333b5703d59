// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/capture_scan.h"
#include "server/archive/format/archive_format.h"
#include "server/service/base/service_error.h"
#include "server/service/calls/container_parts.h"
#include "server/service/calls/document_page.h"
#include "server/service/calls/methods.h"
#include "server/service/calls/request_parser.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/answer_bytes.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

// Work of one page: captures that are looked at.
constexpr uint32_t kPassedMax = 20'000;
// Upper bound on the memory of a capture without its texts.
constexpr uint64_t kCaptureBytes = 2 * kListedEntryBytes;
constexpr size_t kTargetSizeBytesMax = kSurtKeySizeBytesMax;

absl::Status MalformedCaptures(absl::string_view message) {
  return ServiceError(absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
                      message);
}

// Columns that a filter can name, besides attributes of documents.
const std::vector<FieldColumn>& CaptureColumns() {
  static const auto* const columns =
      new std::vector<FieldColumn>(WithCaptureAttributes(
          {{"key", FieldType::kString}, {"url", FieldType::kString}}));
  return *columns;
}

absl::StatusOr<SurtMatch> MatchOf(const v1::ListCapturesRequest& request) {
  switch (request.match()) {
    case v1::CAPTURE_MATCH_UNSPECIFIED:
    case v1::CAPTURE_MATCH_EXACT:
      return SurtMatch::kExact;
    case v1::CAPTURE_MATCH_PREFIX:
      return SurtMatch::kPrefix;
    case v1::CAPTURE_MATCH_HOST:
      return SurtMatch::kHost;
    case v1::CAPTURE_MATCH_DOMAIN:
      return SurtMatch::kDomain;
    default:
      return MalformedCaptures(absl::StrCat("match is ", request.match(),
                                            ", expected one of CaptureMatch"));
  }
}

// False: the request is for all captures.
bool HasTarget(const v1::ListCapturesRequest& request) {
  return request.target_case() != v1::ListCapturesRequest::TARGET_NOT_SET;
}

// Returns the keys that the target and match of a request mean.
// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<SurtRange> RangeOf(const v1::ListCapturesRequest& request,
                                  SurtMatch match) {
  if (!HasTarget(request)) {
    if (request.match() != v1::CAPTURE_MATCH_UNSPECIFIED) {
      return MalformedCaptures(
          "match is set without a url or key: set one of these, or no match "
          "for all captures");
    }
    return SurtRangeOfKey("", SurtMatch::kPrefix);
  }
  const bool has_url = request.target_case() == v1::ListCapturesRequest::kUrl;
  const std::string& target = has_url ? request.url() : request.key();
  if (target.empty() || target.size() > kTargetSizeBytesMax) {
    return MalformedCaptures(
        absl::StrCat(has_url ? "url" : "key", " has ", target.size(),
                     " bytes, must have 1 to ", kTargetSizeBytesMax,
                     "; set neither url nor key for all captures"));
  }
  return has_url ? SurtRangeOfUrl(target, match)
                 : SurtRangeOfKey(target, match);
}

// Errors: InvalidArgument  MALFORMED_REQUEST.
absl::StatusOr<CaptureQuery> QueryOf(const v1::ListCapturesRequest& request) {
  QUIRE_ASSIGN_OR_RETURN(const SurtMatch match, MatchOf(request));
  CaptureQuery query;
  QUIRE_ASSIGN_OR_RETURN(query.range, RangeOf(request, match));
  if ((request.has_closest_ms() || request.newest_first()) &&
      (!HasTarget(request) || match != SurtMatch::kExact ||
       (request.has_closest_ms() && request.newest_first()))) {
    return MalformedCaptures(
        "closest_ms and newest_first exclude each other, and list the captures "
        "of one key: set url or key, match to CAPTURE_MATCH_EXACT, and one of "
        "them");
  }
  if (request.has_from_ms()) {
    query.from_ms = request.from_ms();
  }
  if (request.has_until_ms()) {
    query.until_ms = request.until_ms();
  }
  if (request.newest_first()) {
    query.order = CaptureQuery::Order::kNewestFirst;
  } else if (request.has_closest_ms()) {
    query.order = CaptureQuery::Order::kClosest;
    query.closest_ms =
        std::clamp(request.closest_ms(), -kCaptureTimeMsMax, kCaptureTimeMsMax);
  }
  return query;
}

absl::StatusOr<std::optional<Filter>> CaptureFilterOf(
    const v1::ListCapturesRequest& request) {
  if (!request.has_filter()) {
    return std::optional<Filter>();
  }
  absl::StatusOr<Filter> filter = Filter::Parse(request.filter());
  const absl::Status status =
      filter.ok() ? filter->Check(CaptureColumns()) : filter.status();
  if (status.ok()) {
    return std::optional(*std::move(filter));
  }
  return ServiceError(
      absl::StatusCode::kInvalidArgument,
      absl::IsNotFound(status) ? v1::FIELD_NOT_FOUND : v1::MALFORMED_REQUEST,
      absl::StrCat("filter: ", status.message()),
      {{"archive", request.archive()}});
}

// Lists captures in steps: walks as far as the parts of the index are at hand,
// and fetches others.
class ListCapturesCall : public grpc::ServerUnaryReactor {
 public:
  ListCapturesCall(ServiceCore& core, grpc::CallbackServerContext& context,
                   grpc::ByteBuffer& answer)
      : core_(core),
        answer_(answer),
        booking_(core, Method::kListCaptures, context) {}

  void Start(const grpc::ByteBuffer& buffer) {
    const absl::Status status = Begin(buffer);
    if (!status.ok()) {
      End(status);
      return;
    }
    if (IsShort()) {
      Continue(absl::OkStatus());
      return;
    }
    core_.store.decode_pool().Add(
        {.run = [this] { Continue(absl::OkStatus()); },
         .client_id = ClientIdOf(booking_.Client())});
  }

  void OnCancel() override { is_cancelled_ = true; }

  void OnDone() override { delete this; }

 private:
  // A look-up of one key does not take longer than another thread would take to
  // wake up. Others may pass over many captures.
  bool IsShort() const {
    return !filter_.has_value() && HasTarget(request_) &&
           (request_.match() == v1::CAPTURE_MATCH_EXACT ||
            request_.match() == v1::CAPTURE_MATCH_UNSPECIFIED);
  }

  absl::Status Begin(const grpc::ByteBuffer& buffer) {
    QUIRE_RETURN_IF_ERROR(booking_.access().status());
    QUIRE_RETURN_IF_ERROR(ParseRequest(buffer, request_));
    request_bytes_ = ListRequestBytes(buffer.Length(), request_.filter());
    QUIRE_RETURN_IF_ERROR(RefuseIfDraining(core_));
    QUIRE_ASSIGN_OR_RETURN(contents_, booking_.access().FindContents(request_));
    QUIRE_ASSIGN_OR_RETURN(page_size_,
                           PageSizeOf(request_.has_page_size()
                                          ? std::optional(request_.page_size())
                                          : std::nullopt,
                                      core_.limits.page_size_max()));
    QUIRE_ASSIGN_OR_RETURN(query_, QueryOf(request_));
    QUIRE_ASSIGN_OR_RETURN(
        ticket_, core_.admission.Admit(booking_.Client(), request_bytes_,
                                       Admission::Use::kSingleAnswer));
    QUIRE_ASSIGN_OR_RETURN(filter_, CaptureFilterOf(request_));
    QUIRE_ASSIGN_OR_RETURN(contents_.view,
                           StateOfCaptures(contents_.view, request_));
    if (request_.has_page_token()) {
      QUIRE_ASSIGN_OR_RETURN(first_after_, ParseCapturesPageToken(request_));
    }
    const CaptureIndexing indexing =
        IndexingOf(*contents_.view.archive, contents_.view.document_count);
    if (indexing.capture_count == 0) {
      return ServiceError(
          absl::StatusCode::kFailedPrecondition, v1::CAPTURES_NOT_INDEXED,
          absl::StrCat(request_.archive(),
                       " has no index of captures: build it of WARC, ARC or "
                       "WACZ files, by this version or a later one"),
          {{"archive", request_.archive()}});
    }
    unindexed_count_ = indexing.unindexed_document_count;
    parts_.emplace(core_.store, core_.admission, booking_.Client(),
                   contents_.archive);
    StartAgain();
    return absl::OkStatus();
  }

  // Does what is possible with the parts at hand, then fetches others or ends.
  void Continue(absl::Status status) {
    if (status.ok() && is_cancelled_) {
      status = absl::CancelledError("the client cancelled the call");
    }
    if (status.ok()) {
      const absl::StatusOr<bool> is_complete = Advance();
      if (is_complete.ok() && !*is_complete) {
        parts_->Fetch(
            [this](absl::Status fetched) { Continue(std::move(fetched)); });
        return;
      }
      status = is_complete.ok() ? Answer() : is_complete.status();
    }
    End(status);
  }

  void StartAgain() {
    FreeParts();
    // Clear() would keep its memory.
    response_ = v1::ListCapturesResponse();
    page_bytes_ = 0;
    passed_count_ = 0;
    after_ = first_after_;
  }

  void FreeParts() {
    scan_.reset();
    parts_->ForgetMissing();
    parts_->Free();
    has_moved_ = false;
  }

  CaptureScan& Scan() {
    if (!scan_.has_value()) {
      scan_.emplace(*contents_.view.archive, contents_.view.document_count,
                    query_, after_, [this](const ArchivePart& part) {
                      return parts_->Load(part);
                    });
    }
    return *scan_;
  }

  // Admits a page of `page_bytes`. Errors: as Admission::Admit().
  absl::Status HoldPage(uint64_t page_bytes) {
    return ticket_.Resize(request_bytes_ + page_bytes);
  }

  // False: parts must be fetched. Meanwhile the call holds no more bytes than
  // it uses.
  absl::StatusOr<bool> Advance() {
    QUIRE_ASSIGN_OR_RETURN(const bool is_complete, AddCaptures());
    QUIRE_RETURN_IF_ERROR(HoldPage(page_bytes_));
    return is_complete;
  }

  absl::StatusOr<bool> AddCaptures() {
    // Documents may have been withdrawn while parts were fetched.
    if (contents_.archive->withdrawal->generation() !=
        contents_.withdrawal.generation) {
      contents_.TakeWithdrawal();
      StartAgain();
    }
    while (true) {
      if (page_bytes_ + parts_->held_bytes() > kHeldPartsBytesMax &&
          has_moved_) {
        FreeParts();
      }
      FoundCapture found;
      QUIRE_ASSIGN_OR_RETURN(const CaptureScan::Step step, Scan().Next(found));
      if (step == CaptureScan::Step::kNotAtHand) {
        return false;
      }
      if (step == CaptureScan::Step::kEnd) {
        return true;
      }
      const bool is_listed = step == CaptureScan::Step::kFound;
      QUIRE_ASSIGN_OR_RETURN(const bool is_within,
                             is_listed ? Add(found) : true);
      if (!is_within) {
        return EndPage();
      }
      after_ = std::move(found.place);
      has_moved_ = true;
      ++passed_count_;
      if (static_cast<uint32_t>(response_.captures_size()) == page_size_ ||
          passed_count_ == kPassedMax ||
          parts_->loaded_bytes() > kLoadedPartsBytesMax) {
        return EndPage();
      }
    }
  }

  bool EndPage() {
    response_.set_next_page_token(
        MakeCapturesPageToken(contents_.view, request_, *after_));
    return true;
  }

  // Adds a capture, if it matches. False: the page ends before it.
  absl::StatusOr<bool> Add(const FoundCapture& found) {
    const WithdrawnDocuments* const withdrawn =
        contents_.withdrawal.documents.get();
    if (withdrawn != nullptr &&
        withdrawn->Find(found.place.ordinal).has_value()) {
      return true;
    }
    QUIRE_ASSIGN_OR_RETURN(
        const Document document,
        contents_.view.archive->GetDocument(found.place.ordinal));
    const absl::string_view id = document.id;
    const absl::string_view url =
        found.id_skip_bytes.has_value()
            ? id.substr(std::min<size_t>(*found.id_skip_bytes, id.size()))
            : absl::string_view(found.url);
    if (!Matches(found, document, url)) {
      return true;
    }
    v1::Capture capture;
    capture.set_key(found.place.key);
    capture.set_url(url.data(), url.size());
    FillDocument(document, *capture.mutable_document());
    const Archive::Occurrence occurrence = contents_.view.archive->OccurrenceOf(
        document.ordinal, document.id, contents_.view.document_count);
    if (occurrence.count > 1) {
      capture.mutable_document()->set_occurrence(occurrence.number);
    }
    if (found.status != 0) {
      capture.set_status(found.status);
    }
    if (!found.digest.empty()) {
      capture.set_digest(found.digest);
    }
    const uint64_t size_bytes = capture.ByteSizeLong();
    if (response_.captures_size() > 0 &&
        sent_bytes_ + size_bytes > kPageSizeBytesMax) {
      return false;
    }
    sent_bytes_ =
        (response_.captures_size() > 0 ? sent_bytes_ : 0) + size_bytes;
    page_bytes_ += kCaptureBytes + size_bytes;
    if (request_bytes_ + page_bytes_ > ticket_.size_bytes()) {
      QUIRE_RETURN_IF_ERROR(HoldPage(page_bytes_ + kPageStepBytes));
    }
    *response_.add_captures() = std::move(capture);
    return true;
  }

  bool Matches(const FoundCapture& found, const Document& document,
               absl::string_view url) const {
    if (!filter_.has_value()) {
      return true;
    }
    DocumentAttributeValues attributes = {
        .id = document.id,
        .ordinal = document.ordinal.value,
        .size_bytes = document.range.size_bytes,
        .time_ms = found.place.time_ms};
    if (IsPlainText(document.media_type)) {
      attributes.type = document.media_type;
    }
    if (IsPlainText(document.record_type)) {
      attributes.record_type = document.record_type;
    }
    std::vector<FieldView> row;
    for (const std::string& name : filter_->names()) {
      if (name == "key") {
        row.emplace_back(absl::string_view(found.place.key));
      } else if (name == "url") {
        row.emplace_back(url);
      } else if (name == "digest") {
        row.push_back(found.digest.empty()
                          ? FieldView()
                          : FieldView(absl::string_view(found.digest)));
      } else if (name == "status") {
        row.push_back(found.status == 0
                          ? FieldView()
                          : FieldView(static_cast<int64_t>(found.status)));
      } else {
        row.push_back(AttributeOf(attributes, name));
      }
    }
    return filter_->Matches(row);
  }

  absl::Status Answer() {
    FreeParts();
    response_.set_archive_uuid(std::string(contents_.view.uuid));
    response_.set_unindexed_document_count(unindexed_count_);
    const uint64_t size_bytes = response_.ByteSizeLong();
    QUIRE_RETURN_IF_ERROR(HoldPage(page_bytes_ + size_bytes));
    AnswerBytes bytes;
    bytes.AppendFields(response_);
    answer_ = bytes.Take();
    booking_.Sending(size_bytes);
    response_ = v1::ListCapturesResponse();
    return HoldPage(size_bytes);
  }

  void End(const absl::Status& status) { booking_.Finish(*this, status); }

  ServiceCore& core_;
  grpc::ByteBuffer& answer_;
  CallBooking booking_;
  std::atomic<bool> is_cancelled_ = false;
  v1::ListCapturesRequest request_;
  // Memory of the request.
  uint64_t request_bytes_ = 0;
  uint32_t page_size_ = 0;
  ServedContents contents_;
  CaptureQuery query_;
  std::optional<Filter> filter_;
  uint64_t unindexed_count_ = 0;
  // Of the request's token; and where the page is.
  std::optional<CapturePlace> first_after_;
  std::optional<CapturePlace> after_;
  std::optional<ContainerParts> parts_;
  // Uses `parts_`.
  std::optional<CaptureScan> scan_;
  // Captures were passed since the parts were freed.
  bool has_moved_ = false;
  uint32_t passed_count_ = 0;
  uint64_t sent_bytes_ = 0;
  v1::ListCapturesResponse response_;
  // Memory of `response_`.
  uint64_t page_bytes_ = 0;
  // Held until gRPC has released the answer.
  Admission::Ticket ticket_;
};

}  // namespace

grpc::ServerUnaryReactor* StartListCapturesCall(
    ServiceCore& core, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  auto* call = new ListCapturesCall(core, context, response);
  call->Start(request);
  return call;
}

}  // namespace quire
