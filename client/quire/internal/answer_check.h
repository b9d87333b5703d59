// SPDX-License-Identifier: Apache-2.0
//
// Checks an answer against its request before its bytes are decoded
// (answer_decoder.h) and passed on. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_CHECK_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_CHECK_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/client.h"
#include "client/quire/internal/wire_call.h"
#include "client/quire/read_target.h"
#include "codecs/base/status_macros.h"

namespace quire {

// Checks that `document` is the one that `key` names; `document` is null if the
// answer has none. Thread-safe.
// Errors: Internal  the document is missing, or is another one.
absl::Status CheckDocument(const DocumentKey& key,
                           const v1::Document* document);

// Returns the logical bytes that an answer to `target` must hold, given the
// document that came with it (null for a plain range). Thread-safe.
// Errors: Internal  no document, another document, or one that is too short for
//                   the requested part.
absl::StatusOr<ByteSpan> ExpectedSpan(const ReadTarget& target,
                                      const v1::Document* document);

// Checks that the pieces of a stream are consecutive and cover what was
// requested. Thread-compatible.
class SpanFollower {
 public:
  SpanFollower() = default;

  explicit SpanFollower(ByteSpan expected) : expected_(expected) {}

  // Takes one more piece, of the range that the server names.
  // Errors: Internal  it does not continue where the last one ended, or exceeds
  //                   the expected end.
  absl::Status Take(const v1::ByteRange& range);

  // Errors: DataLoss bytes are missing: the stream ended early.
  absl::Status Finish() const;

  const ByteSpan& expected() const { return expected_; }

 private:
  ByteSpan expected_;
  uint64_t received_size_bytes_ = 0;
};

// Converts an answer in one message, a ReadResponse or a BatchResult, to a
// result, and moves its bytes there. Thread-safe as `call` is.
// Errors: Internal  as the functions above; others as WireCall::Decode().
template <typename Answer>
absl::StatusOr<ReadResult> TakeAnswer(const ReadTarget& target, WireCall& call,
                                      Answer& answer) {
  QUIRE_ASSIGN_OR_RETURN(
      const ByteSpan expected,
      ExpectedSpan(target,
                   answer.has_document() ? &answer.document() : nullptr));
  SpanFollower follower(expected);
  QUIRE_RETURN_IF_ERROR(follower.Take(answer.range()));
  QUIRE_RETURN_IF_ERROR(follower.Finish());
  ReadResult result;
  result.offset = expected.offset;
  QUIRE_ASSIGN_OR_RETURN(const DecodedAnswer decoded,
                         call.Decode(SentBytesOf(answer), result.data));
  if (answer.has_document()) {
    result.document = std::move(*answer.mutable_document());
  }
  if constexpr (std::is_same_v<Answer, v1::ReadResponse>) {
    result.archive_uuid = std::move(*answer.mutable_archive_uuid());
    result.zeros_hash = answer.zeros_hash();
  }
  if (decoded.encoding == AnswerEncoding::kIdentity) {
    result.data = std::move(*answer.mutable_data());
  } else {
    const auto front =
        static_cast<size_t>(decoded.text.data() - result.data.data());
    result.data.resize(front + decoded.text.size());
    result.data.erase(0, front);
  }
  return result;
}

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_ANSWER_CHECK_H_
