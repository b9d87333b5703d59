// SPDX-License-Identifier: Apache-2.0
//
// State shared by all calls of one client: the channel and the setup of calls.
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
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

#include "proto/quire/v1/archive.grpc.pb.h"
#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/internal/call_queue.h"
#include "client/quire/internal/table_store.h"
#include "client/quire/internal/wire_call.h"
#include "codecs/base/mutex.h"

namespace quire {

// By which proxies select the server of a call.
struct CallRoute {
  // Empty: none in particular.
  absl::string_view archive;
  // See kAttemptMetadataKey. Of a call that is repeated: that of its first
  // attempt.
  int attempt = 0;
};

// Thread-safe.
class Connection : private TableSource {
 public:
  // Errors: as Client::Connect().
  static absl::StatusOr<std::shared_ptr<Connection>> Open(
      ClientOptions options);

  v1::Archive::Stub& stub() const { return *stub_; }

  const ClientOptions& options() const { return options_; }

  // Makes a call with one answer. Repeats it, each time with a context of its
  // own, as RetryGovernor decides. All attempts together have the deadline of
  // the options.
  // Errors: as RetryGovernor::AwaitRetry(). DeadlineExceeded names the server
  //         and the time limit.
  absl::Status Call(const CallRoute& route,
                    absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call);

  absl::Status Call(
      absl::string_view archive,
      absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call) {
    return Call(CallRoute{.archive = archive}, call);
  }

  // Sets the deadline and the headers of a call that is made once, now.
  void Prepare(absl::string_view archive, grpc::ClientContext& context) const;

  // Returns the queue for QueuedCall; starts its thread if need be.
  // Errors: as CallQueue::Start().
  absl::StatusOr<CallQueue*> GetCallQueue() ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the server has answered: it is then waited for while it is
  // away. A server that has never answered may not exist. Thread-safe.
  void NoteAnswer() { has_answered_ = true; }

  bool has_answered() const { return has_answered_; }

  // Waits before another attempt. Returns false if it does not, since
  // ClientOptions::told_wait refuses; it is asked only if `is_told`.
  bool Wait(absl::Duration delay, bool is_told) const;

  // Requests the limits once, from the server of `archive`, or of no certain
  // archive if it is empty. If two threads both do, they get the same answer.
  absl::StatusOr<v1::Limits> GetLimits(absl::string_view archive);

  // Stores limits that came with another answer.
  // Errors: Internal  a limit of zero.
  absl::Status StoreLimits(const v1::Limits& limits);

  absl::StatusOr<v1::ArchiveDescription> GetArchive(absl::string_view archive);

  // Starts a call in the encoding of the caller, or else of the options.
  WireCall StartCall(absl::string_view archive,
                     std::optional<EncodingChoice> choice);
  // The same for a scan of `size_bytes` of an archive.
  WireCall StartScan(const v1::ArchiveDescription& archive,
                     std::optional<EncodingChoice> choice, uint64_t size_bytes);

  WireState& wire() { return wire_; }

 private:
  Connection(ClientOptions options,
             const std::shared_ptr<grpc::Channel>& channel);

  // Returns the error for a server that did not answer in time.
  absl::Status NameServer(const absl::Status& status) const;

  absl::StatusOr<std::string> FetchSymbolTable(absl::string_view archive,
                                               uint64_t hash,
                                               size_t size_bytes_max) override;
  absl::StatusOr<std::string> FetchDictionary(absl::string_view archive,
                                              uint64_t hash,
                                              size_t size_bytes_max) override;

