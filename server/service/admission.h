// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who may hold how many bytes of answers in memory.
#ifndef QUIRE_SERVER_SERVICE_ADMISSION_H_
#define QUIRE_SERVER_SERVICE_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/mutex.h"

namespace quire {

// The client of a call as a number, from its name as Admission takes it: for
// whoever divides something else among clients. Equal names, equal numbers.
uint64_t ClientIdOf(absl::string_view client);

// Counts the bytes that answers hold from before they are read until gRPC has
// sent them, over all calls and for each client (a connection: what
// ServerContext::peer() says). A client that does not read its answers uses up
// its own share and no more. Several such clients may hold all that streams may
// have; a quarter is left to single answers, so that readers of those are
// served whoever has opened streams and stopped reading them.
// Thread-safe; never blocks.
class Admission {
 public:
  enum class Use {
    // Held until it is sent.
    kSingleAnswer,
    // A window, held for as long as its client likes.
    kStream,
  };

  // REQUIRES: 0 < client_max_bytes <= total_max_bytes.
  Admission(uint64_t total_max_bytes, uint64_t client_max_bytes)
      : total_max_bytes_(total_max_bytes),
        client_max_bytes_(client_max_bytes) {}

  // A claim on some bytes; given back when destroyed. Must not outlive the
  // Admission. Thread-compatible.
  class Ticket {
   public:
    Ticket() = default;

    Ticket(Ticket&& other) noexcept { *this = std::move(other); }

    Ticket& operator=(Ticket&& other) noexcept;

    ~Ticket() { Release(); }

    // Claims more. Errors: as Admit(); the ticket is then as before.
    absl::Status Grow(uint64_t size_bytes);
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
  //                            hold.
  absl::StatusOr<Ticket> Admit(absl::string_view client, uint64_t size_bytes,
                               Use use) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t in_flight_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t rejected_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Claim(absl::string_view client, uint64_t size_bytes, Use use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(absl::string_view client, uint64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t total_max_bytes_;
  const uint64_t client_max_bytes_;
  mutable Mutex mutex_;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t rejected_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Only clients that hold something.
  absl::flat_hash_map<std::string, uint64_t> client_bytes_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ADMISSION_H_
