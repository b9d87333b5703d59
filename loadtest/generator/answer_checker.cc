// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/answer_checker.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {

void AnswerChecker::Fail(absl::string_view what) {
  if (!fault_.has_value()) {
    fault_ = absl::StrCat(DescribeTarget(target_), ": ", what);
  }
}

// Several documents may have one id; the server may answer with another than
// the one that was drawn.
void AnswerChecker::CheckDocument(const v1::Document* document) {
  if (document == nullptr) {
    Fail("no document in the answer");
    return;
  }
  bool is_another =
      (target_.id.has_value() && document->id() != *target_.id) ||
      (target_.ordinal.has_value() && document->ordinal() != *target_.ordinal);
  if (source_ != nullptr && !source_->documents().empty()) {
    const std::vector<SourceRow>& rows = source_->documents();
    if (document->ordinal() >= rows.size()) {
      Fail("a document past the end in the answer");
      return;
    }
    const SourceRow& row = rows[document->ordinal()];
    is_another = is_another || row.id != document->id() ||
                 document->range().offset() != row.offset ||
                 document->range().size_bytes() != row.size_bytes;
  }
  if (is_another) {
    Fail(absl::StrCat("another document: ", document->ShortDebugString()));
    return;
  }
  target_.place =
      TextSpan{document->range().offset(), document->range().size_bytes()};
}

std::optional<absl::string_view> AnswerChecker::TextOf(const SentBytes& sent) {
  // Checked here, so that a fault of the client cannot hide one of the server.
  if (sent.checksum != Checksum64(AsBytes(sent.data))) {
    Fail("checksum and data differ");
    return std::nullopt;
  }
  if (wire_ == nullptr) {
    if (sent.encoding != v1::WIRE_ENCODING_IDENTITY) {
      Fail("an encoding that was not asked for");
      return std::nullopt;
    }
    if (sent.data.size() != sent.size_bytes) {
      Fail(absl::StrCat("wrong range of ", sent.size_bytes, " with ",
                        sent.data.size(), " bytes of data"));
      return std::nullopt;
    }
    return sent.data;
  }
  const absl::StatusOr<DecodedAnswer> answer = wire_->Decode(sent, buffer_);
  if (!answer.ok()) {
    Fail(answer.status().message());
    return std::nullopt;
  }
  cost_.decode_ns += answer->decode_ns;
  return answer->text;
}

void AnswerChecker::CheckPart(const SentBytes& sent,
                              const v1::ByteRange& range) {
  if (fault_.has_value()) {
    return;
  }
  const uint64_t offset = target_.place->offset + received_bytes_;
  const uint64_t missing_bytes = target_.place->size_bytes - received_bytes_;
  if (range.offset() != offset || range.size_bytes() > missing_bytes) {
    Fail(absl::StrCat("wrong range [", range.offset(), ", +",
                      range.size_bytes(), ")"));
    return;
  }
  received_bytes_ += range.size_bytes();
  cost_.text_bytes += range.size_bytes();
  const std::optional<absl::string_view> text = TextOf(sent);
  if (text.has_value() && source_ != nullptr) {
    const absl::StatusOr<bool> matches = source_->Matches(offset, *text);
    if (!matches.ok()) {
      Fail(matches.status().message());
    } else if (!*matches) {
      Fail("the bytes differ from the source's");
    }
  }
}

std::optional<std::string> AnswerChecker::Finish() {
  if (!fault_.has_value() && !started_) {
    Fail("no message arrived");
  }
  if (!fault_.has_value() && received_bytes_ != target_.place->size_bytes) {
    Fail(absl::StrCat(received_bytes_, " bytes came"));
  }
  return fault_;
}

}  // namespace quire
