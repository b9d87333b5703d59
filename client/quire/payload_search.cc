// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload_search.h"

#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/quire/client_status.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr const char* kRevisitType = "revisit";
// Captures examined for the target of a revisit without a date.
constexpr int kCandidatesMax = 8;

bool NamesIdAlone(const DocumentKey& key) {
  return std::holds_alternative<std::string>(key.name) &&
         !key.occurrence.has_value() && key.record_types.empty();
}

bool IsMissing(const absl::Status& status) {
  const std::string reason = ErrorReasonOf(status);
  return reason == v1::ErrorReason_Name(v1::DOCUMENT_NOT_FOUND) ||
         reason == v1::ErrorReason_Name(v1::RECORD_TYPE_NOT_FOUND);
}

// Payload type that marks the statuses of IsPayloadFault().
constexpr absl::string_view kPayloadFaultUrl = "quire/payload_fault";

absl::Status MarkFault(absl::Status status) {
  if (absl::IsDataLoss(status) || absl::IsResourceExhausted(status)) {
    status.SetPayload(kPayloadFaultUrl, absl::Cord());
  }
  return status;
}

// "sha1" of "sha1:ABC".
absl::string_view AlgorithmOf(absl::string_view digest) {
  return digest.substr(0, digest.find(':'));
}

std::string TimeOf(const v1::Document& document) {
  return document.has_capture_time_ms()
             ? absl::FormatTime(
                   "%Y-%m-%dT%H:%M:%SZ",
                   absl::FromUnixMillis(document.capture_time_ms()),
                   absl::UTCTimeZone())
             : "unknown time";
}

}  // namespace

bool IsPayloadFault(const absl::Status& status) {
  return status.GetPayload(kPayloadFaultUrl).has_value();
}

RevisitReference::RevisitReference(const v1::Document& revisit,
                                   const WarcFields& warc)
    : uri_(!warc.refers_to_target_uri.empty() ? warc.refers_to_target_uri
           : !warc.target_uri.empty()         ? warc.target_uri
                                              : revisit.id()),
      date_(warc.refers_to_date),
      digest_(warc.payload_digest),
      at_time_ms_(revisit.has_capture_time_ms() ? revisit.capture_time_ms()
                                                : INT64_MAX) {
  const absl::StatusOr<CapturePeriod> period =
      ParseCapturePeriod(warc.refers_to_date);
  if (period.ok()) {
    period_ = *period;
    at_time_ms_ = period->last_ms;
  }
}

DocumentKey RevisitReference::FirstCandidate() const {
  DocumentKey key = DocumentKey::Id(uri_);
  key.record_types = {"response", "resource"};
  key.at_time_ms = at_time_ms_;
  return key;
}

bool RevisitReference::Means(const v1::Document& document,
                             const WarcFields& warc) const {
  const bool has_digests = !digest_.empty() && !warc.payload_digest.empty();
  if (has_digests && absl::EqualsIgnoreCase(digest_, warc.payload_digest)) {
    return true;
  }
  if (has_digests && AlgorithmOf(digest_) == AlgorithmOf(warc.payload_digest)) {
    return false;
  }
  // A server that answered "not modified" meant an earlier capture.
  return period_.has_value()
             ? document.has_capture_time_ms() &&
                   document.capture_time_ms() >= period_->first_ms &&
                   document.capture_time_ms() <= period_->last_ms
             : digest_.empty();
}

std::string RevisitReference::Describe() const {
  std::string text = QuotedText(uri_);
  if (!date_.empty()) {
    absl::StrAppend(&text, " of ", QuotedText(date_, 40));
  } else if (!digest_.empty()) {
    absl::StrAppend(&text, " with the digest ", QuotedText(digest_));
  }
  return text;
}

PayloadSearch::PayloadSearch(DocumentKey key, CaptureLister list_captures,
                             uint64_t size_bytes_max)
    : key_(std::move(key)),
      names_id_alone_(NamesIdAlone(key_)),
      list_captures_(std::move(list_captures)),
      size_bytes_max_(size_bytes_max) {
  Continue(Phase::kCapture, FirstTarget(key_));
}

DocumentKey PayloadSearch::FirstTarget(const DocumentKey& key) {
  DocumentKey target = key;
  target.with_revisits = NamesIdAlone(key);
  return target;
}

void PayloadSearch::TakeDocument(const v1::Document& document) {
  origin_.document = document;
}

absl::Status PayloadSearch::TakeBytes(ByteView bytes,
                                      PayloadOriginSink on_origin,
                                      PayloadSink sink) {
  const auto hand_out = [&](ByteView part) {
    return HandOut(part, on_origin, sink);
  };
  if (!origin_.document.has_record_type()) {
    return hand_out(bytes);
  }
  QUIRE_RETURN_IF_ERROR(MarkFault(decoder_->Feed(bytes, hand_out)));
  return decoder_->warc() != nullptr && decoder_->warc()->type == kRevisitType
             ? Begin(on_origin)
             : absl::OkStatus();
}

absl::Status PayloadSearch::HandOut(ByteView bytes, PayloadOriginSink on_origin,
                                    PayloadSink sink) {
  if (!has_begun_) {
    QUIRE_RETURN_IF_ERROR(Begin(on_origin));
  }
  return sink(bytes);
}

