// SPDX-License-Identifier: Apache-2.0
//
// What the calls of load_calls.h have in common. Internal to them.
#ifndef QUIRE_LOADTEST_GENERATOR_LOAD_CALL_BASE_H_
#define QUIRE_LOADTEST_GENERATOR_LOAD_CALL_BASE_H_

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
#include "loadtest/report/load_recorder.h"

namespace quire {

// A status of gRPC, taken apart.
struct CallEnd {
  absl::Status status = {};
  // Empty if the server gave none.
  std::string reason = {};
  std::optional<absl::Duration> retry_delay = {};
};

// Calls `again` after the delay, on a thread of gRPC.
void After(absl::Duration delay, absl::AnyInvocable<void()> again);

// One attempt at a call: the context, what it asks for, and its place among the
// open calls, which it has until it is destroyed. It is cancelled if a message
// takes longer than the options' deadline.
// Thread-compatible.
class CallAttempt {
 public:
  // `is_unary`: gRPC watches over the deadline, to the millisecond.
  CallAttempt(LoadContext& load, bool is_unary);
  ~CallAttempt();
  CallAttempt(const CallAttempt&) = delete;
  CallAttempt& operator=(const CallAttempt&) = delete;

  LoadContext& load() { return load_; }

  grpc::ClientContext& context() { return call_.context; }

  // Null for identity.
  WireCall* wire() { return wire_.get(); }

  // Fills in the archive and the encodings.
  template <typename Request>
  void FillIn(Request& request) const {
    request.set_archive(load_.options.archive);
    if (wire_ != nullptr) {
      wire_->FillIn(request);
    }
  }

  // A message came. What is done with it until WaitForMessage() does not count
  // as the server's silence.
  void NoteMessage();
  void WaitForMessage();

  // What the call's status means: DeadlineExceeded if it was cancelled because
  // the server was silent. Notes whether the server is so on all calls.
  CallEnd EndOf(const grpc::Status& status);

  // How long to wait before the call is made again, if the server asks for that
  // and there is still time; nullopt: the call has ended for good. Counts it.
  std::optional<absl::Duration> RetryDelay(const CallEnd& end,
                                           uint64_t due_ns) const;

  // Whether the call failed because the run has ended, which is no error.
  bool WasCancelled(const CallEnd& end) const;

 private:
  LoadContext& load_;
  OpenCall call_;
  const std::unique_ptr<WireCall> wire_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_CALL_BASE_H_
