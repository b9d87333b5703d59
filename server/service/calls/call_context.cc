// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/call_context.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/trace_parent.h"
#include "server/service/base/service_error.h"
#include "server/service/limits/client_name.h"

namespace quire {
namespace {

bool IsStream(Method method) {
  switch (method) {
    case Method::kReadStream:
    case Method::kBatchRead:
    case Method::kScan:
    case Method::kReadFile:
    case Method::kGetDictionary:
      return true;
    case Method::kListArchives:
    case Method::kGetArchive:
    case Method::kRead:
    case Method::kListDocuments:
    case Method::kListCaptures:
    case Method::kListFiles:
    case Method::kGetSymbolTable:
      return false;
  }
  return false;
}

constexpr size_t kDocumentSizeBytesMax = 1024;
constexpr char kExpired[] = "CREDENTIALS_EXPIRED";

// Returns the header, which is valid as long as `context`; empty if there is
// none.
absl::string_view TraceParentIn(const grpc::CallbackServerContext& context) {
  const auto& headers = context.client_metadata();
  const auto found = headers.find("traceparent");
  return found == headers.end()
             ? absl::string_view()
             : absl::string_view(found->second.data(), found->second.size());
}

}  // namespace

CallBooking::CallBooking(ServiceCore& core, Method method,
                         grpc::CallbackServerContext& context)
    : CallBooking(core, method, context, context.peer()) {}

CallBooking::CallBooking(ServiceCore& core, Method method,
                         grpc::CallbackServerContext& context,
                         const std::string& peer)
    : core_(core),
      method_(method),
      started_(MonotonicNow()),
      access_(core.catalog_of_all, core.access_control, context, peer),
      address_(core.connections.ClientOf(ClientNameOf(peer))),
      client_(access_.identity().empty() ? ClientShareOf(address_)
                                         : access_.identity()),
      stall_entry_(core.stall_guard, context) {
  core_.connections.CallBegan(peer);
  if (core_.call_log != nullptr) {
    const absl::string_view trace_parent = TraceParentIn(context);
    trace_id_ = std::string(TraceIdOf(trace_parent));
    parent_id_ = std::string(ParentIdOf(trace_parent));
    fetch_times_ = std::make_shared<FetchTimes>();
  }
  const Quota quota = access_.quota(core.default_quota.Get());
  if (access_.status().ok() && quota.is_set()) {
    absl::StatusOr<QuotaBook::Use> use =
        core.quotas.Begin(client_, quota, IsStream(method));
    if (use.ok()) {
      quota_use_ = *std::move(use);
    } else {
      access_.Refuse(use.status());
    }
  }
  core_.metrics.CallStarted(method);
}

CallBooking::~CallBooking() {
  const absl::Time ended = MonotonicNow();
  core_.metrics.CallEnded(method_, code_, ended - started_);
  if (ArchiveTraffic* const traffic = access_.traffic(); traffic != nullptr) {
    traffic->AddCall();
  }
  if (const std::string& identity = access_.identity(); !identity.empty()) {
    core_.metrics.IdentityServed(identity, sent_bytes_);
  }
  if (core_.call_log != nullptr) {
    WriteLog(ended);
  }
}

void CallBooking::NoteRequest(const v1::ReadRequest& request) {
  if (core_.call_log != nullptr && core_.call_log->wants_documents() &&
      request.document().has_id()) {
    document_ = request.document().id().substr(0, kDocumentSizeBytesMax);
  }
}

void CallBooking::NoteFile(absl::string_view path) {
  if (core_.call_log != nullptr && core_.call_log->wants_documents()) {
    document_ = std::string(path.substr(0, kDocumentSizeBytesMax));
  }
}

void CallBooking::WriteLog(absl::Time ended) {
  const std::string archive = access_.asked();
  const FetchTime fetch_time = fetch_times_->sum();
  core_.call_log->Write(
      {.time = absl::Now(),
       .identity = access_.identity(),
       .address = address_,
       .method = MethodName(method_),
       .archive = archive,
       .document = document_,
       .size_bytes = sent_bytes_,
       .code = CodeName(static_cast<int>(code_)),
       // Clients get less detail.
       .reason = access_.has_expired() ? absl::string_view(kExpired)
                 : reason_ == v1::ERROR_REASON_UNSPECIFIED
                     ? absl::string_view()
                     : absl::string_view(v1::ErrorReason_Name(reason_)),
       .duration = ended - started_,
       .read_duration = read_duration_,
       .fetch_count = fetch_times_->fetch_count(),
       .queue_duration = absl::FromChrono(fetch_time.queue),
       .device_duration = absl::FromChrono(fetch_time.device),
       .decode_duration = absl::FromChrono(fetch_time.decode),
       .send_duration =
           send_duration_ +
           (send_began_ < ended ? ended - send_began_ : absl::ZeroDuration()),
       .trace_id = trace_id_,
       .parent_id = parent_id_});
}

absl::Status CallBooking::CheckAgain() {
  QUIRE_RETURN_IF_ERROR(access_.CheckAgain());
  return quota_use_.Check();
}

absl::Status RefuseIfDraining(const ServiceCore& core) {
  if (core.draining.load(std::memory_order_relaxed)) {
    return ServiceError(absl::StatusCode::kUnavailable, v1::DRAINING,
                        "the server is shutting down");
  }
  return absl::OkStatus();
}

}  // namespace quire
