// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload_reader.h"

#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/quire/capture_time.h"
#include "client/quire/client_status.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr const char* kRevisitType = "revisit";
// Captures examined for the target of a revisit without a date.
constexpr int kCandidatesMax = 8;

absl::string_view View(const std::string& text) {
  return {text.data(), text.size()};
}

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

// The reference of a revisit to another record.
class Reference {
 public:
  Reference(const v1::Document& revisit, const WarcFields& warc)
      : uri_(!warc.refers_to_target_uri.empty() ? warc.refers_to_target_uri
             : !warc.target_uri.empty()         ? warc.target_uri
                                                : revisit.id()),
        date_(warc.refers_to_date),
        digest_(warc.payload_digest),
        at_time_ms_(revisit.has_capture_time_ms() ? revisit.capture_time_ms()
                                                  : INT64_MAX) {
    const absl::StatusOr<CapturePeriod> period =
        ParseCapturePeriod(View(warc.refers_to_date));
    if (period.ok()) {
      period_ = *period;
      at_time_ms_ = period->last_ms;
    }
  }

  // Names the newest capture that may be the target.
  DocumentKey FirstCandidate() const {
    DocumentKey key = DocumentKey::Id(uri_);
    key.record_types = {"response", "resource"};
    key.at_time_ms = at_time_ms_;
    return key;
  }

  bool Means(const v1::Document& document, const WarcFields& warc) const {
    const bool has_digests = !digest_.empty() && !warc.payload_digest.empty();
    if (has_digests &&
        absl::EqualsIgnoreCase(View(digest_), View(warc.payload_digest))) {
      return true;
    }
    if (has_digests &&
        AlgorithmOf(View(digest_)) == AlgorithmOf(View(warc.payload_digest))) {
      return false;
    }
    // A server that answered "not modified" meant an earlier capture.
    return period_.has_value()
               ? document.has_capture_time_ms() &&
                     document.capture_time_ms() >= period_->first_ms &&
                     document.capture_time_ms() <= period_->last_ms
               : digest_.empty();
  }

  // The target, as text for messages.
  std::string Describe() const {
    std::string text = QuotedText(View(uri_));
    if (!date_.empty()) {
      absl::StrAppend(&text, " of ", QuotedText(View(date_), 40));
    } else if (!digest_.empty()) {
      absl::StrAppend(&text, " with the digest ", QuotedText(View(digest_)));
    }
    return text;
  }

 private:
  const std::string uri_;
  const std::string date_;
  const std::string digest_;
  std::optional<CapturePeriod> period_;
  int64_t at_time_ms_;
};

// One call of ReadPayload().
class PayloadRead {
 public:
  PayloadRead(Client& client, absl::string_view archive,
              const PayloadOptions& options, PayloadOriginSink on_origin,
              PayloadSink sink)
      : client_(client),
        archive_(archive),
        options_(options),
        on_origin_(on_origin),
        sink_(sink) {}

  absl::Status Run(const DocumentKey& key) {
    DocumentKey capture = key;
    if (NamesIdAlone(key)) {
      capture.record_types = {"response", kRevisitType};
    }
    absl::Status status = ReadRecord(capture, nullptr);
    if (NamesIdAlone(key) &&
        ErrorReasonOf(status) ==
            v1::ErrorReason_Name(v1::RECORD_TYPE_NOT_FOUND)) {
      status = ReadRecord(key, nullptr);
    }
    if (stop_ != Stop::kRevisit) {
      return status;
    }
    const v1::Document revisit = std::move(origin_.document);
    const Reference reference(revisit, *origin_.warc);
    origin_.revisit = revisit;
    const absl::Status followed = Follow(reference);
    if (stop_ != Stop::kOther) {
      return followed;
    }
    origin_.revisit.reset();
    origin_.unresolved =
        absl::StrCat("the capture of ", TimeOf(revisit), " is a revisit of ",
                     reference.Describe(), ", which the archive does not hold");
    const absl::Status missing = absl::NotFoundError(origin_.unresolved);
    if (!NamesIdAlone(key)) {
      return missing;
    }
    const absl::Status held = ReadRecord(key, nullptr);
    return IsMissing(held) ? missing : held;
  }

 private:
  // Reason for not reading a record's payload.
  enum class Stop { kNone, kRevisit, kOther };