  const ClientOptions options_;
  const std::unique_ptr<v1::Archive::Stub> stub_;
  std::atomic<bool> has_answered_ = false;
  WireState wire_;
  Mutex mutex_;
  std::optional<v1::Limits> limits_ ABSL_GUARDED_BY(mutex_);
  // The first to be destroyed: its calls use the rest.
  std::unique_ptr<CallQueue> call_queue_ ABSL_GUARDED_BY(mutex_);
};

// Adds kArchiveMetadataKey to a call, by which proxies route it, unless
// `archive` is empty or a name that no archive has. Thread-safe.
void AddArchiveHeader(absl::string_view archive, grpc::ClientContext& context);

// Adds the headers of a call: those of its route, and those of
// ClientOptions::trace_parent and authorization, if they are valid.
// Thread-safe.
void AddCallHeaders(const ClientOptions& options, const CallRoute& route,
                    grpc::ClientContext& context);

// Reads the dictionary with this hash, in order, in pieces, from the server of
// `route`; resumes after Unavailable.
// Errors: as Client::GetDictionary().
absl::Status ReceiveDictionary(Connection& connection, const CallRoute& route,
                               absl::string_view hash, ByteSink sink);

// Decides whether a failed call is repeated, and after which delay.
//   - The server named a delay (RetryInfo, with Unavailable or
//     ResourceExhausted): as often as needed within the time limit. The delay
//     is a little longer than asked, at random, so that clients do not return
//     at once; at most 30 s; and grows if the server asks for next to none.
//   - Other Unavailable: attempts_max attempts in a row. A server that has
//     answered before, on this connection, gets the rest of the time limit.
//   - Other errors: not repeated.
// Thread-compatible.
class RetryGovernor {
 public:
  // For a call with one answer, whose attempts all end at `end`, a
  // MonotonicNow(). `connection` must outlive the governor.
  RetryGovernor(Connection& connection, absl::Time end)
      : RetryGovernor(connection, std::optional(end)) {}

  // For streams: the time limit is ClientOptions::stream_idle_max, from the
  // first failure after progress.
  explicit RetryGovernor(Connection& connection)
      : RetryGovernor(connection, std::nullopt) {}

  // A message arrived: restores the whole time limit.
  void Progress();

  // The next attempt is the first of another call.
  void Reset() { failures_ = {}; }

  // Value of CallRoute for the next attempt.
  int attempt() const { return failures_.passed_on_count; }

  // Returns the delay before the next attempt; nothing if there must be none,
  // because of the kind of `status` or the limits. FinalError() is then the
  // call's result.
  std::optional<absl::Duration> DelayAfter(const absl::Status& status);

  // Returns `status`, with which the last attempt failed. If the time limit
  // ended waiting for a server that named a delay, this is the server's error
  // with a message that says so.
  absl::Status FinalError(const absl::Status& status) const;

  // Waits and returns OK if there must be another attempt; otherwise returns
  // FinalError(). Blocks.
  absl::Status AwaitRetry(const absl::Status& status);

 private:
  // Failures in a row.
  struct Failures {
    absl::Time first_time;
    int count = 0;
    // After which proxies select another server.
    int passed_on_count = 0;
    // With a delay that the server named, and the last of them.
    int told_count = 0;
    absl::Status told_status;
    // Without one, after the last with one.
    int untold_count = 0;
  };

  RetryGovernor(Connection& connection, std::optional<absl::Time> end);

  absl::Time TimeLimit() const;
  std::optional<absl::Duration> DelayAsTold(absl::Duration told);
  std::optional<absl::Duration> Backoff(const absl::Status& status);

  Connection& connection_;
  const absl::Time start_;
  // Unset for streams.
  const std::optional<absl::Time> end_;
  absl::BitGen random_;
  Failures failures_;
};

// Cancels a call if its next message does not arrive in time. Thread-safe. The
// context must outlive the watchdog.
class StreamWatchdog {
 public:
  // Watches nothing if `idle_max` is infinite, or a century or more. If no
  // thread can be started, the call is cancelled at once.
  StreamWatchdog(grpc::ClientContext& context, absl::Duration idle_max);
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  // Restarts the time, which runs until Disarm().
  void Arm();
  void Disarm();

  // Returns the meaning of the stream's status: DeadlineExceeded if this
  // watchdog cancelled it, ResourceExhausted if it could not be watched, else
  // `status`.
  absl::Status Explain(const absl::Status& status) const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();

  grpc::ClientContext& context_;
  const absl::Duration idle_max_;
  // Not OK: the thread could not be started. Set by the constructor.
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
