// SPDX-License-Identifier: Apache-2.0
//
// Finds the payload of a document: selects the records to read, follows
// revisits, and decodes. The caller reads the records, one by one with
// ReadPayload() of payload_reader.h, or many at once with a BatchReader.
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_SEARCH_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_SEARCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/capture_list.h"
#include "client/quire/capture_time.h"
#include "client/quire/payload/payload_decoder.h"
#include "client/quire/read_target.h"

namespace quire {

// Source of a payload.
struct PayloadOrigin {
  // Document with the payload.
  v1::Document document;
  // The revisit that refers to it: a record of a capture that found the same as
  // an earlier one.
  std::optional<v1::Document> revisit = {};
  // Set if the newest capture is a revisit whose target is not in the archive:
  // the target, as text. Then `document` is the newest capture in the archive.
  std::string unresolved = {};
  // Captures that the read prefers, and that are no pages: redirects, and
  // answers to HEAD.
  uint64_t passed_count = 0;
  // Headers of the record and of HTTP; unset for a document that is not a WARC
  // record, or not an HTTP message.
  std::optional<WarcFields> warc = {};
  std::optional<HttpFields> http = {};
  // Part of `document` that is the payload, unchanged; unset if the payload is
  // coded or incomplete.
  std::optional<ByteSpan> plain = {};
};

// Called before the first byte, also for an empty payload.
using PayloadOriginSink =
    absl::FunctionRef<absl::Status(const PayloadOrigin& origin)>;

// True if `status`, of ReadPayload() or PayloadSearch, means that the record
// has no complete payload; Client::Read() returns the record itself.
// Thread-safe.
bool IsPayloadFault(const absl::Status& status);

// The reference of a revisit to another record.
class RevisitReference {
 public:
  RevisitReference(const v1::Document& revisit, const WarcFields& warc);

  // Names the newest capture that may be the target.
  DocumentKey FirstCandidate() const;

  bool Means(const v1::Document& document, const WarcFields& warc) const;

  // Returns the target as text, for messages.
  std::string Describe() const;

 private:
  std::string uri_;
  std::string date_;
  std::string digest_;
  std::optional<CapturePeriod> period_;
  int64_t at_time_ms_;
};

// The search for one payload; ReadPayload() documents which. In turn:
//
//   PayloadSearch search(key);
//   do {
//     // Read search.target(); pass its description to TakeDocument() and its
//     // bytes to TakeBytes(), until that fails.
//     result = search.EndRecord(status of the read, ...);
//   } while (!result.has_value());
//
// Memory is bounded as that of PayloadDecoder. Thread-compatible.
class PayloadSearch {
 public:
  // `list_captures` is called by EndRecord(); null: a redirect or an answer to
  // HEAD is the payload where it is the newest capture.
  // REQUIRES: `key` names no part.
  explicit PayloadSearch(DocumentKey key, CaptureLister list_captures,
                         uint64_t size_bytes_max = kPayloadSizeBytesMax);

  // Returns the target() of a new search for `key`. Thread-safe.
  static DocumentKey FirstTarget(const DocumentKey& key);

  // Record to read next. Valid until EndRecord().
  const DocumentKey& target() const { return target_; }

  // True if target() is a capture that the key may name, not the target of a
  // revisit.
  bool reads_capture() const { return phase_ == Phase::kCapture; }

  // True: the current record is taken if it is a redirect.
  void set_takes_redirect(bool takes_redirect) {
    takes_redirect_ = takes_redirect;
  }

  // Called before the first byte; again only if the read starts again.
  void TakeDocument(const v1::Document& document);

  // Takes the next bytes of the record. After an error the read must end with
  // this status.
  absl::Status TakeBytes(ByteView bytes, PayloadOriginSink on_origin,
                         PayloadSink sink);

  // Ends the read of target(), which had this outcome. Returns the outcome of
  // the search, or nothing if it needs one more read of the new target().
  std::optional<absl::Status> EndRecord(absl::Status status,
                                        PayloadOriginSink on_origin,
                                        PayloadSink sink);

 private:
  // Purpose of the current read.
  enum class Phase {
    // A capture that the key may name, revisits included.
    kCapture,
    // A record that may be the target of the revisit.
    kCandidate,
    // The newest capture in the archive, if it does not have the target.
    kHeld
  };
  // Reason for not reading a record's payload.
  enum class Stop { kNone, kRevisit, kOther, kNoPage };

  absl::Status HandOut(ByteView bytes, PayloadOriginSink on_origin,
                       PayloadSink sink);
  // Called once the headers are known, before the first byte.
  absl::Status Begin(PayloadOriginSink on_origin);
  absl::Status FinishRecord(PayloadOriginSink on_origin, PayloadSink sink);
  // True if the current record is no page, and another one may be.
  bool PassesRecord() const;
  // After a capture that is no page: prepares the read of the next one.
  std::optional<absl::Status> NextCapture();
  // Prepares the read of another record.
  std::nullopt_t Continue(Phase phase, DocumentKey target);
  std::optional<absl::Status> AfterCandidate(absl::Status status);

  const DocumentKey key_;
  const bool names_id_alone_;
  const CaptureLister list_captures_;
  const uint64_t size_bytes_max_;
  // Set after the first capture that is no page: all of them, in order.
  std::optional<std::vector<uint64_t>> captures_;
  size_t next_capture_ = 0;
  // None of them is a page.
  bool takes_any_ = false;
  bool takes_redirect_ = false;
  Phase phase_ = Phase::kCapture;
  DocumentKey target_;
  PayloadOrigin origin_;
  // Set from kCandidate on.
  std::optional<RevisitReference> reference_;
  int candidate_count_ = 0;
  // Outcome if there is no held capture either.
  absl::Status missing_;
  // State of the current record.
  std::optional<PayloadDecoder> decoder_;
  Stop stop_ = Stop::kNone;
  bool has_begun_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_SEARCH_H_
