// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who may hold how many bytes of answers in memory.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_
#define QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/service/limits/retry_pacer.h"

namespace quire {

// The client of a call as a number, from its name as Admission takes it: for
// other resources that are divided among clients. Equal names, equal numbers.
uint64_t ClientIdOf(absl::string_view client);

// Counts the bytes that answers hold from before they are read until gRPC has
// sent them, over all calls and for each client (ClientNameOf()). A client that
// does not read its answers uses up its own share and no more. What may be
// taken for what:
//
//   all of it       single answers
//   three quarters  what streams cannot do without, so that readers of single
//                   answers are served whatever streams are open and unread
//   half            what streams do better with: a wider window, items ahead;
//                   so that another stream can always be opened
//   an eighth       wider windows of streams that have yet to show that their
//                   client reads
//
// The first three hold of the share of each client likewise: it may be an
// address with many connections. Of the last two a client has as much as it
// leaves to others: one that comes second finds something, and one that has
// more gives it back as it goes on (Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", 1998).
// Thread-safe; never blocks.
class Admission {
 public:
  enum class Use {
    // Held until it is sent.
    kSingleAnswer,
    // Held for as long as its client likes.
    kStream,
  };

  // `clock` only serves to say when to come back.
  // REQUIRES: 0 < client_max_bytes <= total_max_bytes.
  Admission(uint64_t total_max_bytes, uint64_t client_max_bytes,
            std::function<absl::Time()> clock = absl::Now)
      : total_max_bytes_(total_max_bytes),
        client_max_bytes_(client_max_bytes),
        client_streams_max_bytes_(StreamShareBytes(client_max_bytes)),
        clock_(std::move(clock)),
        pacer_(total_max_bytes) {}

  // Of what one client may hold, the part for its streams together.
  static uint64_t StreamShareBytes(uint64_t client_max_bytes) {
    return client_max_bytes - client_max_bytes / 4;
  }

  // A claim on some bytes; given back when destroyed. Must not outlive the
  // Admission. Thread-compatible.
  class Ticket {
   public:
    Ticket() = default;

    Ticket(Ticket&& other) noexcept { *this = std::move(other); }

    Ticket& operator=(Ticket&& other) noexcept;

    ~Ticket() { Release(); }

    // Claims more. Errors: as Admit(); the ticket is then as before.
    // REQUIRES: it came from Admit() and was not released.
    absl::Status Grow(uint64_t size_bytes);
    // Claims more of what its holder can do without: of half of all memory.
    // False if that is in use; the ticket is then as before, and no one counts
    // as refused.
    // REQUIRES: as Grow().
    bool TryGrow(uint64_t size_bytes);
    // Claims up to `size_bytes`, or gives some back, but not below
    // `least_bytes`: whichever fairness asks for.
    // REQUIRES: as Grow().
    void Fit(uint64_t least_bytes, uint64_t size_bytes);
    // Gives some back. REQUIRES: it is there.
    void Shrink(uint64_t size_bytes);
    // Gives all back.
    void Release();

    uint64_t size_bytes() const { return size_bytes_; }

   private:
    friend class Admission;

    Ticket(Admission* admission, std::string client, uint64_t size_bytes,
           Use use)
        : admission_(admission),
          client_(std::move(client)),
          size_bytes_(size_bytes),
          use_(use) {}

    Admission* admission_ = nullptr;
    std::string client_;
    uint64_t size_bytes_ = 0;
    Use use_ = Use::kSingleAnswer;
  };

  // Errors: ResourceExhausted  SERVER_BUSY: the bytes are in use; come back.
  //                            LIMIT_EXCEEDED: more than one client may ever
  //                            hold for such a use.
  absl::StatusOr<Ticket> Admit(absl::string_view client, uint64_t size_bytes,
                               Use use) ABSL_LOCKS_EXCLUDED(mutex_);
  // For a stream that needs `least_bytes` and would begin with `start_bytes`
  // better: a ticket of something from the one to the other.
  // Errors: as Admit().
  absl::StatusOr<Ticket> AdmitWindow(absl::string_view client,
                                     uint64_t least_bytes, uint64_t start_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t in_flight_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t rejected_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Claim(absl::string_view client, uint64_t size_bytes, Use use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryClaim(absl::string_view client, uint64_t size_bytes,
                uint64_t total_bytes_max, uint64_t client_bytes_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(absl::string_view client, uint64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnLocked(absl::string_view client, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HeldBy(absl::string_view client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t LeewayOf(absl::string_view client, uint64_t room_bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t total_max_bytes_;
  const uint64_t client_max_bytes_;
  const uint64_t client_streams_max_bytes_;
  const std::function<absl::Time()> clock_;
  mutable Mutex mutex_;
  RetryPacer pacer_ ABSL_GUARDED_BY(mutex_);
  // Of all times.
  uint64_t returned_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t rejected_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Only clients that hold something.
  absl::flat_hash_map<std::string, uint64_t> client_bytes_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_
