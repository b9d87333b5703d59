// SPDX-License-Identifier: GPL-3.0-or-later
//
// Divides the processors among clients that ask at the same time.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_FRESH_ANSWERS_H_
#define QUIRE_SERVER_SERVICE_LIMITS_FRESH_ANSWERS_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace quire {

// Single answers that have just been admitted. gRPC writes each answer on the
// threads that also receive the calls, so a client with hundreds of answers
// between admission and the network delays every call of the others. While
// another client asks, a client therefore may have kBytesMax of fresh answers;
// the next one waits. An answer is fresh until it is sent, at most
// kFreshDuration: an older one waits for its network and occupies no thread.
// Clients are numbers (ClientIdOf()). Times never decrease. Thread-compatible.
class FreshAnswers {
 public:
  static constexpr uint64_t kBytesMax = 2 << 20;
  static constexpr absl::Duration kFreshDuration = absl::Milliseconds(25);
  // How long after its last call a client counts as asking.
  static constexpr absl::Duration kAskingDuration = absl::Milliseconds(100);

  using Id = uint64_t;

  // Notes a call of `client`.
  void NoteCall(uint64_t client, absl::Time now);

  // True if an answer of `client` need not wait for its fresh ones. A client
  // without fresh answers may always begin one, whatever its size.
  bool MayBegin(uint64_t client, uint64_t size_bytes, absl::Time now);

  // Adds an answer. Returns its number, never 0.
  Id Begin(uint64_t client, uint64_t size_bytes, absl::Time now);

  // Removes an answer, once; no effect if it is no longer fresh.
  void End(Id id);

 private:
  struct Call {
    uint64_t client = 0;
    absl::Time time;
  };

  struct Answer {
    uint64_t client = 0;
    uint64_t size_bytes = 0;
    absl::Time until;
    bool ended = false;
  };

  void EndFirst();
  void EndOld(absl::Time now);
  void Subtract(const Answer& answer);

  // The last call, and the last one of any other client.
  std::optional<Call> last_;
  std::optional<Call> last_of_others_;
  // In order of their numbers; those in the middle may have ended.
  std::deque<Answer> answers_;
  Id first_id_ = 1;
  // Only clients that have fresh bytes.
  absl::flat_hash_map<uint64_t, uint64_t> bytes_of_client_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_FRESH_ANSWERS_H_
