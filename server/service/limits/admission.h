// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bounds the bytes of answers that clients hold in memory.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_
#define QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"
#include "server/service/limits/fresh_answers.h"
#include "server/service/limits/retry_pacer.h"

namespace quire {

// Returns the number of a client, from its name as Admission takes it, for
// other resources that are divided among clients. Equal names have equal
// numbers.
uint64_t ClientIdOf(absl::string_view client);

// Counts the bytes that answers hold from before they are read until gRPC has
// sent them, over all calls and for each client (ClientNameOf()). A client that
// does not read its answers uses up only its own share. Limits by use:
//
//   all of it       single answers
//   three quarters  the minimum of streams, so that single answers are served
//                   whatever streams are open and unread
//   half            what makes streams faster: wider windows, items ahead;
//                   so that another stream can always be opened
//   an eighth       wider windows of streams whose client has not shown yet
//                   that it reads
//
// The first three also apply to the share of each client, which may be an
// address with many connections. Under the last two a client may hold as much
// as it leaves free: a second client finds memory, and a client above its share
// returns memory as it proceeds (Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", 1998).
//
// A single answer whose bytes are in use waits for them, at most kTurnWaitMax,
// before it is refused. Clients take turns, one answer per turn; answers of one
// client are admitted in order of arrival. An answer whose client has used its
// share is skipped, also its share of fresh answers (FreshAnswers). An answer
// that waits for bytes of other clients is not, so that small answers cannot
// starve large ones.
// Thread-safe; never blocks.
class Admission {
 public:
  enum class Use {
    // Held until it is sent.
    kSingleAnswer,
    // Held as long as its client likes.
    kStream,
  };

  static constexpr absl::Duration kTurnWaitMax = absl::Seconds(1);
  // Limits on waiting answers and on their memory (requests, descriptions and
  // plans), which is part of MemoryPlan::requests_bytes. A client that has
  // answers waiting may add one as long as others could wait in the same number
  // and size: one client uses at most half, and never refuses all others.
  static constexpr size_t kWaitingAnswersMax = 4096;
  static constexpr uint64_t kWaitingBytesMax = 2 << 20;

  // `clock` times waits and retries.
  // REQUIRES: 0 < client_max_bytes <= total_max_bytes.
  Admission(uint64_t total_max_bytes, uint64_t client_max_bytes,
            std::function<absl::Time()> clock = MonotonicNow)
      : total_max_bytes_(total_max_bytes),
        client_max_bytes_(client_max_bytes),
        client_streams_max_bytes_(StreamShareBytes(client_max_bytes)),
        clock_(std::move(clock)),
        pacer_(total_max_bytes) {}

  // REQUIRES: no answer waits.
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Returns the part of a client's share for all of its streams.
  static uint64_t StreamShareBytes(uint64_t client_max_bytes) {
    return client_max_bytes - client_max_bytes / 4;
  }

  // A claim on some bytes, returned on destruction. Must not outlive the
  // Admission. Thread-compatible.
  class Ticket {
   public:
    Ticket() = default;

    Ticket(Ticket&& other) noexcept { *this = std::move(other); }

    Ticket& operator=(Ticket&& other) noexcept;

    ~Ticket() { Release(); }

    // Claims more. Errors: as Admit(); the ticket is then unchanged.
    // REQUIRES: it came from Admit() and was not released.
    absl::Status Grow(uint64_t size_bytes);
    // Claims more for optional use, out of half of all memory. Returns false if
    // that is in use; the ticket is then unchanged, and no refusal is counted.
    // REQUIRES: as Grow().
    bool TryGrow(uint64_t size_bytes);
    // Claims up to `size_bytes` in total, or returns bytes down to
    // `least_bytes`, as fairness requires.
    // REQUIRES: as Grow().
    void Fit(uint64_t least_bytes, uint64_t size_bytes);
    // Returns some bytes. REQUIRES: the ticket holds them.
    void Shrink(uint64_t size_bytes);
    // Claims or returns bytes, so that the ticket holds `size_bytes`.
    // Errors: as Grow().
    // REQUIRES: as Grow().
    absl::Status Resize(uint64_t size_bytes);
    // Returns all bytes.
    void Release();

    uint64_t size_bytes() const { return size_bytes_; }

   private:
    friend class Admission;

    Ticket(Admission* admission, std::string client, uint64_t size_bytes,
           Use use, FreshAnswers::Id fresh_id = 0)
        : admission_(admission),
          client_(std::move(client)),
          size_bytes_(size_bytes),
          use_(use),
          fresh_id_(fresh_id) {}

