// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/call_context.h"

#include <utility>

#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"
#include "server/service/limits/client_name.h"

namespace quire {

namespace {

bool IsStream(Method method) {
  switch (method) {
    case Method::kReadStream:
    case Method::kBatchRead:
    case Method::kScan:
    case Method::kGetDictionary:
      return true;
    case Method::kListArchives:
    case Method::kGetArchive:
    case Method::kRead:
    case Method::kListDocuments:
    case Method::kGetSymbolTable:
      return false;
  }
  return false;
}

}  // namespace

CallBooking::CallBooking(ServiceCore& core, Method method,
                         grpc::CallbackServerContext& context)
    : core_(core),
      context_(context),
      method_(method),
      started_(absl::Now()),
      access_(core.catalog_of_all, core.access_control, context),
      stall_entry_(core.stall_guard, context) {
  core_.metrics.CallStarted(method);
  const Quota quota = access_.quota(core.default_quota);
  if (!access_.status().ok() || !quota.is_set()) {
    return;
  }
  absl::StatusOr<QuotaBook::Use> use =
      core.quotas.Begin(Client(), quota, IsStream(method));
  if (use.ok()) {
    quota_use_ = *std::move(use);
  } else {
    access_.Refuse(use.status());
  }
}

absl::Status CallBooking::CheckAgain() {
  QUIRE_RETURN_IF_ERROR(access_.CheckAgain());
  return quota_use_.Check();
}

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
