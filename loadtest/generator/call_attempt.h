// SPDX-License-Identifier: Apache-2.0
//
// The common part of the calls in load_calls.h. Internal to them.
#ifndef QUIRE_LOADTEST_GENERATOR_CALL_ATTEMPT_H_
#define QUIRE_LOADTEST_GENERATOR_CALL_ATTEMPT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

#include "proto/error_details.h"

#include "client/quire/internal/wire_call.h"
#include "loadtest/generator/load_calls.h"

namespace quire {

// The parts of a gRPC status.
struct CallEnd {
  absl::Status status = {};
  // Empty if the server gave none.
  std::string reason = {};
  std::optional<absl::Duration> retry_delay = {};
};

// Calls `again` after the delay, on a thread of gRPC.
void After(absl::Duration delay, absl::AnyInvocable<void()> again);

// One attempt at a call: its context, its request, and its entry among the open
// calls, kept until destruction. It is cancelled if a message takes longer than
// the options' deadline.
// Thread-compatible.
class CallAttempt {
 public:
  // `is_unary`: gRPC enforces the deadline, to the millisecond.
  CallAttempt(LoadContext& load, bool is_unary);
  ~CallAttempt();
  CallAttempt(const CallAttempt&) = delete;
  CallAttempt& operator=(const CallAttempt&) = delete;

  LoadContext& load() { return load_; }

  grpc::ClientContext& context() { return context_; }

  // Null for identity.
  WireCall* wire() { return wire_.get(); }

  // Sets the archive and the encodings.
  template <typename Request>
  void FillIn(Request& request) const {
    request.set_archive(load_.options.archive);
    if (wire_ != nullptr) {
      wire_->FillIn(request);
    }
  }

  // Records a message. The time until WaitForMessage() does not count as
  // silence of the server.
  void NoteMessage();
  void WaitForMessage();

  // Cancels the call if it has waited since `since_ns` or longer. Thread-safe.
  void CancelIfSilent(uint64_t since_ns);

  // Returns the meaning of the call's status: DeadlineExceeded if it was
  // cancelled because the server was silent. Records if the server is silent on
  // all calls.
  CallEnd EndOf(const grpc::Status& status);

  // Returns the wait before a retry, if the server asks for one and there is
  // time; nullopt if the call has ended. Counts the retry.
  std::optional<absl::Duration> RetryDelay(const CallEnd& end,
                                           uint64_t due_ns) const;

 private:
  LoadContext& load_;
  grpc::ClientContext context_;
  // Time since which the server owes a message; UINT64_MAX while a message is
  // being checked.
  std::atomic<uint64_t> waiting_since_ns_ = 0;
  // Cancelled because the message took too long.
  std::atomic<bool> is_silent_ = false;
  const std::unique_ptr<WireCall> wire_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_CALL_ATTEMPT_H_
