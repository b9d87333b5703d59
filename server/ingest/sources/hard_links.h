// SPDX-License-Identifier: GPL-3.0-or-later
//
// Resolves the hard links of a tar to entries.
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
  // Offset in the decompressed tar.
  uint64_t header_offset = 0;
  // Offset of its contents in HardLinkTable::spool(); 0 without a spool.
  uint64_t spool_offset = 0;
  uint64_t size_bytes = 0;
};

// A tar names the target of a link, and a name may occur several times: the
// target is the last entry of that name before the link, possibly a link
// itself. Memory: by the number of links and targets, not of entries.
class HardLinkTable {
 public:
  // Takes two passes over the tar. For a compressed tar, the second copies the
  // contents of all targets to an unnamed file in `input.spool_directory`.
  // Links can then be read in any order without decompressing the tar again.
  // Errors: DataLoss, Unavailable.
  //         ResourceExhausted  the targets exceed `input.size_bytes_max`.
  static absl::StatusOr<std::shared_ptr<const HardLinkTable>> Build(
      const ContainerInput& input);

  // Nullopt if the link's target is not in the tar.
  std::optional<LinkTarget> Find(uint64_t link_entry_index) const;

  // Contents of the targets of a compressed tar; null for others.
  const std::shared_ptr<const InputFile>& spool() const { return spool_; }

 private:
  absl::flat_hash_map<uint64_t, LinkTarget> targets_;
  std::shared_ptr<const InputFile> spool_;
};

// Builds the table at its first use: most tars have no links.
// Thread-safe.
class LazyHardLinkTable {
 public:
  absl::StatusOr<std::shared_ptr<const HardLinkTable>> Get(
      const ContainerInput& input) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  // Set at the first use. A failure stays: each attempt reads the whole tar.
  std::optional<absl::StatusOr<std::shared_ptr<const HardLinkTable>>> table_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_HARD_LINKS_H_
