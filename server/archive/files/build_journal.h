// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file JOURNAL of an unfinished archive: what it is made of and how, so
// that a later writer knows whether the blocks that are there are the ones that
// it would write itself. They need no record of their own: each carries a
// checksum and its place (FORMAT.md, "Block frame").
//
// Text, for people who wonder what the directory is:
//
//   quire journal 2
//   build version 1                 of the program: JournalContents
//   PARAMETERS, some lines
//   checksum 0123456789abcdef       of all lines before
//   dictionary 0123456789abcdef     once it is chosen: the hash of its text
#ifndef QUIRE_SERVER_ARCHIVE_FILES_BUILD_JOURNAL_H_
#define QUIRE_SERVER_ARCHIVE_FILES_BUILD_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// What a journal says.
struct JournalContents {
  std::string parameters;
  std::optional<uint64_t> dictionary_hash = std::nullopt;
  // Version of what makes blocks of the text (kBuildVersion): blocks of another
  // one may be cut elsewhere.
  uint32_t build_version = 0;

  bool operator==(const JournalContents&) const = default;
};

// REQUIRES: the parameters end with a newline.
std::string EncodeJournal(const JournalContents& contents);

// `file` is untrusted: it may end anywhere, as a write that a crash broke off.
// A last line that is not whole counts as absent; nullopt unless all lines
// before it are whole.
std::optional<JournalContents> ParseJournal(absl::string_view file);

// Reads the journal of a directory; nullopt if there is none, or none that is
// whole. Errors: as ErrnoStatus().
absl::StatusOr<std::optional<JournalContents>> ReadJournal(
    int directory_fd, const std::string& directory);

// Writes and syncs the journal, over what was there. A crash meanwhile leaves
// one that is not whole. Errors: as ErrnoStatus().
absl::Status WriteJournal(int directory_fd, const std::string& directory,
                          const JournalContents& contents);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_BUILD_JOURNAL_H_
