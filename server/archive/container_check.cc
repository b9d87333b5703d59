// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/container_check.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/index/document_index.h"

namespace quire {
namespace {

absl::Status CheckFields(const SegmentReader& segment) {
  const DocumentIndex& documents = segment.documents();
  return CheckSegmentFields(
      segment.fields(), documents.count(), segment.part_loader(),
      [&](uint64_t ordinal) {
        if (documents.RecordType(ordinal) != kWithdrawnRecordType) {
          return false;
        }
        Document document = documents.Describe(ordinal);
        document.id = documents.Id(ordinal);
        return IsRedacted(document);
      });
}

// Compares the index of captures with the documents.
absl::Status CheckCaptures(const SegmentReader& segment) {
  const DocumentIndex& documents = segment.documents();
  std::vector<bool> has_capture(documents.count());
  return VisitCaptures(
      segment.container().captures, segment.part_loader(),
      [&](const SegmentCapture& capture) {
        const Document document = documents.Describe(capture.ordinal);
        const bool is_whole =
            !has_capture[capture.ordinal] &&
            document.capture_time_ms == capture.time_ms &&
            (!capture.id_skip_bytes.has_value() ||
             *capture.id_skip_bytes <= documents.Id(capture.ordinal).size());
        has_capture[capture.ordinal] = true;
        return is_whole ? absl::OkStatus()
                        : Damaged(absl::StrCat(
                              "the index of captures does not fit document ",
                              capture.ordinal, " of the segment"));
      });
}

}  // namespace

absl::Status CheckContainerOf(const SegmentReader& segment) {
  absl::Status status = segment.CheckContainer();
  if (status.ok()) {
    status = CheckFields(segment);
  }
  if (status.ok()) {
    status = CheckCaptures(segment);
  }
  // Parts that cannot be read name it.
  return absl::StartsWith(status.message(), segment.file())
             ? status
             : InFile(segment.file(), status);
}

}  // namespace quire
