// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes an archive, so that it is there whole or not at all.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "server/archive/archive.h"

namespace quire {

struct ArchiveWriterOptions {
  // Affects the archive.
  CodecSpec codec;
  // A power of two, 4 KiB to 1 MiB.
  uint32_t block_size_bytes = 64 << 10;
  // Replaces an archive that is already at the path; the old one stays whole
  // until the new one is.
  bool replace = false;
};

// A document to be added. Views are used during the call only.
struct NewDocument {
  absl::string_view id = {};
  uint64_t size_bytes = 0;
  std::optional<int64_t> capture_time_ms = std::nullopt;
  absl::string_view record_type = {};
  absl::string_view media_type = {};
};

// All files are written to the folder PATH.partial beside the archive, synced,
// and the folder is renamed at Commit(). A lock in it tells a writer at work
// from a leftover; leftovers are removed by the next Create() for the path.
//
// The contents are a function of options, dictionary, blocks and documents:
// no clock, no random numbers.
//
// Thread-compatible.
class ArchiveWriter {
 public:
  // The context's dictionary is written to the archive if the codec uses one;
  // its symbol table is not: see SetSymbolTable().
  // Errors: AlreadyExists       the path exists and is not to be replaced, or
  //                             is something other than an archive.
  //         FailedPrecondition  another writer is at work on this path.
  //         InvalidArgument     options out of range, or no path to give a new
  //                             archive.
  //         NotFound            the folder that is to hold it does not exist.
  //         PermissionDenied, Unavailable  the file system refuses.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Create(
      const std::string& path, const ArchiveWriterOptions& options,
      std::shared_ptr<const CodecContext> context);

  // Removes what was written unless Commit() succeeded.
  virtual ~ArchiveWriter() = default;

  // Appends the next block of the current segment. All blocks of a segment but
  // its last have exactly block_size_bytes of text.
  // `stored` is the codec's encoding of `raw`, or empty to store `raw` as is
  // (what a block should do where the codec cannot make it smaller).
  // Errors: Unavailable  the file system refuses (full disk, ...).
  virtual absl::Status AppendBlock(ByteView raw, ByteView stored) = 0;

  // Adds the next document to the current segment. Its bytes are the next
  // size_bytes of the logical space, and lie wholly in this segment.
  // Errors: InvalidArgument  over a limit of the format: ids and attributes of
  //                          65535 bytes, 2^32 - 1 documents in a segment.
  virtual absl::Status AddDocument(const NewDocument& document) = 0;

  // Ends the current segment; the next block starts a new one. Documents added
  // and blocks appended since the last call must agree in size.
  // A segment without blocks and documents is not written.
  virtual absl::Status FinishSegment() = 0;

  // Writes the archive's symbol table, as fsst/symbol_table.h serialises it. At
  // most once. A codec that uses a table needs this call, with the table of the
  // context that encoded the blocks; for others it may come as late as the
  // table is known, or not at all.
  // Errors: InvalidArgument  not a symbol table, or the second one.
  virtual absl::Status SetSymbolTable(absl::string_view serialised) = 0;

  // Ends the last segment, writes the manifest, syncs all, and puts the archive
  // in its place. The writer is of no more use, whatever it returns.
  // Errors: as all calls before; after one failure, of any call, every call
  //         returns it again.
  virtual absl::StatusOr<ArchiveInfo> Commit() = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
