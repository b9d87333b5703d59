// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/capture_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Captures between two calls of `check`.
constexpr uint64_t kCheckedCaptures = 4096;

}  // namespace

absl::Status CaptureValues::Load(uint32_t segment_index) {
  const SegmentReader& segment = archive_.ReaderOf(segment_index);
  const SegmentCaptures& captures = segment.container().captures;
  entries_.clear();
  texts_.clear();
  if (captures.capture_count == 0) {
    return absl::OkStatus();
  }
  entries_.reserve(captures.capture_count);
  QUIRE_RETURN_IF_ERROR(InFile(
      segment.file(),
      VisitCaptures(captures, SegmentPartLoader(archive_, segment_index, load_),
                    [this](const SegmentCapture& capture) {
                      Entry entry = {
                          .ordinal = static_cast<uint32_t>(capture.ordinal),
                          .status = static_cast<uint16_t>(capture.status)};
                      if (const std::optional<Sha1> sha1 =
                              ParseSha1Digest(capture.digest);
                          sha1.has_value()) {
                        entry.kind = CaptureDigestKind::kSha1;
                        entry.sha1 = *sha1;
                      } else if (!capture.digest.empty()) {
                        entry.kind = CaptureDigestKind::kText;
                        texts_[entry.ordinal] = capture.digest;
                      }
                      entries_.push_back(entry);
                      return check_ && entries_.size() % kCheckedCaptures == 0
                                 ? check_()
                                 : absl::OkStatus();
                    })));
  std::ranges::sort(entries_, {}, &Entry::ordinal);
  return absl::OkStatus();
}

absl::Status CaptureValues::Find(DocumentOrdinal ordinal, uint32_t& status,
                                 std::string& digest) {
  status = 0;
  digest.clear();
  if (ordinal.value < begin_ || ordinal.value >= end_) {
    const Archive::DocumentsOfSegment segment = archive_.SegmentAt(ordinal);
    end_ = begin_;
    QUIRE_RETURN_IF_ERROR(Load(segment.segment_index));
    begin_ = segment.first_ordinal;
    end_ = begin_ + segment.document_count;
  }
  const auto found = std::ranges::lower_bound(entries_, ordinal.value - begin_,
                                              {}, &Entry::ordinal);
  if (found == entries_.end() || found->ordinal != ordinal.value - begin_) {
    return absl::OkStatus();
  }
  status = found->status;
  switch (found->kind) {
    case CaptureDigestKind::kNone:
      break;
    case CaptureDigestKind::kSha1:
      digest = FormatSha1Digest(AsText(found->sha1));
      break;
    case CaptureDigestKind::kText:
      digest = texts_.find(found->ordinal)->second;
      break;
  }
  return absl::OkStatus();
}

uint64_t CaptureValues::EstimateBytes(const Archive& archive) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    count =
        std::max(count, archive.ReaderOf(i).container().captures.capture_count);
  }
  return count * kCaptureSizeBytes + CaptureCache::kSizeBytesMax;
}

}  // namespace quire
