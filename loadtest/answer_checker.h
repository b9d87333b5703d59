// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_ANSWER_CHECKER_H_
#define QUIRE_LOADTEST_ANSWER_CHECKER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

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
  // `source` must outlive the checker.
  AnswerChecker(const SourceText& source, const ReadTarget& target)
      : source_(source), target_(target) {}

  // Blocks on the disk that the source is on. `Message` is ReadResponse or
  // ReadStreamResponse.
  template <typename Message>
  void Check(const Message& message) {
    if (!started_ && target_.row != nullptr) {
      CheckDocument(message.has_document() ? &message.document() : nullptr);
    }
    started_ = true;
    CheckPart(message.encoding(), message.range(), message.checksum(),
              message.data());
  }

  // The first thing that was wrong, in words; nullopt if the answer was right
  // and is complete.
  std::optional<std::string> Finish();

 private:
  void Fail(absl::string_view what);
  void CheckDocument(const v1::Document* document);
  void CheckPart(v1::WireEncoding encoding, const v1::ByteRange& range,
                 uint64_t checksum, const std::string& data);

  const SourceText& source_;
  ReadTarget target_;
  bool started_ = false;
  uint64_t received_bytes_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_ANSWER_CHECKER_H_
