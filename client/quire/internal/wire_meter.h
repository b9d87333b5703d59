// SPDX-License-Identifier: Apache-2.0
//
// Measures the traffic of one archive on one connection for an EncodingChooser.
// Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_METER_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_METER_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"

#include "client/quire/internal/encoding_chooser.h"
#include "client/quire/wire_encoding.h"
#include "codecs/base/mutex.h"

namespace quire {

// Divides traffic into the chooser's windows, of at least kWindowBusyNs and of
// kWindowAnswers answers or kWindowSizeBytes bytes, whichever comes first.
//
// Time counts while at least one call waits. After a change of encoding, calls
// in the previous one are still in flight: the clock of a window starts with
// the first answer to a call that was made in it.
//
// `now_ns` is of any monotonic clock.
// Thread-safe; never blocks.
class WireMeter {
 public:
  static constexpr uint64_t kWindowBusyNs = 50'000'000;
  static constexpr uint64_t kWindowAnswers = 48;
  static constexpr uint64_t kWindowSizeBytes = uint64_t{1} << 20;

  struct Call {
    AnswerEncoding asked = AnswerEncoding::kIdentity;
    uint64_t epoch = 0;
  };

  // Begins a call, which waits until Pause(); returns the encoding to ask for.
  Call Begin(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The call does not wait any more: it has ended, or its caller works.
  void Pause(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // One answer came and was decoded, in the encoding `got`.
  void Answer(const Call& call, AnswerEncoding got, const WireTraffic& traffic,
              int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // The encoding for a call that begins now.
  AnswerEncoding next() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True once, when there is enough traffic for a choice: the caller should
  // call SetPriors().
  bool TakePriorsWanted() ABSL_LOCKS_EXCLUDED(mutex_);

  void SetPriors(const std::array<EncodingPrior, kAnswerEncodingCount>& priors)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As in EncodingChooser.
  void Expect(uint64_t decoded_size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void PassTime(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWindow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  EncodingChooser chooser_ ABSL_GUARDED_BY(mutex_);
  bool has_priors_ ABSL_GUARDED_BY(mutex_) = false;
  bool priors_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  // The current window; calls of other epochs do not count in it.
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_what_was_asked_ ABSL_GUARDED_BY(mutex_) = false;
  WireWindow window_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_WIRE_METER_H_
