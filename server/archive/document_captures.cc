// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/document_captures.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {

absl::Status DocumentCaptures::Load(uint32_t segment_index) {
  const SegmentReader& segment = archive_.ReaderOf(segment_index);
  text_.clear();
  entries_.clear();
  entries_.reserve(segment.container().captures.capture_count);
  QUIRE_RETURN_IF_ERROR(InFile(
      segment.file(),
      VisitCaptures(
          segment.container().captures, segment.part_loader(),
          [this](const SegmentCapture& capture) {
            Entry entry = {
                .ordinal = static_cast<uint32_t>(capture.ordinal),
                .status = capture.status,
                .offset = text_.size(),
                .key_size_bytes = static_cast<uint32_t>(capture.key.size()),
                .digest_size_bytes =
                    static_cast<uint16_t>(capture.digest.size())};
            if (capture.digest.size() > kAttributeSizeBytesMax ||
                capture.url.size() > kDocumentIdSizeBytesMax) {
              return Damaged("a digest or URL of a capture is too long");
            }
            absl::StrAppend(&text_, capture.key, capture.digest);
            if (capture.id_skip_bytes.has_value()) {
              entry.id_skip_bytes =
                  static_cast<uint16_t>(*capture.id_skip_bytes);
            } else {
              entry.url_size_bytes = static_cast<uint16_t>(capture.url.size());
              absl::StrAppend(&text_, capture.url);
            }
            entries_.push_back(entry);
            return absl::OkStatus();
          })));
  std::ranges::sort(entries_, {}, &Entry::ordinal);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<NewCapture>> DocumentCaptures::Find(
    DocumentOrdinal ordinal, absl::string_view id) {
  if (ordinal.value < begin_ || ordinal.value >= end_) {
    const Archive::DocumentsOfSegment segment = archive_.SegmentAt(ordinal);
    begin_ = segment.first_ordinal;
    end_ = begin_ + segment.document_count;
    QUIRE_RETURN_IF_ERROR(Load(segment.segment_index));
  }
  const auto found = std::ranges::lower_bound(entries_, ordinal.value - begin_,
                                              {}, &Entry::ordinal);
  if (found == entries_.end() || found->ordinal != ordinal.value - begin_) {
    return std::nullopt;
  }
  const absl::string_view text(text_);
  NewCapture capture = {
      .key = text.substr(found->offset, found->key_size_bytes),
      .status = found->status,
      .digest = text.substr(found->offset + found->key_size_bytes,
                            found->digest_size_bytes)};
  if (found->id_skip_bytes.has_value()) {
    capture.url = id.substr(std::min<size_t>(*found->id_skip_bytes, id.size()));
  } else {
    const uint64_t offset =
        found->offset + found->key_size_bytes + found->digest_size_bytes;
    capture.url = text.substr(offset, found->url_size_bytes);
  }
  return capture;
}

}  // namespace quire
