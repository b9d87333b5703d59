// SPDX-License-Identifier: GPL-3.0-or-later
//
// Saves the documents of a damaged archive that can still be decoded.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_SALVAGE_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_SALVAGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/format/archive_description.h"

namespace quire {

// Documents up to this size are held, and written only if all of them decodes.
// Larger ones are decoded twice: to know whether they are whole, and to write
// them.
inline constexpr uint64_t kSalvageHeldSizeBytesMax = uint64_t{16} << 20;

// Destination of the documents. Thread-compatible.
class SalvageOutput {
 public:
  virtual ~SalvageOutput() = default;

  // True if the output has the fields of documents.
  virtual bool keeps_fields() const { return false; }

  // Begins the documents of a segment, which have these fields; none if the
  // output does not keep them. The columns of all segments together are at most
  // kFieldCountMax, each of one type.
  virtual absl::Status BeginSegment(
      [[maybe_unused]] absl::Span<const FieldColumn> fields) {
    return absl::OkStatus();
  }

  // Begins a document with a value for each of the segment's fields; returns
  // its name in the output. The id is meaningless without `has_id`.
  // Errors: Unavailable and others of the file system, for all functions.
  virtual absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> fields) = 0;
  // Appends to the document; Begin() had its size. Not called for each byte of
  // it if Drop() follows.
  virtual absl::Status Write(ByteView bytes) = 0;
  virtual absl::Status End() = 0;
  // In place of End(): removes what was written of the document, which has more
  // than kSalvageHeldSizeBytesMax.
  virtual absl::Status Drop() = 0;

  // Called once, after all documents, with the number of those that are lost.
  // Makes the output durable and gives it its name.
  virtual absl::Status Finish(uint64_t lost_count) = 0;
};

// A document of which some bytes cannot be decoded.
struct LostDocument {
  Document document;
  // The id is unknown: the index of ids is damaged.
  bool has_id = true;
  // Parts of the document that cannot be decoded, in its own bytes.
  std::vector<LogicalRange> lost;
  // First reason.
  absl::Status status;
};

struct SalvageReport {
  // False if MANIFEST is unusable: segments are then in the order of their
  // numbers, and segments whose files are missing are unknown. Segments that an
  // interrupted append had joined, but not yet removed, repeat documents of the
  // joined one.
  bool has_manifest = true;
  uint64_t saved_count = 0;
  uint64_t saved_size_bytes = 0;
  // Documents with bytes that cannot be decoded, and those of segments that
  // cannot be used at all.
  uint64_t lost_count = 0;
  // Without MANIFEST: files of segments that were left out, because they are
  // unusable or of another archive. The number of their documents is unknown,
  // and not in `lost_count`.
  uint64_t left_out_segment_count = 0;
  // Sections that were used although no checksum proves them: ids, times, types
  // and text of saved documents of their segments can be wrong.
  uint64_t unproved_section_count = 0;
  // Segments some of whose fields are not saved: the output does not keep them,
  // or their description is damaged, or they contradict other segments.
  uint64_t unsaved_fields_count = 0;
  // Values of fields of saved documents that are in damaged parts, and saved as
  // null. Documents that had no value are among them.
  uint64_t lost_field_value_count = 0;
  // Deposited files that are not saved, and parts of such files.
  uint64_t unsaved_file_count = 0;
  uint64_t damage_count = 0;
};

struct SalvageCallbacks {
  // A fault of a file; begins with its path. Faults of blocks are those of
  // their documents. Documents of a segment that cannot be used are named here,
  // by ordinals and range.
  std::function<void(const absl::Status&)> on_damage;
  std::function<void(const LostDocument&)> on_lost;
  // A document was written under a name other than its id.
  std::function<void(const Document&, const std::string& name)> on_renamed;
};

// Reads the archive in the directory `path` and passes each document that
// decodes completely to `output`, in the order of ordinals. Uses what each part
// of the archive still proves: without MANIFEST the segments' tables, without
// these the manifest and the sections themselves, without offsets of blocks the
// checksums of their frames. A document whose blocks cannot be read a second
// time, when it is written, is lost too. Documents that a redaction removed are
// neither saved nor lost. Saved documents keep their fields if the output does;
// values in damaged parts become null. Holds the dictionary, one segment's
// indexes and 48 MiB. Blocks.
//
// Errors: NotFound   no such directory, or no file of an archive in it.
//         DataLoss   no segment states the codec.
//         and those of `output`. Damage is no error.
absl::StatusOr<SalvageReport> SalvageArchive(const std::string& path,
                                             SalvageOutput& output,
                                             const SalvageCallbacks& callbacks);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_SALVAGE_H_
