// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writes an archive, so that it is there whole or not at all.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/payload/inflated_count.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/partial_directory.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/member_count.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/kept_blocks.h"
#include "server/archive/segment_writer.h"
#include "server/archive/unfinished_archive.h"

namespace quire {

// "quired VERSION".
std::string DefaultWriter();

struct ArchiveWriterOptions {
  // Affects the archive.
  CodecSpec codec;
  // A power of two, 4 KiB to 1 MiB.
  uint32_t block_size_bytes = 64 << 10;
  // Program that writes, at most 256 bytes; for people.
  std::string writer = DefaultWriter();
  // Replaces an archive that is already at the path; the old one stays whole
  // until the new one is.
  bool replace = false;
};

// All files are written to the directory PATH.partial, next to the archive,
// synced, and the directory is renamed at Commit(). A locked file in it tells
// an active writer from a leftover; leftovers are removed by the next Create()
// for the path, other directories of that name never.
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
  //         NotFound            the directory that is to hold it does not
  //         exist. PermissionDenied, Unavailable  the file system refuses.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Create(
      const std::string& path, const ArchiveWriterOptions& options,
      std::shared_ptr<const CodecContext> context);

  // Goes on with an unfinished archive: `options.replace` is what it was opened
  // with. Keeps its blocks if they were made with the same dictionary, as far
  // as they are whole; `on_read` is as in ReadKeptBlocks(). Once a block of its
  // own is written, what was written stays for a later writer unless Commit()
  // succeeds.
  // Errors: as Create(), and those of ReadKeptBlocks().
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Continue(
      UnfinishedArchive unfinished, const ArchiveWriterOptions& options,
      std::shared_ptr<const CodecContext> context,
      const std::function<absl::Status(uint64_t size_bytes)>& on_read);

  // Removes what was written unless Commit() succeeded; but see Continue().
  ~ArchiveWriter();

  // Whether the next block of the current segment was kept; if so KeepBlock()
  // must take it. REQUIRES for these: all blocks before were appended.
  absl::StatusOr<bool> HasKeptBlock();
  // `size_bytes` is that of its text. Returns what was taken.
  // Errors: FailedPrecondition  it cannot be of a block of that size.
  absl::StatusOr<KeptBlock> KeepBlock(uint64_t size_bytes);

  // Appends the next block of the current segment, of 1 byte to 1 MiB of text.
  // Blocks of block_size_bytes, but for the last of a segment, take the least
  // memory to read.
  // `payload` is the codec's encoding of `raw`; the text itself is stored if it
  // is raw, empty, or not smaller than `raw`.
  // Errors: Unavailable  the file system refuses (full disk, ...).
  absl::Status AppendBlock(ByteView raw, Payload payload);

  // What the build made of compressed members, for those who inspect the
  // archive; in order of container.
  void SetFoundMembers(std::vector<FoundMembers> found) {
    manifest_.found_members = std::move(found);
  }

  // Notes for people how the archive is built; cut to kChoiceSizeBytesMax.
  void SetChoice(const std::string& choice) {
    manifest_.choice = choice.substr(0, kChoiceSizeBytesMax);
  }

  // Adds the next document to the current segment. Its bytes are the next
  // size_bytes of the logical space, and lie wholly in this segment.
  // Errors: InvalidArgument  over a limit of the format: ids and attributes of
  //                          65535 bytes, 2^32 - 1 documents in a segment.
  absl::Status AddDocument(const NewDocument& document);

  // Instead of AddDocument(), for a segment whose blocks hold the stored text
  // of `layout`: all its documents at once. REQUIRES: FORMAT.md, "Layout"; one
  // run, for text that is stored in its own order, makes a segment without a
  // layout section. Errors: InvalidArgument  the segment has documents already.
  absl::Status SetLayout(LayoutSection layout, DocumentIndexBuilder documents);

  // Ends the current segment; the next block starts a new one. Documents added
  // and blocks appended since the last call must agree in size.
  // A segment without blocks and documents is not written.
  absl::Status FinishSegment();

  // Writes the archive's symbol table, as fsst/symbol_table.h serialises it. At
  // most once. A codec that uses a table needs this call, with the table of the
  // context that encoded the blocks; for others it may come as late as the
  // table is known, or not at all.
  // Errors: InvalidArgument  not a symbol table, or the second one.
  absl::Status SetSymbolTable(absl::string_view serialised);

  // What Commit() notes in the archive of inputs that are not in it because
  // they could not be read; 0 without this call. `messages` say of the first
  // what they were, as ArchiveInfo::unread_inputs.
  void SetUnreadInputs(uint64_t count, std::vector<std::string> messages) {
    manifest_.unread_input_count = count;
    manifest_.unread_inputs = std::move(messages);
  }

  // Ends the last segment, writes the manifest, syncs all, and puts the archive
  // in its place. The writer is of no more use, whatever it returns.
  // Errors: as all calls before; after one failure, of any call, every call
  //         returns it again.
  absl::StatusOr<ArchiveInfo> Commit();

 private:
  ArchiveWriter(PartialDirectory directory, const ArchiveWriterOptions& options,
                std::shared_ptr<const CodecContext> dictionary);

  // Errors: InvalidArgument  as Create(). Drops a context that is not used.
  static absl::Status Check(const ArchiveWriterOptions& options,
                            std::shared_ptr<const CodecContext>& context);
  // Removes what cannot be gone on with, and reads the rest.
  absl::Status ReadKept(
      const std::function<absl::Status(uint64_t size_bytes)>& on_read);
  SegmentHeader HeaderOf(uint32_t segment_number) const;
  absl::Status StartSegment();
  // After one failure no other call may make an archive of what is there.
  absl::Status Keep(const absl::Status& status);

  // First, so that it outlives those who write into it.
  PartialDirectory directory_;
  // 0 without a dictionary.
  uint64_t dictionary_hash_ = 0;
  // Whether a later writer may go on.
  bool is_resumable_ = false;
  // Of each segment that has some, the one that is written included.
  std::vector<KeptBlocks> kept_;
  Manifest manifest_;
  // With codec auto.
  MemberCount members_;
  // With a codec that inflates, of blocks that were not kept.
  InflatedCount inflated_;
  std::optional<DictionaryFileWriter> dictionary_;
  std::optional<SegmentWriter> segment_;
  absl::Status status_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
