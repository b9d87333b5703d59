// SPDX-License-Identifier: GPL-3.0-or-later
//
// Dictionaries and symbol tables of archives that are not open: other archives
// can have the same ones, with text that is withdrawn.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_SHARED_PARTS_H_
#define QUIRE_SERVER_SERVICE_CATALOG_SHARED_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/archive/format/archive_description.h"

namespace quire {

struct ArchiveArgument;

enum class SharedPart { kDictionary, kSymbolTable };

// The parts that the contents of one archive may have, as far as they are
// known. Thread-compatible.
class SharedParts {
 public:
  // Nothing is known: it may have the parts of the archives next to it.
  SharedParts() = default;

  // Its manifest was read: those that it names.
  explicit SharedParts(const ArchiveInfo& info);

  // It cannot be opened: takes those that its manifest names, or if that cannot
  // be read, adds those that its directory has files of, and keeps what its
  // last manifest named. Blocks on I/O.
  void Examine(const ArchiveArgument& argument);

  // Adds the parts of other contents, and counts as known.
  void Add(const SharedParts& other);

  bool operator==(const SharedParts&) const = default;

  // `hash` is one of v1::ArchiveDescription. Unset if neither its manifest nor
  // the names of its files are known.
  std::optional<bool> Has(SharedPart part, absl::string_view hash) const;

 private:
  // Hashes, as numbers.
  struct Hashes {
    std::vector<uint64_t> dictionaries;
    std::vector<uint64_t> symbol_tables;

    bool operator==(const Hashes&) const = default;
  };

  Hashes of_manifest_;
  Hashes of_files_;
  bool is_known_ = false;
};

// Returns the directory, or the prefix of an object store, that an archive is
// in, for SharedParts of which nothing is known.
std::string NeighbourhoodOf(const ArchiveArgument& argument);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_SHARED_PARTS_H_
