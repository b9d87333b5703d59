// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_
#define QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/internal/wire_call.h"
#include "loadtest/requests/load_targets.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// Holds the messages of one answer, in their order, against the request and the
// source.
// Thread-compatible.
class AnswerChecker {
 public:
  // `source` null: contents are not compared, only checksums, ranges and
  // descriptions. `wire` decodes answers in other encodings than identity;
  // null: there must be none. What it makes of them is compared with the source
  // like the rest. Both must outlive the checker.
  AnswerChecker(const SourceText* source, const LoadTarget& target,
                WireCall* wire)
      : source_(source), target_(target), wire_(wire) {}

  // Blocks on the disk that the source is on; meanwhile `wire` is paused.
  // `Message` has the fields of ReadResponse or of ScanResponse.
  template <typename Message>
  void Check(const Message& message) {
    if constexpr (requires { message.document(); }) {
      if (!started_ && target_.is_document()) {
        CheckDocument(message.has_document() ? &message.document() : nullptr);
      }
    }
    started_ = true;
    wire_size_bytes_ += message.data().size();
    message_size_bytes_ += message.ByteSizeLong();
    CheckPart(SentBytesOf(message), message.range());
  }

  // Of all messages: the field `data` as it came, and the messages whole.
  uint64_t wire_size_bytes() const { return wire_size_bytes_; }

  uint64_t message_size_bytes() const { return message_size_bytes_; }

  // Decoded.
  uint64_t received_bytes() const { return received_bytes_; }

  // Whether anything was wrong so far.
  bool has_fault() const { return fault_.has_value(); }

  // Spent on decoding.
  uint64_t decode_ns() const { return decode_ns_; }

  // The first thing that was wrong, in words; nullopt if the answer was right
  // and is complete.
  std::optional<std::string> Finish();

 private:
  void Fail(absl::string_view what);
  void CheckDocument(const v1::Document* document);
  void CheckPart(const SentBytes& sent, const v1::ByteRange& range);
  // The bytes of the range; nullopt, and a fault, if they cannot be had.
  std::optional<absl::string_view> TextOf(const SentBytes& sent);

  const SourceText* const source_;
  LoadTarget target_;
  WireCall* const wire_;
  std::string buffer_;
  bool started_ = false;
  uint64_t received_bytes_ = 0;
  uint64_t wire_size_bytes_ = 0;
  uint64_t message_size_bytes_ = 0;
  uint64_t decode_ns_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_
