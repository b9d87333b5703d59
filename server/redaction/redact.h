// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removes documents from an archive: their text from its blocks and its
// dictionary, their ids and attributes from its indexes.
#ifndef QUIRE_SERVER_REDACTION_REDACT_H_
#define QUIRE_SERVER_REDACTION_REDACT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/filter/filter.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/kept_references.h"
#include "server/redaction/dictionary_redaction.h"
#include "server/redaction/redaction_proof.h"

namespace quire {

enum class RedactPhase {
  // Looks for documents that match the filter.
  kSelect,
  // Looks for text of the dictionary in the removed and the remaining text.
  kCompare,
  // Writes the changed segments; with a dry run, counts their blocks.
  kRewrite,
  // Reads the new archive.
  kProve,
};

struct RedactProgress {
  RedactPhase phase = RedactPhase::kCompare;
  // Text read in this phase; kCompare and kProve may read all of it repeatedly.
  // 0 in kSelect.
  uint64_t done_bytes = 0;
};

struct RedactOptions {
  // Affects behaviour: the archive must have this uuid; empty: any.
  std::string archive_uuid = {};
  // Affects behaviour: also remove the documents that match this filter.
  std::optional<Filter> where = {};
  // Affects behaviour: find out what would change, and change nothing.
  bool dry_run = false;
  // Affects behaviour: return the documents in RedactReport::items.
  bool with_items = false;
  // Affects behaviour: examine the new archive (redaction_proof.h).
  bool prove = false;
  // Affects performance: threads that read and encode, at least 1.
  uint32_t threads = 1;
  // Affects performance: see RedactDictionary().
  size_t windows_per_pass = kWindowsPerPassMax;
  // Called on the calling thread, for each block; may be empty.
  std::function<void(const RedactProgress&)> on_progress = {};
  // Cancels the call once true: it fails with Cancelled, and nothing changes.
  // Has no effect once the new archive is published. May be null.
  const std::atomic<bool>* cancel = nullptr;
};

struct RedactReport {
  // The archive before.
  ArchiveInfo before;
  // The archive after; unset with a dry run.
  std::optional<ArchiveInfo> after;
  // The removed documents, and the size of their text.
  uint64_t document_count = 0;
  uint64_t size_bytes = 0;
  // Those among them that items name, and that match the filter.
  uint64_t named_count = 0;
  uint64_t matched_count = 0;
  // The documents in the order of the archive, as `items` name them, if they
  // were asked for: with a number if their id has several.
  std::vector<std::string> items = {};
  // Ids of which other documents stay, so that their occurrences are counted
  // anew.
  uint64_t renumbered_id_count = 0;
  // Deposited files that had text of removed documents, and cannot be read any
  // more.
  uint64_t withdrawn_file_count = 0;
  // The part of it that other documents share, and which therefore stays.
  uint64_t shared_size_bytes = 0;
  // New segments, and the size of the text of their blocks.
  uint64_t segment_count = 0;
  uint64_t stored_text_size_bytes = 0;
  // Blocks with new text, and further blocks that the new dictionary decodes to
  // another text, so that they are encoded anew.
  uint64_t changed_block_count = 0;
  uint64_t reencoded_block_count = 0;
  // Bytes of the dictionary that became zeros.
  uint64_t dictionary_zeroed_bytes = 0;
  // Records that stay and may refer to removed ones; unlocated records only
  // with a filter.
  KeptReferences references;
  // An error if the files that the new archive does not have could not be
  // removed: they still contain the text.
  absl::Status old_files;
  // Unset without RedactOptions::prove.
  std::optional<RedactionProof> proof;
};

// Removes the documents that `items` name (codecs/base/document_item.h), all of
// an id without an occurrence, and those that match the filter, from the
// archive at `path`, which is the old or the new one at any moment
// (archive_change.h); then removes its old files.
// Ordinals and offsets stay: the text of removed documents becomes zeros, their
// ids become empty, their attributes none, and their record type "withdrawn".
// Messages about unread inputs disappear too. Equal archives, items and filters
// give equal archives. The state before joins the redacted states.
//
// Repeating a call never removes other documents: a call whose items would all
// name documents in the new archive too, but others, requires `archive_uuid`.
//
// Text of the dictionary is zeroed if the removed documents have it and the
// others have not, in windows (window_table.h) of 32 bytes; as the headers of
// segments name the dictionary, a new one makes all segments new. The symbol
// table stays. Memory: the opened archive, a copy of its dictionary,
// `windows_per_pass` windows, the tables of one segment (SegmentRedaction,
// DocumentIndexBuilder), and those of ParallelEncoder. Blocks.
// Errors: InvalidArgument     neither items nor a filter; or a value of the
//                             filter has another type than its field.
//         NotFound            a document is not there, names it; no document
//                             matches the filter; or it names a field that the
//                             archive does not have.
//         DataLoss            the archive is damaged, also where fields that
//                             the filter needs are.
//         FailedPrecondition  another writer is at work, the archive has parts
//                             that this program does not know, has another
//                             uuid or requires one, or it was replaced
//                             meanwhile.
//         Cancelled, ResourceExhausted; Unavailable, PermissionDenied  of the
//         file system, such as a full disk.
// After an error the archive is unchanged, except if the last sync of its
// directory or the proof failed; the message says so.
absl::StatusOr<RedactReport> RedactArchive(const std::string& path,
                                           std::span<const std::string> items,
                                           const RedactOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_REDACT_H_