    Admission* admission_ = nullptr;
    std::string client_;
    uint64_t size_bytes_ = 0;
    Use use_ = Use::kSingleAnswer;
    // 0: was not admitted in turn.
    FreshAnswers::Id fresh_id_ = 0;
  };

  // Errors: ResourceExhausted  SERVER_BUSY: the bytes are in use; retry.
  //                            LIMIT_EXCEEDED: more than one client may ever
  //                            hold for this use.
  absl::StatusOr<Ticket> Admit(absl::string_view client, uint64_t size_bytes,
                               Use use) ABSL_LOCKS_EXCLUDED(mutex_);
  // For a stream that needs `least_bytes` and prefers to begin with
  // `start_bytes`: returns a ticket of a size between the two.
  // Errors: as Admit().
  absl::StatusOr<Ticket> AdmitWindow(absl::string_view client,
                                     uint64_t least_bytes, uint64_t start_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Identifies a waiting answer.
  using TurnId = uint64_t;
  // Receives the ticket, or SERVER_BUSY or CALL_CANCELLED. Called once, without
  // Admission's lock, by the thread that returns the bytes: it must not block,
  // and hands longer work to another thread.
  using Admitted = std::function<void(absl::StatusOr<Ticket>)>;

  // Admit() for a single answer. Returns nullopt if the answer must wait for
  // its turn, `id`: `admitted` is then called, perhaps before this returns.
  // Until then the answer keeps `waiting_bytes` of memory.
  std::optional<absl::StatusOr<Ticket>> AdmitInTurn(
      absl::string_view client, uint64_t size_bytes, uint64_t waiting_bytes,
      Admitted admitted, TurnId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a wait with Cancelled; no effect if it has ended.
  void Withdraw(TurnId id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses the answers whose wait is over.
  void EndLateTurns() ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts a thread that calls EndLateTurns() in time. REQUIRES: called at most
  // once.
  void StartTimer() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t waiting_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t in_flight_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t rejected_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Waiting answers of one client, in order.
  struct Line {
    std::string client;
    std::deque<TurnId> turns;
    uint64_t waiting_bytes = 0;
  };

  struct Waiter {
    std::list<Line>::iterator line;
    uint64_t size_bytes = 0;
    uint64_t waiting_bytes = 0;
    absl::Time due;
    Admitted admitted;
  };

  // Calls to make after the lock is released.
  using Calls = std::vector<std::function<void()>>;

  static void Run(const Calls& calls);

  absl::Status Claim(absl::string_view client, uint64_t size_bytes, Use use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors: ResourceExhausted  LIMIT_EXCEEDED.
  static absl::Status CheckShare(uint64_t size_bytes,
                                 uint64_t client_bytes_max);
  // Counts a refusal. Returns ResourceExhausted, SERVER_BUSY.
  absl::Status Refuse(absl::string_view client, uint64_t size_bytes,
                      uint64_t client_bytes_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fit(Ticket& ticket, uint64_t least_bytes, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Admits waiting answers whose bytes are free now.
  void GiveTurns(Calls& calls) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes an answer from its line. Returns its callback.
  Admitted TakeOut(std::map<TurnId, Waiter>::iterator waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the client's own answers do not keep an answer of it waiting.
  bool HasShare(absl::string_view client, uint64_t size_bytes, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if an answer of `client` need not wait for the turns of others.
  bool IsNext(absl::string_view client, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if another answer of `client` may wait.
  bool HasRoomInLine(absl::string_view client, uint64_t waiting_bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TurnId StandInLine(absl::string_view client, uint64_t size_bytes,
                     uint64_t waiting_bytes, Admitted admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunTimer() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryClaim(absl::string_view client, uint64_t size_bytes,
                uint64_t total_bytes_max, uint64_t client_bytes_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the fresh answer `fresh_id` too, if that is not 0.
  void Return(absl::string_view client, uint64_t size_bytes,
              FreshAnswers::Id fresh_id = 0) ABSL_LOCKS_EXCLUDED(mutex_);
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
  // Since construction.
  uint64_t returned_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t rejected_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Single answers that were admitted in turn.
  FreshAnswers fresh_ ABSL_GUARDED_BY(mutex_);
  // In order of arrival.
  std::map<TurnId, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  TurnId last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // No line is empty; the first has the next turn.
  std::list<Line> lines_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::list<Line>::iterator> line_of_client_
      ABSL_GUARDED_BY(mutex_);
  // Signals that the first answer waits, or that the timer should stop.
  CondVar timer_changed_;
  bool timer_stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
  // Only clients that hold bytes.
  absl::flat_hash_map<std::string, uint64_t> client_bytes_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_
