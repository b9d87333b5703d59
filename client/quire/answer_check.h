// SPDX-License-Identifier: Apache-2.0
//
// Nothing that a server sends is handed on before it was checked: the bytes
// against their checksum, the answer against what was asked. Internal to the
// client library.
#ifndef QUIRE_CLIENT_QUIRE_ANSWER_CHECK_H_
#define QUIRE_CLIENT_QUIRE_ANSWER_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/read_target.h"
#include "codecs/base/status_macros.h"

namespace quire {

// Thread-safe.
// Errors: DataLoss  `data` does not have this checksum.
//         Internal  an encoding that was not accepted.
absl::Status CheckPayload(v1::WireEncoding encoding, uint64_t checksum,
                          absl::string_view data);

// Whether `document` is the one that `key` asks for; `document` is null where
// the answer has none. Thread-safe.
// Errors: Internal  it is missing, or another one.
absl::Status CheckDocument(const DocumentKey& key,
                           const v1::Document* document);

// The logical bytes that an answer to `target` must hold, given the document
// that came with it (null for a plain range). Thread-safe.
// Errors: Internal  no document, another document, or one too short for the
//                   part that was asked.
absl::StatusOr<ByteSpan> ExpectedSpan(const ReadTarget& target,
                                      const v1::Document* document);

// Follows one stream of consecutive pieces and tells the first one that is not
// what was asked.
// Thread-compatible.
class SpanFollower {
 public:
  SpanFollower() = default;

  explicit SpanFollower(ByteSpan expected) : expected_(expected) {}

  // One more piece: `range` as the server names it, `size_bytes` as received.
  // Errors: Internal  it does not go on where the last one ended, is not of
  //                   the size it says, or goes past the expected end.
  absl::Status Take(const v1::ByteRange& range, uint64_t size_bytes);

  // Errors: DataLoss  bytes are missing: the stream ended early.
  absl::Status Finish() const;

  uint64_t received_size_bytes() const { return received_size_bytes_; }

  const ByteSpan& expected() const { return expected_; }

 private:
  ByteSpan expected_;
  uint64_t received_size_bytes_ = 0;
};

// Turns an answer in one message, a ReadResponse or a BatchResult, into a
// result, whose bytes it takes over. Thread-safe.
// Errors: DataLoss, Internal  as the functions above.
template <typename Answer>
absl::StatusOr<ReadResult> TakeAnswer(const ReadTarget& target,
                                      Answer& answer) {
  const std::string& data = answer.data();
  QUIRE_RETURN_IF_ERROR(CheckPayload(answer.encoding(), answer.checksum(),
                                     {data.data(), data.size()}));
  QUIRE_ASSIGN_OR_RETURN(
      const ByteSpan expected,
      ExpectedSpan(target,
                   answer.has_document() ? &answer.document() : nullptr));
  SpanFollower follower(expected);
  QUIRE_RETURN_IF_ERROR(follower.Take(answer.range(), data.size()));
  QUIRE_RETURN_IF_ERROR(follower.Finish());
  ReadResult result;
  result.offset = expected.offset;
  if (answer.has_document()) {
    result.document = std::move(*answer.mutable_document());
  }
  result.data = std::move(*answer.mutable_data());
  return result;
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_ANSWER_CHECK_H_
