// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which entry of a tar each of its hard links means.
#ifndef QUIRE_SERVER_INGEST_SOURCES_HARD_LINKS_H_
#define QUIRE_SERVER_INGEST_SOURCES_HARD_LINKS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/ingest/sources/container_source.h"

namespace quire {

// An entry with contents.
struct LinkTarget {
  uint64_t entry_index = 0;
  // In the decompressed tar.
  uint64_t header_offset = 0;
  // Where its contents are in HardLinkTable::spool(); 0 where there is none.
  uint64_t spool_offset = 0;
  uint64_t size_bytes = 0;
};

// A tar names the target of a link by name, and a name may occur several times:
// what is meant is the last one before the link, which may be a link itself.
// Memory: by the number of links and of targets, not of entries.
class HardLinkTable {
 public:
  // Takes two passes over the tar. Of a compressed one, the second copies the
  // contents of all targets to a file without a name in
  // `input.spool_directory`, so that links are read in any order and the tar is
  // not decompressed again for them.
  // Errors: DataLoss, Unavailable.
  //         ResourceExhausted  the targets are over `input.size_bytes_max`.
  static absl::StatusOr<std::shared_ptr<const HardLinkTable>> Build(
      const ContainerInput& input);

  // Nullopt if the link's target is not in the tar.
  std::optional<LinkTarget> Find(uint64_t link_entry_index) const;

  // The contents of the targets of a compressed tar; null for others.
  const std::shared_ptr<const InputFile>& spool() const { return spool_; }

 private:
  absl::flat_hash_map<uint64_t, LinkTarget> targets_;
  std::shared_ptr<const InputFile> spool_;
};

// Builds the table when it is first asked for: most tars have no links.
// Thread-safe.
class LazyHardLinkTable {
 public:
  absl::StatusOr<std::shared_ptr<const HardLinkTable>> Get(
      const ContainerInput& input) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  std::shared_ptr<const HardLinkTable> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_HARD_LINKS_H_
