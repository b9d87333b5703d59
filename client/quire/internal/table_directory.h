// SPDX-License-Identifier: Apache-2.0
//
// Symbol tables and dictionaries on disk, kept between runs of a program.
// Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_DIRECTORY_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace quire {

// Hash as 16 lower-case hexadecimal digits, as in archive descriptions.
std::string FormatTableHash(uint64_t hash);

// Files "KIND-HASH" with a table's bytes, where HASH is their XXH3 of 64 bits.
// A file is written aside and renamed, so that it is complete or absent. It is
// checked against its name when read, so that foreign files do no harm. Files
// may be removed at any time. No method fails: a file that cannot be read or
// written is not kept.
//
// The directory must be as trusted as the server: a hash of 64 bits detects
// accidents, not forgeries. It is created for its owner alone, with at most its
// parent.
//
// Thread-safe, also between processes. Blocks on the disk.
class TableDirectory {
 public:
  // An empty path keeps nothing.
  explicit TableDirectory(std::string path) : path_(std::move(path)) {}

  // Returns the bytes whose hash is `hash`, if they are stored and at most
  // `size_bytes_max`.
  std::optional<std::string> Load(absl::string_view kind, uint64_t hash,
                                  size_t size_bytes_max) const;

  // True if Load() may find them; reads nothing.
  bool MayHold(absl::string_view kind, uint64_t hash) const;

  // REQUIRES: `hash` is that of `bytes`.
  void Store(absl::string_view kind, uint64_t hash,
             absl::string_view bytes) const;

 private:
  std::string FilePath(absl::string_view kind, uint64_t hash) const;

  const std::string path_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_DIRECTORY_H_
