// SPDX-License-Identifier: GPL-3.0-or-later
//
// The target of everything that writes segments: builds, appends, compaction,
// recompression and redaction. The archive appears completely or not at all.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
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
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/partial_directory.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/layout_section.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/member_count.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/kept_blocks.h"
#include "server/archive/segment_writer.h"
#include "server/archive/unfinished_archive.h"

namespace quire {

struct LeftOut;

// "quired VERSION".
std::string DefaultWriter();

struct ArchiveWriterOptions {
  // Affects the archive.
  CodecSpec codec;
  // A power of two, 4 KiB to 1 MiB.
  uint32_t block_size_bytes = 64 << 10;
  // Name of the writing program, at most 256 bytes; for people.
  std::string writer = DefaultWriter();
  // Replace an archive at the path; the old one stays complete until the new
  // one is.
  bool replace = false;
  // Called with the directory and the name of each segment that is finished and
  // synced. It may remove the file, unless a later writer is to resume. An
  // error ends the writing.
  std::function<absl::Status(const std::string& directory,
                             const std::string& name)>
      on_segment = {};
};

// Takes payloads of blocks, and documents; blocks/block_stage.h of
// server/ingest encodes text for it. Makes of them segments with the next
// numbers, and a manifest that names them. There are three kinds:
//
//   new       Create() and Continue(): the archive's segments.
//   grown     Append(): segments after those of an archive, whose encoding they
//             have.
//   replaced  Replace(): segments in the places of others, with the same
//             documents. Redact(): the same without the text, ids and
//             attributes of some of them.
//
// All files are written to the directory PATH.partial, next to the archive, and
// synced; Commit() renames the directory, or in a change of an existing archive
// its files. A locked file in it distinguishes an active writer from a
// leftover. The next Create() for the path removes leftovers, but no other
// directories of that name.
//
// The contents are a function of options, dictionary, blocks and documents: no
// clock, no random numbers.
//
// Thread-compatible.
class ArchiveWriter {
 public:
  // The context's dictionary is written to the archive if the codec uses one;
  // its symbol table is not: see SetSymbolTable().
  // Errors: AlreadyExists       the path exists and is not to be replaced, or
  //                             is not an archive.
  //         FailedPrecondition  another writer is at work on this path.
  //         InvalidArgument     options out of range, or an empty path.
  //         NotFound            the parent directory does not exist.
  //         PermissionDenied, Unavailable  the file system refuses.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Create(
      const std::string& path, const ArchiveWriterOptions& options,
      std::shared_ptr<const CodecContext> context);

  // Resumes an unfinished archive, with the `options.replace` that it was
  // opened with. Keeps its undamaged blocks if they were made with the same
  // dictionary; `on_read` is as in ReadKeptBlocks(). Once this writer has
  // written a block, the files stay for a later writer unless Commit()
  // succeeds.
  // Errors: as Create(), and those of ReadKeptBlocks().
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Continue(
      UnfinishedArchive unfinished, const ArchiveWriterOptions& options,
      std::shared_ptr<const CodecContext> context,
      const std::function<absl::Status(uint64_t size_bytes)>& on_read);

  // Writes more segments for an existing archive, with its codec, level, sizes,
  // dictionary and symbol table. The blocks must be encoded with these.
  // SetSymbolTable() and SetChoice() must not be called. `writer` and
  // `on_segment` are as in ArchiveWriterOptions; with the latter segments must
  // not be joined. Commit() publishes nothing if there are no new
  // segments.
  static std::unique_ptr<ArchiveWriter> Append(
      ArchiveChange change, const std::string& writer,
      decltype(ArchiveWriterOptions::on_segment) on_segment = {});

