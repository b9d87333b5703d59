// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/answer_check.h"

#include <variant>

#include "absl/strings/str_cat.h"

namespace quire {

absl::Status CheckDocument(const DocumentKey& key,
                           const v1::Document* document) {
  if (document == nullptr) {
    return absl::InternalError("the server did not say which document it sent");
  }
  const auto* ordinal = std::get_if<uint64_t>(&key.name);
  const bool same = ordinal != nullptr
                        ? document->ordinal() == *ordinal
                        : document->id() == std::get<std::string>(key.name);
  if (!same) {
    return absl::InternalError(absl::StrCat("the server sent document number ",
                                            document->ordinal(),
                                            " for another one that was asked"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ByteSpan> ExpectedSpan(const ReadTarget& target,
                                      const v1::Document* document) {
  if (const auto* span = std::get_if<ByteSpan>(&target)) {
    return *span;
  }
  const auto& key = std::get<DocumentKey>(target);
  const absl::Status checked = CheckDocument(key, document);
  if (!checked.ok()) {
    return checked;
  }
  const ByteSpan whole{document->range().offset(),
                       document->range().size_bytes()};
  if (!key.part.has_value()) {
    return whole;
  }
  if (key.part->offset > whole.size_bytes ||
      key.part->size_bytes > whole.size_bytes - key.part->offset) {
    return absl::InternalError(
        "the server answered a part past the end of the document");
  }
  return ByteSpan{whole.offset + key.part->offset, key.part->size_bytes};
}

absl::Status SpanFollower::Take(const v1::ByteRange& range) {
  const uint64_t expected_offset = expected_.offset + received_size_bytes_;
  const uint64_t left_size_bytes = expected_.size_bytes - received_size_bytes_;
  if (range.offset() != expected_offset ||
      range.size_bytes() > left_size_bytes) {
    return absl::InternalError(absl::StrCat(
        "the server sent ", range.size_bytes(), " bytes at offset ",
        range.offset(), ", where offset ", expected_offset, " and at most ",
        left_size_bytes, " bytes were expected"));
  }
  received_size_bytes_ += range.size_bytes();
  return absl::OkStatus();
}

absl::Status SpanFollower::Finish() const {
  if (received_size_bytes_ != expected_.size_bytes) {
    return absl::DataLossError(
        absl::StrCat("the stream ended early: ", received_size_bytes_, " of ",
                     expected_.size_bytes, " bytes were received"));
  }
  return absl::OkStatus();
}

}  // namespace quire
