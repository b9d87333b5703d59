// SPDX-License-Identifier: Apache-2.0
#include "client/http/page_answer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"

#include "client/http/part_answer.h"
#include "client/http/request/content_headers.h"
#include "client/quire/payload_reader.h"
#include "codecs/base/memory/free_memory.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Memory of the decoder of one coding, at most; see BodyDecoder. A thread has
// it for one of them.
constexpr size_t kDecoderSizeBytes = size_t{16} << 20;

std::string TypeOf(const PayloadOrigin& origin) {
  const v1::Document& document = origin.document;
  if (!document.has_record_type()) {
    return DocumentMediaType(document.media_type(), document.id());
  }
  const std::string& type =
      origin.http.has_value() && origin.http->status_code.has_value()
          ? origin.http->content_type
          : document.media_type();
  return IsContentType(type) ? type : "application/octet-stream";
}

// Takes a page while it is decoded. Thread-compatible.
class PageReader {
 public:
  // Returns the entity tag of the page in a document.
  using TagOf = absl::FunctionRef<std::string(const v1::Document& document)>;

  PageReader(const HttpRequest& request, TagOf tag_of, PageSpool* spool,
             MemoryBudget* budget, MemoryCharge& charge)
      : request_(request),
        tag_of_(tag_of),
        spool_(spool),
        charge_(charge),
        decoder_charge_(budget) {}

  // Cancelled if nothing must be decoded.
  absl::Status Begin(const PayloadOrigin& origin) {
    etag_ = tag_of_(origin.document);
    content_type_ = TypeOf(origin);
    if (origin.plain.has_value()) {
      ordinal_ = origin.document.ordinal();
      plain_ = origin.plain;
      return Stop();
    }
    page_ = spool_->Find(etag_);
    if (page_ != nullptr || EvaluateConditions(request_.conditions, etag_) !=
                                ConditionResult::kProceed) {
      return Stop();
    }
    if (origin.http.has_value() && origin.http->transfer_codings.empty() &&
        origin.http->content_codings.empty()) {
      stated_size_bytes_ = origin.http->content_length;
    }
    const size_t codings = origin.http.has_value()
                               ? origin.http->transfer_codings.size() +
                                     origin.http->content_codings.size()
                               : 0;
    if (codings > 1 &&
        !decoder_charge_.TryResize((codings - 1) * kDecoderSizeBytes)) {
      fault_ = MemoryExhausted();
    }
    return fault_;
  }

  absl::Status Take(ByteView bytes) {
    fault_ = Store(bytes);
    return fault_;
  }

  // Called after the last byte, with the outcome of the read. OK also if the
  // page is cut: then cut() says why.
  absl::Status Finish(const absl::Status& status) {
    if (is_stopped_) {
      return absl::OkStatus();
    }
    // The search takes it for a fault of the record.
    QUIRE_RETURN_IF_ERROR(fault_);
    const bool has_bytes = page_ != nullptr || !buffer_.empty();
    if (IsPayloadFault(status) && absl::IsDataLoss(status) && has_bytes) {
      cut_ = status;
    } else {
      QUIRE_RETURN_IF_ERROR(status);
    }
    is_decoded_ = page_ == nullptr;
    if (page_ != nullptr && cut_.ok()) {
      spool_->Keep(etag_, page_);
    }
    return absl::OkStatus();
  }

  const absl::Status& cut() const { return cut_; }

  // Size that the page would have; unset if the crawl does not say it.
  const std::optional<uint64_t>& stated_size_bytes() const {
    return stated_size_bytes_;
  }

  const std::string& etag() const { return etag_; }

  const std::string& content_type() const { return content_type_; }

  // Part of the document `ordinal` that is the payload.
  const std::optional<ByteSpan>& plain() const { return plain_; }

  uint64_t ordinal() const { return ordinal_; }

  const std::shared_ptr<SpooledPage>& page() const { return page_; }

  // True if buffer() is the page.
  bool is_decoded() const { return is_decoded_; }

  std::string& buffer() { return buffer_; }

 private:
  absl::Status Store(ByteView bytes) {
    if (page_ == nullptr &&
        bytes.size() <= kPieceSizeBytesMax - buffer_.size()) {
      return Append(bytes);
    }
    if (page_ == nullptr) {
      QUIRE_ASSIGN_OR_RETURN(page_, spool_->Create());
      QUIRE_RETURN_IF_ERROR(spool_->Append(*page_, AsBytes(buffer_)));
      FreeMemory(buffer_);
    }
    return spool_->Append(*page_, bytes);
  }

