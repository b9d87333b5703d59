// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive that one writer began and another can finish.
#ifndef QUIRE_SERVER_ARCHIVE_UNFINISHED_ARCHIVE_H_
#define QUIRE_SERVER_ARCHIVE_UNFINISHED_ARCHIVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/archive/files/build_journal.h"
#include "server/archive/files/partial_directory.h"

namespace quire {

// Holds PATH.partial until ArchiveWriter::Continue() takes ownership. Movable.
// Thread-compatible.
class UnfinishedArchive {
 public:
  // Opens what an earlier writer left for `path`, or starts afresh if nothing
  // can be resumed. `parameters` are lines that describe the archive's inputs
  // and options: writers of one `build_version` with equal parameters make the
  // same blocks. Drops what a writer of another version left; with `restart`,
  // of any.
  // Errors: FailedPrecondition  it was begun with other parameters.
  //         as PartialDirectory::Create().
  static absl::StatusOr<UnfinishedArchive> Open(const std::string& path,
                                                bool replace,
                                                const std::string& parameters,
                                                uint32_t build_version,
                                                bool restart);

  // True if Open() dropped blocks, of another version or with a damaged
  // journal.
  bool has_dropped_blocks() const { return has_dropped_blocks_; }

  // Returns the text of the dictionary that the blocks were made with; unset if
  // it is missing or damaged. Errors: Unavailable  the device refuses.
  std::optional<std::string> ReadDictionary() const;

  // Records the dictionary, or that there is none (null). Drops blocks that
  // were made with another dictionary. Errors: as PartialDirectory::Create().
  absl::Status StartWriting(const CodecContext* context);

  PartialDirectory Take() && { return std::move(directory_); }

 private:
  UnfinishedArchive(PartialDirectory directory, JournalContents journal)
      : directory_(std::move(directory)), journal_(std::move(journal)) {}

  PartialDirectory directory_;
  JournalContents journal_;
  bool has_dropped_blocks_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_UNFINISHED_ARCHIVE_H_
