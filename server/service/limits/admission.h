// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who may hold how many bytes of answers in memory.
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
//
// A single answer whose bytes are in use waits for them, for kTurnWaitMax at
// most, before it is refused. Clients take turns, each with one answer; of one
// client the first to come is the first to be admitted. An answer whose client
// has its share in use is passed over; one that waits for what others hold is
// not, so that small answers cannot starve large ones.
// Thread-safe; never blocks.
class Admission {
 public:
  enum class Use {
    // Held until it is sent.
    kSingleAnswer,
    // Held for as long as its client likes.
    kStream,
  };

  static constexpr absl::Duration kTurnWaitMax = absl::Seconds(1);
  // Bounds on what waits: answers, and their memory (requests, descriptions and
  // plans), which MemoryPlan::requests_bytes has space for.
  static constexpr size_t kWaitingAnswersMax = 4096;
  static constexpr uint64_t kWaitingBytesMax = 2 << 20;

  // `clock` tells when to come back, and when a wait is over.
  // REQUIRES: 0 < client_max_bytes <= total_max_bytes.
  Admission(uint64_t total_max_bytes, uint64_t client_max_bytes,
            std::function<absl::Time()> clock = absl::Now)
      : total_max_bytes_(total_max_bytes),
        client_max_bytes_(client_max_bytes),
        client_streams_max_bytes_(StreamShareBytes(client_max_bytes)),
        clock_(std::move(clock)),
        pacer_(total_max_bytes) {}

  // REQUIRES: no answer waits.
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

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

  // Names an answer that waits.
  using TurnId = uint64_t;
  // Gets the ticket, or SERVER_BUSY or CALL_CANCELLED. Called once,
  // without Admission's lock, by the thread that returns the bytes that were
  // waited for: it must not block, and hands longer work to another thread.
  using Admitted = std::function<void(absl::StatusOr<Ticket>)>;

  // Admit() for a single answer. Unset if it has to wait for its turn, as `id`:
  // `admitted` is then called, perhaps before this returns, and until then the
  // answer keeps `waiting_bytes` of memory.
  std::optional<absl::StatusOr<Ticket>> AdmitInTurn(
      absl::string_view client, uint64_t size_bytes, uint64_t waiting_bytes,
      Admitted admitted, TurnId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a wait with Cancelled; nothing if it has ended.
  void Withdraw(TurnId id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses the answers that have waited for too long.
  void EndLateTurns() ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a thread call EndLateTurns() in time. REQUIRES: is called once at most.
  void StartTimer() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t waiting_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t in_flight_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t rejected_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Answers of one client that wait, in order.
  struct Line {
    std::string client;
    std::deque<TurnId> turns;
  };

  struct Waiter {
    std::list<Line>::iterator line;
    uint64_t size_bytes = 0;
    uint64_t waiting_bytes = 0;
    absl::Time due;
    Admitted admitted;
  };

  // Calls to be made once the lock is released.
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
  // Admits those that wait and may hold their bytes now.
  void GiveTurns(Calls& calls) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes an answer out of its line. Returns what to call.
  Admitted TakeOut(std::map<TurnId, Waiter>::iterator waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TurnId StandInLine(absl::string_view client, uint64_t size_bytes,
                     uint64_t waiting_bytes, Admitted admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunTimer() ABSL_LOCKS_EXCLUDED(mutex_);
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
  // By age.
  std::map<TurnId, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  TurnId last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // No line is empty; the first has the next turn.
  std::list<Line> lines_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::list<Line>::iterator> line_of_client_
      ABSL_GUARDED_BY(mutex_);
  // The first answer waits, or the timer is to stop.
  CondVar timer_changed_;
  bool timer_stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
  // Only clients that hold something.
  absl::flat_hash_map<std::string, uint64_t> client_bytes_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_ADMISSION_H_