absl::Status PayloadSearch::Begin(PayloadOriginSink on_origin) {
  has_begun_ = true;
  if (decoder_->warc() != nullptr) {
    origin_.warc = *decoder_->warc();
    if (origin_.warc->type == kRevisitType) {
      stop_ = Stop::kRevisit;
      return absl::CancelledError("a revisit");
    }
  }
  if (decoder_->http() != nullptr) {
    origin_.http = *decoder_->http();
  }
  const uint64_t size_bytes = origin_.document.range().size_bytes();
  if (!origin_.document.has_record_type()) {
    origin_.plain = ByteSpan{0, size_bytes};
  } else if (const auto plain = decoder_->plain_payload();
             plain.has_value() && plain->offset <= size_bytes &&
             plain->size_bytes <= size_bytes - plain->offset) {
    origin_.plain = ByteSpan{plain->offset, plain->size_bytes};
  }
  if (captures_.has_value() && phase_ == Phase::kCapture &&
      origin_.document.id() != std::get<std::string>(key_.name)) {
    return absl::AbortedError(
        "the archive was replaced by other contents meanwhile; read again");
  }
  if (phase_ == Phase::kCandidate &&
      !(origin_.warc.has_value() &&
        reference_->Means(origin_.document, *origin_.warc))) {
    stop_ = Stop::kOther;
    return absl::CancelledError("another record");
  }
  if (PassesRecord()) {
    stop_ = Stop::kNoPage;
    return absl::CancelledError("no page");
  }
  return on_origin(origin_);
}

bool PayloadSearch::PassesRecord() const {
  if (!names_id_alone_ || list_captures_ == nullptr || takes_any_ ||
      decoder_->http() == nullptr) {
    return false;
  }
  constexpr int kRedirect = 3;
  return decoder_->http()->status_code.value_or(0) / 100 == kRedirect
             ? !takes_redirect_
             : decoder_->lacks_body();
}

std::optional<absl::Status> PayloadSearch::NextCapture() {
  if (!captures_.has_value()) {
    absl::StatusOr<std::vector<uint64_t>> captures = list_captures_(key_);
    if (!captures.ok()) {
      return captures.status();
    }
    captures_ = *std::move(captures);
  }
  origin_.revisit.reset();
  origin_.unresolved.clear();
  reference_.reset();
  candidate_count_ = 0;
  // The first is the one that was read.
  if (++next_capture_ >= captures_->size()) {
    takes_any_ = true;
    origin_.passed_count = 0;
    return Continue(Phase::kCapture, FirstTarget(key_));
  }
  ++origin_.passed_count;
  return Continue(Phase::kCapture,
                  DocumentKey::Ordinal((*captures_)[next_capture_]));
}

absl::Status PayloadSearch::FinishRecord(PayloadOriginSink on_origin,
                                         PayloadSink sink) {
  if (origin_.document.has_record_type()) {
    const absl::Status finished = MarkFault(decoder_->Finish(
        [&](ByteView bytes) { return HandOut(bytes, on_origin, sink); }));
    // A redirect is passed, whether or not it is whole.
    if (!finished.ok() && !has_begun_ && PassesRecord()) {
      stop_ = Stop::kNoPage;
    }
    if (stop_ != Stop::kNone || !finished.ok()) {
      return finished;
    }
  }
  return has_begun_ ? absl::OkStatus() : Begin(on_origin);
}

std::optional<absl::Status> PayloadSearch::EndRecord(
    absl::Status status, PayloadOriginSink on_origin, PayloadSink sink) {
  if (status.ok()) {
    status = FinishRecord(on_origin, sink);
  }
  if (stop_ == Stop::kNoPage) {
    return NextCapture();
  }
  switch (phase_) {
    case Phase::kCapture:
      if (stop_ != Stop::kRevisit) {
        return status;
      }
      reference_.emplace(origin_.document, *origin_.warc);
      origin_.revisit = origin_.document;
      return Continue(Phase::kCandidate, reference_->FirstCandidate());
    case Phase::kCandidate:
      return AfterCandidate(std::move(status));
    case Phase::kHeld:
      break;
  }
  return stop_ == Stop::kRevisit || IsMissing(status) ? missing_ : status;
}

std::optional<absl::Status> PayloadSearch::AfterCandidate(absl::Status status) {
  if (stop_ == Stop::kNone && !IsMissing(status)) {
    return status;
  }
  const v1::Document& found = origin_.document;
  if (stop_ != Stop::kNone && ++candidate_count_ < kCandidatesMax &&
      found.has_capture_time_ms() && found.capture_time_ms() > INT64_MIN &&
      found.capture_time_ms() <= *target_.at_time_ms) {
    DocumentKey older = target_;
    older.at_time_ms = found.capture_time_ms() - 1;
    return Continue(Phase::kCandidate, std::move(older));
  }
  origin_.unresolved = absl::StrCat("the capture of ", TimeOf(*origin_.revisit),
                                    " is a revisit of ", reference_->Describe(),
                                    ", which the archive does not hold");
  origin_.revisit.reset();
  missing_ = absl::NotFoundError(origin_.unresolved);
  if (!names_id_alone_) {
    return missing_;
  }
  return Continue(Phase::kHeld, key_);
}

std::nullopt_t PayloadSearch::Continue(Phase phase, DocumentKey target) {
  phase_ = phase;
  target_ = std::move(target);
  decoder_.emplace(size_bytes_max_);
  stop_ = Stop::kNone;
  has_begun_ = false;
  origin_.warc.reset();
  origin_.http.reset();
  origin_.plain.reset();
  return std::nullopt;
}

}  // namespace quire
