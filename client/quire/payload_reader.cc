// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload_reader.h"

#include <optional>
#include <utility>

namespace quire {

absl::Status ReadPayload(Client& client, absl::string_view archive,
                         const DocumentKey& key, const PayloadOptions& options,
                         PayloadOriginSink on_origin, PayloadSink sink) {
  if (key.part.has_value()) {
    return absl::InvalidArgumentError(
        "a payload is read as a whole: name no part of the document");
  }
  PayloadSearch search(
      key,
      [&](const DocumentKey& captured) {
        return ListCaptures(client, archive, captured, options.read);
      },
      options.size_bytes_max);
  for (;;) {
    absl::Status status = client.ReadStream(
        archive, search.target(),
        [&](const v1::Document& document) {
          search.TakeDocument(document);
          return absl::OkStatus();
        },
        [&](uint64_t, ByteView bytes) {
          return search.TakeBytes(bytes, on_origin, sink);
        },
        options.read);
    std::optional<absl::Status> outcome =
        search.EndRecord(std::move(status), on_origin, sink);
    if (outcome.has_value()) {
      return *std::move(outcome);
    }
  }
}

}  // namespace quire
