// SPDX-License-Identifier: Apache-2.0
//
// Symbol tables and dictionaries kept on disk from one run of a program to the
// next. Internal to the client library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_DIRECTORY_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_TABLE_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace quire {

// 16 lower-case hexadecimal digits, as archive descriptions spell hashes.
std::string FormatTableHash(uint64_t hash);

// Files "KIND-HASH" with a table's bytes, where HASH is their XXH3 of 64 bits.
// A file is written next to its place and renamed, so that it is whole or not
// there; and it is checked against its name when read, so that whatever else
// lies there does no harm. It may be removed at any time. Nothing here fails:
// what cannot be read or written is just not kept.
//
// The directory is as trusted as the server is: a hash of 64 bits finds
// accidents, not forgeries. It is created, without its parents' parents, for
// its owner alone.
//
// Thread-safe, also between processes. Blocks on the disk.
class TableDirectory {
 public:
  // An empty path keeps nothing.
  explicit TableDirectory(std::string path) : path_(std::move(path)) {}

  // The bytes whose hash is `hash`, if they are there and at most
  // `size_bytes_max`.
  std::optional<std::string> Load(absl::string_view kind, uint64_t hash,
                                  size_t size_bytes_max) const;

  // Whether Load() may find them; reads nothing.
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
