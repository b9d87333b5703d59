// SPDX-License-Identifier: Apache-2.0
//
// Wire encoding of one call: decodes answers and counts them. Internal to the
// client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/internal/answer_decoder.h"
#include "client/quire/internal/table_store.h"
#include "client/quire/wire_encoding.h"

namespace quire {

// State shared by all calls of a connection. Thread-safe.
class WireState {
 public:
  // `source` must outlive the state.
  WireState(const TableStoreOptions& options, TableSource* source)
      : options_(options), tables_(options, source), decoder_(&tables_) {}

  const AnswerDecoder& decoder() const { return decoder_; }

  TableStore& tables() { return tables_; }

  // True if a scan of `size_bytes` receives less in stored blocks, with the
  // dictionary that they need, than in identity.
  bool IsSmallerStored(const v1::ArchiveDescription& archive,
                       uint64_t size_bytes) const;

  // Counts one valid answer.
  void Count(AnswerEncoding encoding, const WireTraffic& traffic);

  WireStats Stats() const;

 private:
  struct Counters {
    std::atomic<uint64_t> answer_count = 0;
    std::atomic<uint64_t> wire_size_bytes = 0;
    std::atomic<uint64_t> decoded_size_bytes = 0;
    std::atomic<uint64_t> decode_ns = 0;
  };

  const TableStoreOptions options_;
  TableStore tables_;
  const AnswerDecoder decoder_;
  std::array<Counters, kAnswerEncodingCount> counters_;
};

// Lives from before a call starts until its last answer is decoded.
// Thread-compatible, except for Decode().
class WireCall {
 public:
  // `state` must outlive the call. `message_size_bytes_max` is that of
  // ClientOptions.
  WireCall(WireState* state, absl::string_view archive, AnswerEncoding asked,
           uint64_t message_size_bytes_max)
      : state_(state),
        archive_(archive),
        answer_size_bytes_max_(message_size_bytes_max),
        asked_(asked) {}

  AnswerEncoding asked() const { return asked_; }

  // Value of the field accepted_encodings of any request.
  template <typename Request>
  void FillIn(Request& request) const {
    request.clear_accepted_encodings();
    request.add_accepted_encodings(ToProto(asked()));
    if (asked() == AnswerEncoding::kStored) {
      request.add_accepted_encodings(v1::WIRE_ENCODING_STORED_RECIPES);
    }
  }

  // Sets the upper bound on the decoded size of an encoded answer: the server's
  // limit, and never more than the largest message, as every answer is
  // available in identity. REQUIRES: no Decode() runs.
  void SetAnswerSizeMax(uint64_t size_bytes_max) {
    answer_size_bytes_max_ = std::min(answer_size_bytes_max_, size_bytes_max);
  }

  // True if answers may arrive encoded.
  bool may_be_encoded() const { return asked() != AnswerEncoding::kIdentity; }

  // As AnswerDecoder::Decode(), and counts the answer. Thread-safe.
  absl::StatusOr<DecodedAnswer> Decode(const SentBytes& sent,
                                       std::string& buffer);

  // True if a call that failed with `status` should be repeated in identity:
  // the table that its answer needs is gone, because the archive was replaced.
  bool MayFallBack(const absl::Status& status) const {
    return may_be_encoded() && IsTableGone(status);
  }

  // Requests identity from here on.
  void FallBack() { asked_ = AnswerEncoding::kIdentity; }

 private:
  WireState* const state_;
  const std::string archive_;
  uint64_t answer_size_bytes_max_;
  AnswerEncoding asked_;
};

// The encoding to ask for by `choice` in a call that is no scan.
AnswerEncoding EncodingOf(EncodingChoice choice);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_
