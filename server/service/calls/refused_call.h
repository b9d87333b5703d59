// SPDX-License-Identifier: GPL-3.0-or-later
//
// What becomes of a call that there is no memory for.
#ifndef QUIRE_SERVER_SERVICE_CALLS_REFUSED_CALL_H_
#define QUIRE_SERVER_SERVICE_CALLS_REFUSED_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/memory_guard.h"
#include "server/service/base/service_error.h"

namespace quire {

// Ends its call at once. Deletes itself when the call is over.
template <typename Reactor>
class RefusedCall : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) {
    this->Finish(ToGrpcStatus(status));
  }

  void OnDone() override { delete this; }
};

// What `start` returns, the reactor of a call; where it throws std::bad_alloc,
// one that ends the call with ResourceExhausted. gRPC would say that there is
// no such method. REQUIRES: nothing has begun where `start` throws.
template <typename Reactor, typename Start>
Reactor* StartOrRefuse(Start start) {
  const absl::StatusOr<Reactor*> call = OrNoMemory(
      "begin a call", [&]() -> absl::StatusOr<Reactor*> { return start(); });
  return call.ok() ? *call : new RefusedCall<Reactor>(call.status());
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_REFUSED_CALL_H_