  // The same, but the new segments replace those of the archive from index
  // `first` on, and must have the same documents: Commit() fails if their sizes
  // or number differ. Reads the old blocks if the manifest counts their
  // members; `cancel` may be null. REQUIRES: first <= number of segments.
  // Errors: DataLoss  an old block is damaged; Cancelled.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Replace(
      ArchiveChange change, const std::string& writer, size_t first,
      const std::atomic<bool>* cancel);

  // Writes an archive again without some documents. The new segments are
  // encoded with the dictionary of `context`, or that of the archive if it is
  // null. The messages about unread inputs, which may have ids, are dropped.
  // Commit() makes earlier states redacted ones (EarlierStates::kRedact).
  static std::unique_ptr<ArchiveWriter> Redact(
      ArchiveChange change, std::shared_ptr<const CodecContext> context);

  // Removes the written files unless Commit() succeeded; for an exception see
  // Continue().
  ~ArchiveWriter();

  // Replaces one segment of the archive by the next one, which has the same
  // number of documents, of the same sizes. UncountBlock() must be called for
  // all its blocks. REQUIRES: Redact() made this; no segment is begun.
  // Errors: as AppendBlock(); InvalidArgument  all segment numbers are used.
  absl::Status ReplaceSegment(size_t index);

  // Takes a block of a replaced segment, with `size_bytes` of text, out of the
  // archive's counts. Errors: DataLoss  the counts do not have it.
  absl::Status UncountBlock(uint64_t size_bytes, const Payload& payload);

  // True if the next block of the current segment was kept; KeepBlock() must
  // then take it. REQUIRES for these: all earlier blocks were appended.
  absl::StatusOr<bool> HasKeptBlock();
  // Takes the kept block as the next one and returns it. `size_bytes` is the
  // size of its text.
  // Errors: FailedPrecondition  it cannot be a block of that size.
  absl::StatusOr<KeptBlock> KeepBlock(uint64_t size_bytes);

  // Appends the next block of the current segment, of 1 byte to 1 MiB of text.
  // Reading takes the least memory if all blocks except the last of a segment
  // have block_size_bytes. `payload` is the codec's encoding of `raw`; the text
  // itself is stored if it is raw, empty, or not smaller than `raw`.
  // Errors: Unavailable  the file system refuses (full disk, ...).
  absl::Status AppendBlock(ByteView raw, const Payload& payload) {
    return CopyBlock(raw.size(), StoredPayload(raw, payload));
  }

  // The same for a payload that is stored elsewhere already, as it is there.
  // `size_bytes` is the size of its text.
  absl::Status CopyBlock(uint64_t size_bytes, const Payload& payload);

  // Records the results for compressed members, for people who inspect the
  // archive, in order of container. An appending writer adds them up.
  void SetFoundMembers(std::vector<FoundMembers> found) {
    manifest_.found_members = std::move(found);
  }

  // Records for people how the archive is built; truncated to
  // kChoiceSizeBytesMax.
  void SetChoice(const std::string& choice) {
    manifest_.choice = choice.substr(0, kChoiceSizeBytesMax);
  }

  // Adds the next document to the current segment. Its bytes are the next
  // size_bytes of the logical space, all in this segment.
  // Errors: InvalidArgument  over a limit of the format.
  absl::Status AddDocument(const NewDocument& document);

  // Adds all documents of a segment of the archive, as CarryDocuments() of
  // carried_documents.h. Errors: those of it.
  absl::Status CarryDocuments(const SegmentReader& from,
                              const LeftOut& left_out);

  // Sets the fields of the documents of the next segments, and of the current
  // one, to which only columns are added. NewDocument::fields are in this
  // order. REQUIRES: each segment's documents are added after this. Errors:
  // those of FieldsBuilder::AddColumn().
  absl::Status SetFields(std::vector<FieldColumn> columns);

  // Replaces AddDocument() for a segment whose blocks hold the stored text of
  // `layout`: sets all its documents at once.
  // REQUIRES: FORMAT.md, "Layout"; a layout of one run, for text that is stored
  // in its own order, makes a segment without a layout section.
  // Errors: InvalidArgument  the segment has documents already.
  absl::Status SetLayout(LayoutSection layout, DocumentIndexBuilder documents);

  // Ends the current segment; the next block starts a new one. Documents added
  // and blocks appended since the last call must agree in size.
  // A segment without blocks and documents is not written.
  absl::Status FinishSegment();

  // New segments of an appending writer, before they are joined.
  struct Appended {
    uint32_t segment_count = 0;
    uint64_t size_bytes = 0;
    // Text in their blocks: without what repeats, if it is reordered.
    uint64_t stored_text_size_bytes = 0;
    uint64_t file_size_bytes = 0;
  };

  Appended appended() const;

  // Ends the current segment and joins the last segments of the archive into
  // one, earlier ones included (segment_merger.h), if there are new ones.
  // Returns the number of segments that were joined, 0 if none. `codec` encodes
  // and decodes the archive's blocks; `cancel` may be null.
  // REQUIRES: an appending writer.
  // Errors: DataLoss  an old segment is damaged: none is joined, and Commit()
  //                   may still be called. Cancelled and others of files.
  absl::StatusOr<uint32_t> JoinSegments(const PayloadCodec& codec,
                                        uint64_t size_bytes_max,
                                        const std::atomic<bool>* cancel);

  // Writes the archive's symbol table, serialised as by fsst/symbol_table.h. At
  // most once. A codec that uses a table needs this call, with the table of the
  // context that encoded the blocks. For other codecs the call is optional and
  // may come at any time before Commit().
  // Errors: InvalidArgument  not a symbol table, or the second one.
  absl::Status SetSymbolTable(absl::string_view serialised);

  // Records inputs that are not in the archive because they could not be read,
  // at most once. `messages` describe the first of them, as
  // ArchiveInfo::unread_inputs.
  void AddUnreadInputs(uint64_t count, std::vector<std::string> messages) {
    manifest_.unread_input_count += count;
    std::ranges::move(messages, std::back_inserter(manifest_.unread_inputs));
  }

  // Ends the last segment, writes the manifest, syncs all, and moves the
  // archive, or its new files, into place. The writer is unusable afterwards,
  // whatever it returns. Errors: as all calls before; after one failure, of any
  // call, every call
  //         returns it again.
  absl::StatusOr<ArchiveInfo> Commit();

  // The published manifest of a change, and what was left of its old files.
  // REQUIRES: Commit() published a change.
  const ArchiveChange::Committed& committed() const { return *committed_; }

 private:
  ArchiveWriter(PartialDirectory directory, const ArchiveWriterOptions& options,
                std::shared_ptr<const CodecContext> dictionary);
  // The dictionary is a new one, or null.
  ArchiveWriter(ArchiveChange change,
                std::shared_ptr<const CodecContext> dictionary);

  // Errors: InvalidArgument  as Create(). Drops a context that the codec does
  //                          not use.
  static absl::Status Check(const ArchiveWriterOptions& options,
                            std::shared_ptr<const CodecContext>& context);
  // Removes files that cannot be resumed, and reads the rest.
  absl::Status ReadKept(
      const std::function<absl::Status(uint64_t size_bytes)>& on_read);
  SegmentHeader HeaderOf(uint32_t segment_number) const;
  absl::Status StartSegment();
  // Directory of the new files, and its path for messages.
  int directory_fd() const;
  const std::string& directory_name() const;
  absl::StatusOr<ArchiveInfo> Publish();
  // Returns the number of the next segment.
  // Errors: InvalidArgument  all are used.
  absl::StatusOr<uint32_t> NextNumber() const;
  // True if segments with numbers from that of `change_` on exist.
  bool HasNewSegments() const;
  // Opens a segment of the archive, or a new one.
  absl::StatusOr<SegmentFile> OpenSegmentFile(
      const ManifestSegment& segment) const;
  // Starts a new dictionary's file in the background.
  void StartDictionary(std::shared_ptr<const CodecContext> context);
  // Lets the next segments take the places of those from `first` to `end` - 1.
  void RemoveSegments(size_t first, size_t end);
  // UncountBlock() for all blocks of a segment.
  absl::Status Uncount(const ManifestSegment& segment,
                       const std::atomic<bool>* cancel);
  // Completes the counts of members in the manifest.
  void CountMembers();
  // Errors: FailedPrecondition  replaced documents are missing.
  absl::Status CheckReplaced() const;
  // Counts the blocks in `members`. Sets `is_new_damaged` if it fails with
  // DataLoss and a segment of this writer is damaged.
  absl::StatusOr<ManifestSegment> Join(std::span<const ManifestSegment> joined,
                                       const PayloadCodec& codec,
                                       const std::atomic<bool>* cancel,
                                       MemberCount& members,
                                       bool& is_new_damaged);
  // Stores the first failure, after which no call may publish an archive.
  absl::Status Keep(const absl::Status& status);

  // One of the two. First, so that it outlives the writers of its files.
  std::optional<PartialDirectory> directory_;
  std::optional<ArchiveChange> change_;
  decltype(ArchiveWriterOptions::on_segment) on_segment_;
  // 0 without a dictionary.
  uint64_t dictionary_hash_ = 0;
  // True if a later writer may resume.
  bool is_resumable_ = false;
  // Kept blocks per segment, including the current one.
  std::vector<KeptBlocks> kept_;
  Manifest manifest_;
  // Index of the next segment among those of the manifest, and its level.
  size_t next_index_ = 0;
  int next_level_ = 0;
  // The new segments replace others.
  bool is_replacing_ = false;
  EarlierStates earlier_ = EarlierStates::kKeep;
  // Those of the archive before a change.
  std::vector<FoundMembers> found_before_;
  // With codec auto.
  MemberCount members_;
  // For codecs that inflate: counts over blocks that were not kept, and over
  // those of replaced segments.
  InflatedCount inflated_;
  InflatedCount inflated_before_;
  std::optional<DictionaryFileWriter> dictionary_;
  std::optional<SegmentWriter> segment_;
  std::vector<FieldColumn> fields_;
  absl::Status status_;
  std::optional<ArchiveChange::Committed> committed_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_WRITER_H_
