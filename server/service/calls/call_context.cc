// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/call_context.h"

#include "server/service/base/service_error.h"
#include "server/service/limits/client_name.h"

namespace quire {

std::string CallBooking::Client() const {
  std::string identity = access_.identity();
  return identity.empty()
             ? core_.unix_peers.NameOf(ClientNameOf(context_.peer()))
             : identity;
}

absl::Status RefuseIfDraining(const ServiceCore& core) {
  if (core.draining.load(std::memory_order_relaxed)) {
    return ServiceError(absl::StatusCode::kUnavailable, v1::DRAINING,
                        "the server is shutting down");
  }
  return absl::OkStatus();
}

}  // namespace quire
