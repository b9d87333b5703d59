// SPDX-License-Identifier: Apache-2.0
//
// One call with many answers: no retries, which are its callers' (RetryGovernor
// of connection.h). Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_STREAM_CALL_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_STREAM_CALL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client_status.h"
#include "client/quire/internal/connection.h"
#include "client/quire/internal/decode_pipeline.h"

namespace quire {

struct StreamOutcome {
  // OK: the server sent everything. DeadlineExceeded: it was silent for
  // ClientOptions::stream_idle_max. Otherwise the server's status or, with
  // ended_by_receiver, the receiver's.
  absl::Status status;
  // True if the receiver of the messages ended the stream, not the server: it
  // must not be resumed.
  bool ended_by_receiver = false;
};

// A stream that is read message by message. A read that takes longer than
// ClientOptions::stream_idle_max cancels the stream; time between reads does
// not count. gRPC requires that each stream is finished: call Finish() or
// GiveUp() once, as the last method. Thread-compatible, except for Cancel().
template <typename Message>
class WatchedStream {
 public:
  using Reader = std::unique_ptr<grpc::ClientReader<Message>>;
  using Start = absl::FunctionRef<Reader(grpc::ClientContext*)>;

  // Calls `start`, which must not return null, once. `options` and `route`, as
  // in AddCallHeaders(), need to be valid only during the constructor; the stub
  // that `start` uses must outlive the stream.
  WatchedStream(const ClientOptions& options, const CallRoute& route,
                Start start)
      : watchdog_(context_, options.stream_idle_max),
        reader_(StartWithHeaders(options, route, start)) {}

  // Blocks, at most for ClientOptions::stream_idle_max. Returns false at the
  // end; Finish() returns the reason. `message` is then unspecified.
  bool Read(Message& message) {
    watchdog_.Arm();
    const bool received = reader_->Read(&message);
    watchdog_.Disarm();
    return received;
  }

  // Returns the server's status, or why the watchdog ended the call. Blocks as
  // Read() does. REQUIRES: Read() has returned false.
  StreamOutcome Finish() {
    // After bytes that are not a message the server's side may still be open.
    watchdog_.Arm();
    const grpc::Status status = reader_->Finish();
    watchdog_.Disarm();
    return {watchdog_.Explain(StatusFromGrpc(status)), false};
  }

  // Makes Read() on another thread return false. Thread-safe, until the stream
  // is destroyed; no effect after its end.
  void Cancel() { context_.TryCancel(); }

  // Ends a stream early, with `status` as the reason. Blocks briefly: gRPC
  // drops messages that have arrived. REQUIRES: no other thread is in Read().
  StreamOutcome GiveUp(absl::Status status) {
    Cancel();
    static_cast<void>(reader_->Finish());
    return {std::move(status), true};
  }

 private:
  Reader StartWithHeaders(const ClientOptions& options, const CallRoute& route,
                          Start start) {
    AddCallHeaders(options, route, context_);
    return start(&context_);
  }

  grpc::ClientContext context_;
  StreamWatchdog watchdog_;
  const Reader reader_;
};

// Starts a stream and passes each message, on this thread, to `on_message`,
// which may move from it. Blocks until the stream has ended. An error of
// `on_message` ends it, and is the outcome's status. A slow `on_message` is
// never taken for a silent server.
template <typename Message>
StreamOutcome RunStreamCall(
    const ClientOptions& options, const CallRoute& route,
    typename WatchedStream<Message>::Start start,
    absl::FunctionRef<absl::Status(Message&)> on_message) {
  WatchedStream<Message> stream(options, route, start);
  Message message;
  while (stream.Read(message)) {
    absl::Status taken = on_message(message);
    if (!taken.ok()) {
      return stream.GiveUp(std::move(taken));
    }
  }
  return stream.Finish();
}

// The same for answers, which are decoded by `steps`: from the second encoded
// message on by ClientOptions::decode_threads other threads, while further
// messages arrive. `steps` says which of its functions run there
// (decode_pipeline.h); results are delivered in the order of the stream. Short
// answers start no threads; all have ended when it returns.
template <typename Message>
StreamOutcome RunAnswerStream(const ClientOptions& options,
                              const CallRoute& route,
                              typename WatchedStream<Message>::Start start,
                              const DecodeSteps<Message>& steps) {
  WatchedStream<Message> stream(options, route, start);
  Message message;
  std::string buffer;
  bool is_encoded = false;
  while (stream.Read(message)) {
    if (is_encoded) {
      const auto receive = [&](Message& next) { return stream.Read(next); };
      const auto cancel = [&] { stream.Cancel(); };
      DecodePipeline<Message> pipeline(steps, options.decode_threads, receive,
                                       cancel);
      absl::Status status = pipeline.Run(std::move(message));
      return status.ok() ? stream.Finish() : stream.GiveUp(std::move(status));
    }
    absl::Status status = DecodeOne(steps, message, buffer);
    if (!status.ok()) {
      return stream.GiveUp(std::move(status));
    }
    is_encoded = message.encoding() != v1::WIRE_ENCODING_IDENTITY;
  }
  return stream.Finish();
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_STREAM_CALL_H_
