// SPDX-License-Identifier: Apache-2.0
//
// What one call of the client does about wire encodings: which to ask for, to
// decode what comes, to count it. Internal to the client library.
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

// What all calls of a connection share of it.
// Thread-safe.
class WireState {
 public:
  // `source` must outlive the state.
  WireState(const TableStoreOptions& options, TableSource* source)
      : options_(options), tables_(options, source), decoder_(&tables_) {}

  const AnswerDecoder& decoder() const { return decoder_; }

  TableStore& tables() { return tables_; }

  // What `auto` knows of an archive; null past a thousand of them, whose calls
  // ask for identity.
  std::shared_ptr<WireMeter> MeterOf(absl::string_view archive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells a meter what is possible with its archive.
  void SetPriors(WireMeter& meter, const v1::ArchiveDescription& archive) const;

  // One answer was right.
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

// From before a call is made until its last answer is decoded.
// Thread-compatible, but for Decode().
class WireCall {
 public:
  // `state` must outlive the call. `message_size_bytes_max` is that of
  // ClientOptions. `describe` is asked at most once, now, on this thread, when
  // a choice needs it.
  using Describe = absl::FunctionRef<absl::StatusOr<v1::ArchiveDescription>()>;
  WireCall(WireState* state, absl::string_view archive, EncodingChoice choice,
           uint64_t message_size_bytes_max, Describe describe);
  ~WireCall();
  WireCall(const WireCall&) = delete;
  WireCall& operator=(const WireCall&) = delete;

  AnswerEncoding asked() const { return call_.asked; }

  // For the field accepted_encodings of any request.
  template <typename Request>
  void FillIn(Request& request) const {
    request.clear_accepted_encodings();
    request.add_accepted_encodings(ToProto(asked()));
    if (asked() == AnswerEncoding::kStored) {
      request.add_accepted_encodings(v1::WIRE_ENCODING_STORED_RECIPES);
    }
  }

  // An encoded answer of this call is of at most so many decoded bytes: what
  // the server announced, and never more than the largest message, as every
  // answer can be had in identity. REQUIRES: no Decode() runs.
  void SetAnswerSizeMax(uint64_t size_bytes_max) {
    answer_size_bytes_max_ = std::min(answer_size_bytes_max_, size_bytes_max);
  }

  // Whether answers may come encoded, now or after Renew().
  bool may_be_encoded() const {
    return asked() != AnswerEncoding::kIdentity || meter_ != nullptr;
  }

  // As AnswerDecoder::Decode(), and counts the answer. Thread-safe.
  absl::StatusOr<DecodedAnswer> Decode(const SentBytes& sent,
                                       std::string& buffer);

  // Whether the call, failed with `status`, is worth making anew in identity:
  // the table that its answer needs is gone, as the archive was replaced.
  bool MayFallBack(const absl::Status& status) const {
    return asked() != AnswerEncoding::kIdentity && IsTableGone(status);
  }

  // From here on the call asks for identity.
  void FallBack();

  // A stream goes on in what is best now, which asked() says.
  void Renew();

  // Whether Renew() would change asked().
  bool wants_another() const;

  // The call is about so many bytes, at most, of that archive: a choice among
  // encodings need not wait to see it.
  void Expect(const v1::ArchiveDescription& archive,
              uint64_t decoded_size_bytes);

  // From the first to the second the call waits for nothing: its caller works,
  // or has asked for nothing. Either may be repeated.
  void Pause();
  void Resume();

 private:
  WireState* const state_;
  uint64_t answer_size_bytes_max_;
  std::shared_ptr<WireMeter> meter_;
  WireMeter::Call call_;
  bool is_paused_ = false;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_CALL_H_
