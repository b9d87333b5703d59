// SPDX-License-Identifier: GPL-3.0-or-later
//
// Makes a manifest for an archive that has none from its segment files.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_MANIFEST_RECOVERY_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_MANIFEST_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/segment_format.h"

namespace quire {

// Blocks. Thread-compatible.
class ManifestRecovery {
 public:
  using OnDamage = std::function<void(const absl::Status&)>;

  // `on_left_out` is called for each file of a segment that is not used.
  // `directory` must outlive this.
  ManifestRecovery(ArchiveDirectory& directory, OnDamage on_left_out)
      : directory_(directory), on_left_out_(std::move(on_left_out)) {}

  // Sets directory.manifest: the segments in the order of their numbers, with
  // what SegmentReader::OpenDamaged() needs of each.
  // Errors: NotFound            no segment can be read.
  //         DataLoss            no segment states the codec.
  //         FailedPrecondition  a newer program is needed.
  absl::Status Run();

 private:
  struct Found {
    uint32_t number = 0;
    ReadableFile file;
    // Unset if it is damaged.
    std::optional<SegmentHeader> header;
  };

  void AddSegment(const std::string& name, std::vector<Found>& segments);
  absl::Status SetCodec(const SegmentHeader& header);
  // Sets dictionary and symbol table. Errors are found when they are read.
  void SetTables(const SegmentHeader& header,
                 const std::vector<std::string>& names);

  ArchiveDirectory& directory_;
  const OnDamage on_left_out_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_MANIFEST_RECOVERY_H_
