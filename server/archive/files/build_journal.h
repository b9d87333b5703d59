// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file JOURNAL of an unfinished archive: its inputs and parameters. A later
// writer compares them to decide whether it would write the same blocks. Blocks
// need no record here: each carries a checksum and its position (FORMAT.md,
// "Block frame").
//
// Text, readable by users:
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

struct JournalContents {
  std::string parameters;
  std::optional<uint64_t> dictionary_hash = std::nullopt;
  // Version of the code that divides text into blocks (kBuildVersion): another
  // version may divide it differently.
  uint32_t build_version = 0;

  bool operator==(const JournalContents&) const = default;
};

// REQUIRES: the parameters end with a newline.
std::string EncodeJournal(const JournalContents& contents);

// `file` is untrusted and may be truncated anywhere by a crash. An incomplete
// last line counts as absent; nullopt unless all lines before it are complete.
std::optional<JournalContents> ParseJournal(absl::string_view file);

// Reads the journal of a directory; nullopt if there is none, or an incomplete
// one. Errors: as ErrnoStatus().
absl::StatusOr<std::optional<JournalContents>> ReadJournal(
    int directory_fd, const std::string& directory);

// Writes and syncs the journal over an existing one. A crash meanwhile leaves
// it incomplete. Errors: as ErrnoStatus(); InvalidArgument  over 64 MiB.
absl::Status WriteJournal(int directory_fd, const std::string& directory,
                          const JournalContents& contents);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_BUILD_JOURNAL_H_
