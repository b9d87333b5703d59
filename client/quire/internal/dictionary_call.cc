// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/internal/connection.h"
#include "client/quire/internal/stream_call.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
absl::Status ReceiveDictionary(Connection& connection, const CallRoute& route,
                               absl::string_view hash, ByteSink sink) {
  v1::GetDictionaryRequest request;
  request.set_hash(std::string(hash));
  uint64_t next_offset = 0;
  std::optional<uint64_t> size_bytes;
  RetryGovernor governor(connection);
  const auto take = [&](v1::GetDictionaryResponse& message) -> absl::Status {
    governor.Progress();
    if (Checksum64(AsBytes(message.data())) != message.checksum()) {
      return absl::DataLossError(
          "received bytes of the dictionary do not match their checksum");
    }
    if (!size_bytes.has_value()) {
      size_bytes = message.size_bytes();
    }
    if (message.offset() != next_offset ||
        message.size_bytes() != *size_bytes ||
        message.data().size() > *size_bytes - next_offset) {
      return absl::InternalError(absl::StrCat(
          "the server sent bytes of the dictionary at offset ",
          message.offset(), " where ", next_offset, " was expected"));
    }
    if (message.data().empty()) {
      return absl::OkStatus();
    }
    next_offset += message.data().size();
    return sink(message.offset(), AsBytes(message.data()));
  };
  for (;;) {
    request.set_offset(next_offset);
    const StreamOutcome outcome = RunStreamCall<v1::GetDictionaryResponse>(
        connection.options(),
        {.archive = route.archive,
         .attempt = route.attempt + governor.attempt()},
        [&](grpc::ClientContext* context) {
          return connection.stub().GetDictionary(context, request);
        },
        take);
    if (outcome.status.ok()) {
      return size_bytes == next_offset
                 ? absl::OkStatus()
                 : absl::DataLossError("the dictionary's stream ended early");
    }
    if (outcome.ended_by_receiver) {
      return outcome.status;
    }
    QUIRE_RETURN_IF_ERROR(governor.AwaitRetry(outcome.status));
  }
}

}  // namespace quire
