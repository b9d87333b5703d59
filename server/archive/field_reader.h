// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fields of documents (FORMAT.md, "Fields"). They are not held in memory: a
// reader asks for the parts of the segment files that it needs.
#ifndef QUIRE_SERVER_ARCHIVE_FIELD_READER_H_
#define QUIRE_SERVER_ARCHIVE_FIELD_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/positions.h"
#include "codecs/filter/field_value.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/fields/segment_field_reader.h"

namespace quire {

// Reads values of some fields, and the bounds of groups of documents.
// Thread-compatible; any thread may use it if `load` allows that.
class DocumentFieldReader {
 public:
  // `columns` are indexes in archive.fields(), in any order. The archive must
  // outlive the reader. The reader keeps up to 16 MiB of decoded parts.
  DocumentFieldReader(const Archive& archive, std::vector<uint32_t> columns,
                      ArchivePartLoader load);

  // Sets `values` to those of the document, one for each of `columns`; null
  // where it has none. They are valid until the next call. Returns false if a
  // part is not at hand; all that are known to be needed were asked for.
  // REQUIRES: the document exists.
  // Errors: DataLoss; those of `load`.
  absl::StatusOr<bool> Read(DocumentOrdinal ordinal,
                            std::vector<FieldView>& values);

  // Sets `group` to the group of documents that are stored with this one, and
  // the bounds of their fields. Needs only the index, one part for up to 1024
  // groups of up to 4096 documents. Otherwise as Read().
  absl::StatusOr<bool> ReadGroup(DocumentOrdinal ordinal, FieldGroup& group);

  // Not movable: readers of segments refer to it.
  DocumentFieldReader(const DocumentFieldReader&) = delete;
  DocumentFieldReader& operator=(const DocumentFieldReader&) = delete;

 private:
  struct Segment {
    Archive::DocumentsOfSegment documents;
    std::unique_ptr<SegmentFieldReader> reader;
  };

  const Segment& SegmentOf(DocumentOrdinal ordinal);

  const Archive& archive_;
  const std::vector<uint32_t> columns_;
  const ArchivePartLoader load_;
  FieldCache cache_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<const Segment>> segments_;
  // That of the last document; null before the first.
  const Segment* last_ = nullptr;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FIELD_READER_H_
