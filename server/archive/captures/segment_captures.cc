// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/segment_captures.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"

namespace quire {

absl::StatusOr<SegmentCaptures> SegmentCaptures::Parse(
    ByteView head, uint64_t document_count, uint64_t data_size_bytes) {
  SegmentCaptures captures = {.document_count = document_count,
                              .data_size_bytes = data_size_bytes};
  QUIRE_ASSIGN_OR_RETURN(captures.capture_count, TakeVarint(head));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t level_count, TakeVarint(head));
  QUIRE_ASSIGN_OR_RETURN(captures.root,
                         TakePartReference(head, data_size_bytes));
  if (captures.capture_count == 0 || captures.capture_count > document_count ||
      level_count > kCaptureLevelsMax || !head.empty()) {
    return Damaged(absl::StrCat("an index of ", captures.capture_count,
                                " captures of ", document_count,
                                " documents has ", level_count, " levels, and ",
                                head.size(), " bytes follow"));
  }
  captures.level_count = static_cast<uint32_t>(level_count);
  return captures;
}

std::string SegmentCaptures::Encode() const {
  std::string head;
  AppendVarint(capture_count, head);
  AppendVarint(level_count, head);
  AppendPartReference(root, head);
  return head;
}

}  // namespace quire
