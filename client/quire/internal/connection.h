// SPDX-License-Identifier: Apache-2.0
//
// What all calls of one client share: the channel and how calls are set up.
// Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_CONNECTION_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

#include "proto/quire/v1/archive.grpc.pb.h"
#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/internal/table_store.h"
#include "client/quire/internal/wire_call.h"
#include "codecs/base/mutex.h"

namespace quire {

// Thread-safe.
class Connection : private TableSource {
 public:
  // Errors: as Client::Connect().
  static absl::StatusOr<std::shared_ptr<Connection>> Open(
      ClientOptions options);

  v1::Archive::Stub& stub() const { return *stub_; }

  const ClientOptions& options() const { return options_; }

  // A call with one answer: makes it with a context of its own until it is
  // answered, as long as the server is there again in time; all attempts
  // together have the deadline of the options.
  // Errors: what the last attempt failed with. DeadlineExceeded names the
  //         server and the time that it had.
  absl::Status Call(absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call);

  // A server that has answered is waited for when it is away; one that never
  // has may not exist. Thread-safe.
  void NoteAnswer() { has_answered_ = true; }

  bool has_answered() const { return has_answered_; }

  // Asks the server the first time. Two threads may both ask; both get the
  // same answer.
  absl::StatusOr<v1::Limits> GetLimits();

  // Remembers limits that came with another answer. Those that no server may
  // grant are refused.
  // Errors: Internal  a limit of zero.
  absl::Status StoreLimits(const v1::Limits& limits);

  absl::StatusOr<v1::ArchiveDescription> GetArchive(absl::string_view archive);

  // A call in the encoding that the caller or else the options want. With
  // `auto` this may ask the server what the archive is.
  WireCall StartCall(absl::string_view archive,
                     std::optional<EncodingChoice> choice);

  WireState& wire() { return wire_; }

 private:
  Connection(ClientOptions options,
             const std::shared_ptr<grpc::Channel>& channel);

  // What is said of a server that did not answer in time.
  absl::Status NameServer(const absl::Status& status) const;

  absl::StatusOr<std::string> FetchSymbolTable(uint64_t hash,
                                               size_t size_bytes_max) override;
  absl::StatusOr<std::string> FetchDictionary(uint64_t hash,
                                              size_t size_bytes_max) override;

  const ClientOptions options_;
  const std::unique_ptr<v1::Archive::Stub> stub_;
  std::atomic<bool> has_answered_ = false;
  WireState wire_;
  Mutex mutex_;
  std::optional<v1::Limits> limits_ ABSL_GUARDED_BY(mutex_);
};

// Adds the header of ClientOptions::trace_parent to a call, if there is a valid
// one. Thread-safe.
void AddTraceParent(const ClientOptions& options, grpc::ClientContext& context);

// The dictionary of that hash, in order, in pieces; goes on by itself after
// Unavailable. Errors: as Client::GetDictionary().
absl::Status ReceiveDictionary(Connection& connection, absl::string_view hash,
                               ByteSink sink);

// Says whether a call that failed in a row of failures is made again, and after
// what delay. It is, attempts_max times in all; and a server that has answered
// before, on this connection, is given `patience` to come back.
// Thread-compatible.
class RetryGovernor {
 public:
  // `connection` must outlive it.
  RetryGovernor(Connection& connection, absl::Duration patience);

  // For streams: as patient as they are with a server that sends nothing.
  explicit RetryGovernor(Connection& connection);

  // A message came: the patience is whole again.
  void Progress();

  // How long to wait before the next attempt: after Unavailable a time varied
  // at random, and as long as the server says where it is busy. Nothing if
  // there should be none, since `status` is another or it has been too long.
  std::optional<absl::Duration> DelayAfter(const absl::Status& status);

 private:
  using Clock = std::chrono::steady_clock;

  Connection& connection_;
  const absl::Duration patience_;
  absl::BitGen random_;
  int failures_in_row_ = 0;
  Clock::time_point first_failure_;
};

// Cancels a call whose next message does not come in time.
// Thread-safe. The context must outlive the watchdog.
class StreamWatchdog {
 public:
  // Nothing is watched if `idle_max` is infinite, or a century and more. A call
  // that cannot be watched, since no thread starts, is cancelled at once.
  StreamWatchdog(grpc::ClientContext& context, absl::Duration idle_max);
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  // Time runs from now, anew, until Disarm().
  void Arm();
  void Disarm();

  // What the stream's status means: DeadlineExceeded if it was this watchdog
  // that cancelled it, ResourceExhausted if it could not be watched, else
  // `status`.
  absl::Status Explain(const absl::Status& status) const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();

  grpc::ClientContext& context_;
  const absl::Duration idle_max_;
  // Not OK: the thread could not be started. Not changed after construction.
  absl::Status start_fault_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Clock::time_point> expiry_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_CONNECTION_H_