  static std::string TimeOf(const v1::Document& document) {
    return document.has_capture_time_ms()
               ? absl::FormatTime(
                     "%Y-%m-%dT%H:%M:%SZ",
                     absl::FromUnixMillis(document.capture_time_ms()),
                     absl::UTCTimeZone())
               : "unknown time";
  }

  // Outputs the payload of the target of `reference`; otherwise stop_ is
  // kOther.
  absl::Status Follow(const Reference& reference) {
    DocumentKey candidate = reference.FirstCandidate();
    for (int i = 0; i < kCandidatesMax; ++i) {
      const absl::Status status = ReadRecord(candidate, &reference);
      if (IsMissing(status)) {
        stop_ = Stop::kOther;
        return status;
      }
      const v1::Document& found = origin_.document;
      if (stop_ != Stop::kOther || !found.has_capture_time_ms() ||
          found.capture_time_ms() > *candidate.at_time_ms) {
        return status;
      }
      candidate.at_time_ms = found.capture_time_ms() - 1;
    }
    return absl::OkStatus();
  }

  // Outputs the payload of the record, unless it is a revisit or not the target
  // of `reference`: then sets stop_.
  absl::Status ReadRecord(const DocumentKey& key, const Reference* reference) {
    PayloadDecoder decoder(options_.size_bytes_max);
    has_begun_ = false;
    stop_ = Stop::kNone;
    origin_.warc.reset();
    origin_.http.reset();
    const auto hand_out = [&](ByteView bytes) -> absl::Status {
      if (!has_begun_) {
        QUIRE_RETURN_IF_ERROR(Begin(decoder, reference));
      }
      return sink_(bytes);
    };
    const auto on_document = [&](const v1::Document& document) {
      origin_.document = document;
      return absl::OkStatus();
    };
    const auto on_bytes = [&](uint64_t, ByteView bytes) -> absl::Status {
      if (!origin_.document.has_record_type()) {
        return hand_out(bytes);
      }
      QUIRE_RETURN_IF_ERROR(MarkFault(decoder.Feed(bytes, hand_out)));
      return decoder.warc() != nullptr && decoder.warc()->type == kRevisitType
                 ? Begin(decoder, reference)
                 : absl::OkStatus();
    };
    QUIRE_RETURN_IF_ERROR(client_.ReadStream(archive_, key, on_document,
                                             on_bytes, options_.read));
    if (origin_.document.has_record_type()) {
      const absl::Status finished = MarkFault(decoder.Finish(hand_out));
      if (stop_ != Stop::kNone || !finished.ok()) {
        return finished;
      }
    }
    return has_begun_ ? absl::OkStatus() : Begin(decoder, reference);
  }

  // Called once the headers are known, before the first byte.
  absl::Status Begin(const PayloadDecoder& decoder,
                     const Reference* reference) {
    has_begun_ = true;
    if (decoder.warc() != nullptr) {
      origin_.warc = *decoder.warc();
      if (origin_.warc->type == kRevisitType) {
        stop_ = Stop::kRevisit;
        return absl::CancelledError("a revisit");
      }
    }
    if (decoder.http() != nullptr) {
      origin_.http = *decoder.http();
    }
    if (reference != nullptr &&
        !(origin_.warc.has_value() &&
          reference->Means(origin_.document, *origin_.warc))) {
      stop_ = Stop::kOther;
      return absl::CancelledError("another record");
    }
    return on_origin_(origin_);
  }

  Client& client_;
  const absl::string_view archive_;
  const PayloadOptions& options_;
  const PayloadOriginSink on_origin_;
  const PayloadSink sink_;
  PayloadOrigin origin_;
  Stop stop_ = Stop::kNone;
  bool has_begun_ = false;
};

}  // namespace

absl::Status ReadPayload(Client& client, absl::string_view archive,
                         const DocumentKey& key, const PayloadOptions& options,
                         PayloadOriginSink on_origin, PayloadSink sink) {
  if (key.part.has_value()) {
    return absl::InvalidArgumentError(
        "a payload is read as a whole: name no part of the document");
  }
  return PayloadRead(client, archive, options, on_origin, sink).Run(key);
}

bool IsPayloadFault(const absl::Status& status) {
  return status.GetPayload(kPayloadFaultUrl).has_value();
}

}  // namespace quire
