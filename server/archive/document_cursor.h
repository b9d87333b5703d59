// SPDX-License-Identifier: GPL-3.0-or-later
//
// Descriptions of documents in the order of the archive.
#ifndef QUIRE_SERVER_ARCHIVE_DOCUMENT_CURSOR_H_
#define QUIRE_SERVER_ARCHIVE_DOCUMENT_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/index/document_index.h"
#include "server/archive/index/id_index.h"

namespace quire {

// Describes one document after the other, in any order. Costs less than
// Archive::GetDocument() of each if the next one is close, and nothing for what
// is not asked for. The archive must outlive it. Thread-compatible.
class DocumentCursor {
 public:
  explicit DocumentCursor(const Archive& archive) : archive_(archive) {}

  // REQUIRES: the document exists.
  void MoveTo(DocumentOrdinal ordinal);

  // REQUIRES for the following: MoveTo() was called. Views are valid until the
  // next call.

  DocumentOrdinal ordinal() const { return {first_ordinal_ + local_}; }

  LogicalRange Range() const;
  // Also empty if the ids are damaged.
  absl::string_view Id();

  std::optional<int64_t> CaptureTimeMs() const {
    return documents_->CaptureTimeMs(local_);
  }

  // Empty if it has none.
  absl::string_view MediaType() const { return documents_->MediaType(local_); }

  // The same; that of a removed document also if damage hides whether it is
  // one.
  absl::string_view RecordType() const;
  // See Archive::IsRedacted().
  bool IsRedacted() const;

 private:
  const Archive& archive_;
  // Segment of the document: its documents, ordinals up to `end_ordinal_`, and
  // its start in the logical space.
  const DocumentIndex* documents_ = nullptr;
  uint64_t first_ordinal_ = 0;
  uint64_t end_ordinal_ = 0;
  uint64_t start_ = 0;
  // Ordinal in the segment.
  uint64_t local_ = 0;
  // At the id that was asked for last.
  std::optional<IdIndex::Cursor> ids_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DOCUMENT_CURSOR_H_
