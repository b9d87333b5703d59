// SPDX-License-Identifier: GPL-3.0-or-later
//
// What all calls share, and what each call does at its beginning and end.
#ifndef QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_
#define QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/service/base/service_error.h"
#include "server/service/calls/call_access.h"
#include "server/service/catalog/catalog.h"
#include "server/service/limits/admission.h"
#include "server/service/limits/connection_table.h"
#include "server/service/limits/quota.h"
#include "server/service/limits/stall_guard.h"
#include "server/service/logging/call_log.h"
#include "server/service/metrics/call_metrics.h"
#include "server/service/read/answer_read.h"
#include "server/storage/block_store.h"
#include "server/storage/fetch/fetch_times.h"

namespace quire {

// Everything a call works with; all of it outlives all calls. Thread-safe.
struct ServiceCore {
  // Calls get at archives through CallBooking::access() alone.
  const Catalog& catalog_of_all;
  // Null: everyone may do everything.
  const AccessControl* access_control;
  QuotaBook& quotas;
  // Of an identity whose rules have none, and of each address where there are
  // no identities.
  const ChangingQuota& default_quota;
  BlockStore& store;
  Admission& admission;
  CallMetrics& metrics;
  // Null: nothing is written about single calls.
  CallLog* call_log;
  StallGuard& stall_guard;
  ConnectionTable& connections;
  // Set once, when the server begins to drain.
  const std::atomic<bool>& draining;
  const v1::Limits limits;
  // Decoded bytes that one stream or batch reads ahead of its client at most.
  const uint64_t stream_window_size_bytes;
};

// Books one call: counted from construction to destruction, with the status
// that it ended with. Thread-compatible.
class CallBooking {
 public:
  CallBooking(ServiceCore& core, Method method,
              grpc::CallbackServerContext& context);

  ~CallBooking();

  CallBooking(const CallBooking&) = delete;
  CallBooking& operator=(const CallBooking&) = delete;

  // What the client may see. Where it has used up its quota, that is nothing.
  CallAccess& access() { return access_; }

  // Whether a stream may go on with its next message.
  // Errors: as CallAccess::CheckAgain(). ResourceExhausted  (QUOTA_EXCEEDED).
  absl::Status CheckAgain();

  // The client, as Admission and ClientIdOf() take it: its identity; or else
  // the address it comes from, or the user at the other end of a unix socket.
  const std::string& Client() const { return client_; }

  // What was asked for, and from when to when its blocks are read: for the log.
  void NoteRequest(const v1::ReadRequest& request);

  // For BlockFetch::times; null if nothing is logged.
  const std::shared_ptr<FetchTimes>& fetch_times() const {
    return fetch_times_;
  }

  void ReadBegins() {
    if (core_.call_log != nullptr) {
      read_began_ = absl::Now();
    }
  }

  void ReadEnds() {
    if (core_.call_log != nullptr) {
      read_duration_ = absl::Now() - read_began_;
    }
  }

  // Ends the call, whose reactor is `call`, with `status`. The call may be gone
  // when this returns.
  template <typename Reactor>
  void Finish(Reactor& call, const absl::Status& status) {
    const grpc::Status outgoing = ToGrpcStatus(status);
    code_ = outgoing.error_code();
    if (!status.ok()) {
      reason_ = ReasonOf(status);
      core_.metrics.CallFailed(reason_);
    }
    WaitForClient();
    call.Finish(outgoing);
  }

  void Sending(uint64_t size_bytes) {
    quota_use_.Sent(size_bytes);
    sent_bytes_ += size_bytes;
    core_.metrics.BytesSent(method_, size_bytes);
    if (ArchiveTraffic* const traffic = access_.traffic(); traffic != nullptr) {
      traffic->AddSent(size_bytes);
    }
  }

  // `size_bytes` is what the answer decodes to.
  void SendingAnswer(uint64_t size_bytes, const Answer& answer) {
    SendingAnswers(answer.encoding,
                   {.answer_count = 1,
                    .size_bytes = size_bytes,
                    .data_size_bytes = answer.data_size_bytes()});
  }

  // A counter that all threads share costs more than a short answer.
  void SendingAnswers(v1::WireEncoding encoding, const AnswerTally& answers) {
    Sending(answers.size_bytes);
    core_.metrics.AnswersSent(encoding, answers);
  }

  // The client must take what was handed to gRPC before the stall limit.
  void WaitForClient() {
    stall_entry_.Arm();
    if (core_.call_log != nullptr) {
      send_began_ = absl::Now();
    }
  }

  void ClientTookIt() {
    stall_entry_.Disarm();
    if (core_.call_log != nullptr) {
      send_duration_ += absl::Now() - send_began_;
      send_began_ = absl::InfiniteFuture();
    }
  }

 private:
  void WriteLog(absl::Time ended);

  ServiceCore& core_;
  const Method method_;
  const absl::Time started_;
  CallAccess access_;
  // Where it comes from.
  const std::string address_;
  // As Client() says.
  const std::string client_;
  QuotaBook::Use quota_use_;
  grpc::StatusCode code_ = grpc::StatusCode::CANCELLED;
  v1::ErrorReason reason_ = v1::ERROR_REASON_UNSPECIFIED;
  uint64_t sent_bytes_ = 0;
  // What follows is for the log alone.
  std::string trace_id_;
  std::string document_;
  std::shared_ptr<FetchTimes> fetch_times_;
  absl::Time read_began_;
  std::optional<absl::Duration> read_duration_;
  // In the infinite future while nothing is being sent.
  absl::Time send_began_ = absl::InfiniteFuture();
  absl::Duration send_duration_;
  StallGuard::Entry stall_entry_;
};

// Errors: Unavailable  DRAINING.
absl::Status RefuseIfDraining(const ServiceCore& core);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_
