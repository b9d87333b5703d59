// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_
#define QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/internal/wire_call.h"
#include "loadtest/report/load_recorder.h"
#include "loadtest/requests/load_targets.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// Checks the messages of one answer, in order, against the request and the
// source.
// Thread-compatible.
class AnswerChecker {
 public:
  // `source` null: checks only checksums, ranges and descriptions, not
  // contents. `wire` decodes answers in other encodings than identity; null:
  // there must be none. Decoded text is compared like other text. Both must
  // outlive the checker.
  AnswerChecker(const SourceText* source, const LoadTarget& target,
                WireCall* wire)
      : source_(source), target_(target), wire_(wire) {}

  // Blocks on the source's disk; pauses `wire` meanwhile. `Message` has the
  // fields of ReadResponse or of ScanResponse.
  template <typename Message>
  void Check(const Message& message) {
    if constexpr (requires { message.document(); }) {
      if (!started_ && target_.is_document()) {
        CheckDocument(message.has_document() ? &message.document() : nullptr);
      }
    }
    started_ = true;
    cost_.wire_bytes += message.data().size();
    cost_.message_bytes += message.ByteSizeLong();
    CheckPart(SentBytesOf(message), message.range());
  }

  // Decoded size.
  uint64_t received_bytes() const { return received_bytes_; }

  // True if a fault was found.
  bool has_fault() const { return fault_.has_value(); }

  // Returns the cost of the messages since the last call.
  AnswerCost TakeCost() { return std::exchange(cost_, {}); }

  // Returns the first fault in words; nullopt if the answer is right and
  // complete.
  std::optional<std::string> Finish();

 private:
  void Fail(absl::string_view what);
  void CheckDocument(const v1::Document* document);
  void CheckPart(const SentBytes& sent, const v1::ByteRange& range);
  // Returns the bytes of the range; nullopt and a fault if they cannot be
  // decoded.
  std::optional<absl::string_view> TextOf(const SentBytes& sent);

  const SourceText* const source_;
  LoadTarget target_;
  WireCall* const wire_;
  std::string buffer_;
  bool started_ = false;
  uint64_t received_bytes_ = 0;
  AnswerCost cost_;
  std::optional<std::string> fault_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_ANSWER_CHECKER_H_
