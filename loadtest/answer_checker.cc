// SPDX-License-Identifier: Apache-2.0
#include "loadtest/answer_checker.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {

std::string DescribeTarget(const ReadTarget& target) {
  const std::string range =
      absl::StrCat("[", target.offset, ", +", target.size_bytes, ")");
  return target.row == nullptr
             ? absl::StrCat("range ", range)
             : absl::StrCat("document '", target.row->id, "' at ", range);
}

void AnswerChecker::Fail(absl::string_view what) {
  if (!fault_.has_value()) {
    fault_ = absl::StrCat(DescribeTarget(target_), ": ", what);
  }
}

// An id may occur several times; then the server may answer with another of
// that name than the one that was drawn.
void AnswerChecker::CheckDocument(const v1::Document* document) {
  const std::vector<SourceRow>& rows = source_.documents();
  if (document == nullptr || document->ordinal() >= rows.size()) {
    Fail("no document, or one past the end, in the answer");
    return;
  }
  const SourceRow& row = rows[document->ordinal()];
  if (document->id() != target_.row->id || row.id != document->id() ||
      document->range().offset() != row.offset ||
      document->range().size_bytes() != row.size_bytes) {
    Fail(absl::StrCat("another document: ", document->ShortDebugString()));
    return;
  }
  target_ = {row.offset, row.size_bytes, &row};
}

std::optional<absl::string_view> AnswerChecker::TextOf(const SentBytes& sent) {
  // Checked here, so that a client's fault cannot hide a server's.
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
  wire_->Pause();
  if (!answer.ok()) {
    Fail(answer.status().message());
    return std::nullopt;
  }
  decode_ns_ += answer->decode_ns;
  return answer->text;
}

void AnswerChecker::CheckPart(const SentBytes& sent,
                              const v1::ByteRange& range) {
  if (fault_.has_value()) {
    return;
  }
  const uint64_t offset = target_.offset + received_bytes_;
  received_bytes_ += range.size_bytes();
  if (range.offset() != offset || received_bytes_ > target_.size_bytes) {
    Fail(absl::StrCat("wrong range [", range.offset(), ", +",
                      range.size_bytes(), ")"));
    return;
  }
  const std::optional<absl::string_view> text = TextOf(sent);
  if (!text.has_value()) {
    return;
  }
  const absl::StatusOr<bool> matches = source_.Matches(offset, *text);
  if (!matches.ok()) {
    Fail(matches.status().message());
  } else if (!*matches) {
    Fail("the bytes differ from the source's");
  }
  if (wire_ != nullptr) {
    wire_->Resume();
  }
}

std::optional<std::string> AnswerChecker::Finish() {
  if (!fault_.has_value() && received_bytes_ != target_.size_bytes) {
    Fail(absl::StrCat(received_bytes_, " bytes came"));
  }
  return fault_;
}

}  // namespace quire
