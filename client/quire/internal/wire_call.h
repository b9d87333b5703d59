// SPDX-License-Identifier: Apache-2.0
//
// Wire encodings of one call: chooses which to request, decodes answers and
// counts them. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/internal/answer_decoder.h"
#include "client/quire/internal/table_store.h"
#include "client/quire/internal/wire_meter.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/mutex.h"

namespace quire {

class WireCall;

// State shared by all calls of a connection. Thread-safe.
class WireState {
 public:
  // `source` must outlive the state.
  WireState(const TableStoreOptions& options, TableSource* source)
      : options_(options), tables_(options, source), decoder_(&tables_) {}

  const AnswerDecoder& decoder() const { return decoder_; }

  TableStore& tables() { return tables_; }

  // Returns what `auto` knows about an archive; null after a thousand archives:
  // calls to further ones request identity.
  std::shared_ptr<WireMeter> MeterOf(absl::string_view archive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Passes the properties of an archive to its meter.
  void SetPriors(WireMeter& meter, const v1::ArchiveDescription& archive) const;

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
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<WireMeter>> meters_
      ABSL_GUARDED_BY(mutex_);
};

// Lives from before a call starts until its last answer is decoded.
// Thread-compatible, except for Decode().
class WireCall {
 public:
  // `state` must outlive the call. `message_size_bytes_max` is that of
  // ClientOptions. `describe` is called at most once, in the constructor, if a
  // choice needs it.
  using Describe = absl::FunctionRef<absl::StatusOr<v1::ArchiveDescription>()>;
  WireCall(WireState* state, absl::string_view archive, EncodingChoice choice,
           uint64_t message_size_bytes_max, Describe describe);
  ~WireCall();
  WireCall(const WireCall&) = delete;
  WireCall& operator=(const WireCall&) = delete;

  AnswerEncoding asked() const { return call_.asked; }

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

  // True if answers may arrive encoded, now or after Renew().
  bool may_be_encoded() const {
    return asked() != AnswerEncoding::kIdentity || meter_ != nullptr;
  }

  // As AnswerDecoder::Decode(), and counts the answer. Thread-safe.
  absl::StatusOr<DecodedAnswer> Decode(const SentBytes& sent,
                                       std::string& buffer);

  // True if a call that failed with `status` should be repeated in identity:
  // the table that its answer needs is gone, because the archive was replaced.
  bool MayFallBack(const absl::Status& status) const {
    return asked() != AnswerEncoding::kIdentity && IsTableGone(status);
  }

  // Requests identity from here on.
  void FallBack();

  // Continues a stream in the best encoding now; asked() returns it.
  void Renew();

  // True if Renew() would change asked().
  bool wants_another() const;

  // Announces that the call reads at most this many bytes of the archive, so
  // that the choice of an encoding need not wait to see it.
  void Expect(const v1::ArchiveDescription& archive,
              uint64_t decoded_size_bytes);

  // Begin and end of a period in which the call waits for nothing: its caller
  // works, or has requested nothing. Either may be repeated.
  void Pause();
  void Resume();

 private:
  WireState* const state_;
  const std::string archive_;
  uint64_t answer_size_bytes_max_;
  std::shared_ptr<WireMeter> meter_;
  WireMeter::Call call_;
  bool is_paused_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_
