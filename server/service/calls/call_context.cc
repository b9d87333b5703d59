// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/call_context.h"

#include "server/service/base/service_error.h"
#include "server/service/limits/client_name.h"

namespace quire {

std::string ClientOf(const ServiceCore& core,
                     const grpc::CallbackServerContext& context) {
  return core.unix_peers.NameOf(ClientNameOf(context.peer()));
}

absl::Status RefuseIfDraining(const ServiceCore& core) {
  if (core.draining.load(std::memory_order_relaxed)) {
    return ServiceError(absl::StatusCode::kUnavailable, v1::DRAINING,
                        "the server is shutting down");
  }
  return absl::OkStatus();
}

}  // namespace quire
