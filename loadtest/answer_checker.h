// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_ANSWER_CHECKER_H_
#define QUIRE_LOADTEST_ANSWER_CHECKER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/wire_call.h"
#include "loadtest/source_text.h"

namespace quire {

// What one request asks for.
struct ReadTarget {
  // In the source's text.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  // The document asked for by its id; null for a range. Borrowed from the
  // source.
  const SourceRow* row = nullptr;
};

// For people: "range [17, +4)".
std::string DescribeTarget(const ReadTarget& target);

// Holds the messages of one answer, in their order, against the source.
// Thread-compatible.
class AnswerChecker {
 public:
  // `source` and `wire` must outlive the checker. `wire` decodes answers in
  // other encodings than identity; null: there must be none. What it makes of
  // them is compared with the source like the rest.
  AnswerChecker(const SourceText& source, const ReadTarget& target,
                WireCall* wire = nullptr)
      : source_(source), target_(target), wire_(wire) {}

  // Blocks on the disk that the source is on; meanwhile `wire` is paused.
  // `Message` is ReadResponse or
  // ReadStreamResponse.
  template <typename Message>
  void Check(const Message& message) {
    if (!started_ && target_.row != nullptr) {
      CheckDocument(message.has_document() ? &message.document() : nullptr);
    }
    started_ = true;
    wire_size_bytes_ += message.data().size();
    message_size_bytes_ += message.ByteSizeLong();
    CheckPart(SentBytesOf(message), message.range());
  }

  // Of all messages: the field `data` as it came, and the messages whole.
  uint64_t wire_size_bytes() const { return wire_size_bytes_; }

  uint64_t message_size_bytes() const { return message_size_bytes_; }

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

  const SourceText& source_;
  ReadTarget target_;
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

#endif  // QUIRE_LOADTEST_ANSWER_CHECKER_H_
