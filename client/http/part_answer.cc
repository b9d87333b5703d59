// SPDX-License-Identifier: Apache-2.0
#include "client/http/part_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "client/http/request/content_headers.h"
#include "codecs/base/status_macros.h"

namespace quire {

size_t FirstPieceSize(uint64_t size_bytes, const MemoryBudget& budget,
                      MemoryCharge& charge) {
  const size_t piece_size = static_cast<size_t>(
      std::min<uint64_t>(size_bytes, PieceSize(budget, /*is_slow=*/false)));
  charge.TryResize(std::max(piece_size, charge.size_bytes()));
  return std::min(piece_size, charge.size_bytes());
}

absl::StatusOr<Answer> AnswerPart(const HttpRequest& request,
                                  Representation representation,
                                  const MemoryBudget& budget,
                                  MemoryCharge& charge) {
  const absl::string_view etag = representation.etag;
  Answer answer;
  AddContentHeaders(request, etag, answer);
  switch (EvaluateConditions(request.conditions, etag)) {
    case ConditionResult::kNotModified:
      answer.status = 304;
      answer.size_bytes = representation.size_bytes;
      return answer;
    case ConditionResult::kPreconditionFailed:
      return TextAnswer(412, "the representation has another entity tag");
    case ConditionResult::kProceed:
      break;
  }
  const uint64_t size_bytes = representation.size_bytes.value_or(0);
  const bool has_range =
      request.method == Method::kGet && RangeApplies(request.conditions, etag);
  const SelectedPart part =
      SelectPart(has_range ? request.range : RangeHeader{}, size_bytes,
                 representation.refuses_several_ranges);
  if (part.kind == SelectedPart::Kind::kUnsatisfiable) {
    return UnsatisfiableRange(size_bytes);
  }
  if (part.kind == SelectedPart::Kind::kPart) {
    answer.status = 206;
    answer.headers.emplace_back(
        "Content-Range",
        absl::StrCat("bytes ", part.offset, "-",
                     part.offset + part.size_bytes - 1, "/", size_bytes));
  }
  answer.headers.emplace_back("Accept-Ranges", "bytes");
  answer.headers.emplace_back("Content-Type", representation.content_type);
  if (request.method == Method::kHead) {
    answer.size_bytes = size_bytes;
    return answer;
  }
  if (part.size_bytes == 0) {
    return answer;
  }
  std::string& known = representation.known;
  const uint64_t known_begin = representation.known_offset;
  if (part.offset >= known_begin && part.offset - known_begin < known.size()) {
    known.erase(0, static_cast<size_t>(part.offset - known_begin));
    if (known.size() > part.size_bytes) {
      known.resize(static_cast<size_t>(part.size_bytes));
    }
    answer.body = std::move(known);
  } else {
    QUIRE_ASSIGN_OR_RETURN(
        answer.body,
        representation.bytes->Read(
            part.offset, FirstPieceSize(part.size_bytes, budget, charge)));
  }
  answer.rest = {.store = std::move(representation.bytes),
                 .offset = part.offset + answer.body.size(),
                 .size_bytes = part.size_bytes - answer.body.size()};
  return answer;
}

}  // namespace quire
