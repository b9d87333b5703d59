// SPDX-License-Identifier: GPL-3.0-or-later
//
// State that all calls share, and the beginning and end of each call.
#ifndef QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_
#define QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/monotonic_time.h"
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

// Everything that calls use. All of it outlives all calls. Thread-safe.
struct ServiceCore {
  // Calls reach archives only through CallBooking::access().
  Catalog& catalog_of_all;
  // Null: everyone may do everything.
  const AccessControl* access_control;
  QuotaBook& quotas;
  // Limits of an identity that its rules do not set, and of each address if
  // there are no identities.
  const ChangingQuota& default_quota;
  BlockStore& store;
  Admission& admission;
  CallMetrics& metrics;
  // Null: single calls are not logged.
  CallLog* call_log;
  StallGuard& stall_guard;
  ConnectionTable& connections;
  // Set once, when the server begins to drain.
  const std::atomic<bool>& draining;
  const v1::Limits limits;
  // Upper bound on decoded bytes that a stream or batch reads ahead of its
  // client.
  const uint64_t stream_window_size_bytes;
};

// Counts one call from construction to destruction, with its final status.
// Thread-compatible.
class CallBooking {
 public:
  CallBooking(ServiceCore& core, Method method,
              grpc::CallbackServerContext& context);

  ~CallBooking();

  CallBooking(const CallBooking&) = delete;
  CallBooking& operator=(const CallBooking&) = delete;

  // Archives that the client may see: none once its quota is used up.
  CallAccess& access() { return access_; }

  // Checks whether a stream may continue with its next message.
  // Errors: as CallAccess::CheckAgain(). ResourceExhausted  (QUOTA_EXCEEDED).
  absl::Status CheckAgain();

  // Returns the client for Admission and ClientIdOf(): its identity, or else
  // its address, or the user at the other end of a unix socket.
  const std::string& Client() const { return client_; }

  // Records the request for the log.
  void NoteRequest(const v1::ReadRequest& request);

  // The same for the path of a deposited file.
  void NoteFile(absl::string_view path);

  // Returns the value for BlockFetch::times; null if nothing is logged.
  const std::shared_ptr<FetchTimes>& fetch_times() const {
    return fetch_times_;
  }

  void ReadBegins() {
    if (core_.call_log != nullptr) {
      read_began_ = MonotonicNow();
    }
  }

  void ReadEnds() {
    if (core_.call_log != nullptr) {
      read_duration_ = MonotonicNow() - read_began_;
    }
  }

  // Ends the call, whose reactor is `call`, with `status`. The call may be
  // destroyed when this returns.
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

  // Counts an answer, or a message of a stream, for the quota, the metrics and
  // the log: the decoded size of its data, or the size of the message if that
  // is a list or a description.
  void Sending(uint64_t size_bytes) {
    quota_use_.Sent(size_bytes);
    sent_bytes_ += size_bytes;
    core_.metrics.BytesSent(method_, size_bytes);
    if (ArchiveTraffic* const traffic = access_.traffic(); traffic != nullptr) {
      traffic->AddSent(size_bytes);
    }
  }

  // `size_bytes` is the decoded size of the answer.
  void SendingAnswer(uint64_t size_bytes, const Answer& answer) {
    SendingAnswers(answer.encoding,
                   {.answer_count = 1,
                    .size_bytes = size_bytes,
                    .data_size_bytes = answer.data_size_bytes()});
  }

  // Counts many answers at once: a counter shared by all threads costs more
  // than a short answer.
  void SendingAnswers(v1::WireEncoding encoding, const AnswerTally& answers) {
    Sending(answers.size_bytes);
    core_.metrics.AnswersSent(encoding, answers);
  }

  // Starts the stall limit: the client must take the data handed to gRPC by
  // then.
  void WaitForClient() {
    stall_entry_.Arm();
    if (core_.call_log != nullptr) {
      send_began_ = MonotonicNow();
    }
  }

  void ClientTookIt() {
    stall_entry_.Disarm();
    if (core_.call_log != nullptr) {
      send_duration_ += MonotonicNow() - send_began_;
      send_began_ = absl::InfiniteFuture();
    }
  }

 private:
  // `peer` is context.peer(), which takes two allocations.
  CallBooking(ServiceCore& core, Method method,
              grpc::CallbackServerContext& context, const std::string& peer);

  void WriteLog(absl::Time ended);

  ServiceCore& core_;
  const Method method_;
  const absl::Time started_;
  CallAccess access_;
  const std::string address_;
  // Result of Client().
  const std::string client_;
  QuotaBook::Use quota_use_;
  grpc::StatusCode code_ = grpc::StatusCode::CANCELLED;
  v1::ErrorReason reason_ = v1::ERROR_REASON_UNSPECIFIED;
  uint64_t sent_bytes_ = 0;
  // The fields below are for the log only.
  std::string trace_id_;
  std::string parent_id_;
  std::string document_;
  std::shared_ptr<FetchTimes> fetch_times_;
  absl::Time read_began_;
  std::optional<absl::Duration> read_duration_;
  // Infinite future while nothing is being sent.
  absl::Time send_began_ = absl::InfiniteFuture();
  absl::Duration send_duration_;
  StallGuard::Entry stall_entry_;
};

// Errors: Unavailable  DRAINING.
absl::Status RefuseIfDraining(const ServiceCore& core);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CALL_CONTEXT_H_
