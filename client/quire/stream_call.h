// SPDX-License-Identifier: Apache-2.0
//
// The life of one call with many answers. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_STREAM_CALL_H_
#define QUIRE_CLIENT_QUIRE_STREAM_CALL_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

#include "client/quire/client_status.h"
#include "client/quire/connection.h"

namespace quire {

struct StreamOutcome {
  absl::Status status;
  // The receiver of the messages ended the stream, not the server: taking it up
  // again would be against its will.
  bool ended_by_receiver = false;
};

// Starts a stream with `start` and gives `on_message` each message as it comes.
// Blocks until the stream has ended. What `on_message` returns, if not OK, ends
// it.
template <typename Message>
StreamOutcome RunStreamCall(
    const ClientOptions& options,
    absl::FunctionRef<
        std::unique_ptr<grpc::ClientReader<Message>>(grpc::ClientContext*)>
        start,
    absl::FunctionRef<absl::Status(Message&)> on_message) {
  grpc::ClientContext context;
  StreamWatchdog watchdog(context, options.stream_idle_max);
  const auto reader = start(&context);
  Message message;
  for (;;) {
    watchdog.Arm();
    const bool received = reader->Read(&message);
    watchdog.Disarm();
    if (!received) {
      return {watchdog.Explain(StatusFromGrpc(reader->Finish())), false};
    }
    const absl::Status taken = on_message(message);
    if (!taken.ok()) {
      context.TryCancel();
      static_cast<void>(reader->Finish());
      return {taken, true};
    }
  }
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_STREAM_CALL_H_