  absl::Status Stop() {
    is_stopped_ = true;
    return absl::CancelledError("nothing must be decoded");
  }

  absl::Status Append(ByteView bytes) {
    const size_t needed = buffer_.size() + bytes.size();
    if (needed > charge_.size_bytes()) {
      if (!charge_.TryResize(kPieceSizeBytesMax)) {
        return MemoryExhausted();
      }
      // Growing by copying would hold twice as much.
      buffer_.reserve(kPieceSizeBytesMax);
    }
    const absl::string_view text = AsText(bytes);
    buffer_.append(text.data(), text.size());
    return absl::OkStatus();
  }

  const HttpRequest& request_;
  const TagOf tag_of_;
  PageSpool* const spool_;
  MemoryCharge& charge_;
  MemoryCharge decoder_charge_;
  std::string etag_;
  std::string content_type_;
  // Error of the gateway.
  absl::Status fault_;
  absl::Status cut_;
  std::optional<uint64_t> stated_size_bytes_;
  bool is_stopped_ = false;
  bool is_decoded_ = false;
  uint64_t ordinal_ = 0;
  std::optional<ByteSpan> plain_;
  std::shared_ptr<SpooledPage> page_;
  std::string buffer_;
};

// Returns an answer with the beginning of a page whose rest is missing, as
// `cut` says.
Answer AnswerCutPage(const HttpRequest& request, Representation representation,
                     absl::Status cut) {
  Answer answer;
  // Without an ETag: a client must not combine it with parts of a whole page.
  AddContentHeaders(request, /*etag=*/"", answer);
  answer.headers.emplace_back("Content-Type", representation.content_type);
  const uint64_t there = representation.bytes == nullptr
                             ? representation.known.size()
                             : representation.bytes->size_bytes();
  if (representation.size_bytes.value_or(0) > there) {
    answer.size_bytes = representation.size_bytes;
  }
  answer.cut = std::move(cut);
  if (request.method == Method::kHead) {
    return answer;
  }
  answer.body = std::move(representation.known);
  if (representation.bytes != nullptr) {
    answer.rest = {.store = std::move(representation.bytes),
                   .offset = 0,
                   .size_bytes = there};
  }
  return answer;
}

}  // namespace

absl::StatusOr<Answer> AnswerPage(const HttpRequest& request,
                                  const KnownState& state, ArchiveReads& reads,
                                  PageSpool& spool, MemoryBudget& budget,
                                  MemoryCharge& charge) {
  const std::string& archive = request.target.archive;
  // The calls below name the state.
  if (!state.is_named) {
    QUIRE_RETURN_IF_ERROR(reads.CheckAccess(archive, state).status());
  }
  const auto tag_of = [&](const v1::Document& document) {
    const v1::ByteRange& range = document.range();
    return absl::StrFormat(
        "\"%s-p%x\"",
        state.EarliestWith({range.offset(), range.size_bytes()},
                           document.ordinal() + 1),
        document.ordinal());
  };
  PageReader reader(request, tag_of, &spool, &budget, charge);
  const absl::Status status = ReadPayload(
      reads.client(), archive, KeyOf(request.target),
      {.read = {.archive_uuid = state.uuid}},
      [&](const PayloadOrigin& origin) { return reader.Begin(origin); },
      [&](ByteView bytes) { return reader.Take(bytes); });
  QUIRE_RETURN_IF_ERROR(reader.Finish(status));
  Representation representation{.etag = reader.etag(),
                                .content_type = reader.content_type()};
  if (reader.plain().has_value()) {
    representation.size_bytes = reader.plain()->size_bytes;
    representation.bytes =
        reads.DocumentBytes(request, state, reader.ordinal(), *reader.plain());
  } else if (reader.page() != nullptr) {
    representation.size_bytes = reader.page()->size_bytes();
    representation.bytes = reader.page();
  } else if (reader.is_decoded()) {
    representation.size_bytes = reader.buffer().size();
    representation.known = std::move(reader.buffer());
  }
  if (!reader.cut().ok()) {
    representation.size_bytes = reader.stated_size_bytes();
    return AnswerCutPage(request, std::move(representation), reader.cut());
  }
  return AnswerPart(request, std::move(representation), budget, charge);
}

}  // namespace quire
