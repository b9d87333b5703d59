// SPDX-License-Identifier: GPL-3.0-or-later
//
// How archives come into the catalog: all of them after the start, and those
// that have changed on a reload.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/server.h"
#include "server/storage/block_store.h"

namespace quire {

// An archive that is to be served, before it is opened.
struct PlannedArchive {
  ArchiveArgument argument;
  ArchiveOutline outline;
};

// Errors: InvalidArgument  two archives of one name.
//         those of Archive::Open(), with the archive's path.
absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments);

// What clients are told of archives until they are open.
Catalog::OpeningByName DescribeOpening(
    const std::vector<PlannedArchive>& planned);

// Thread-compatible, but for Stop().
class ArchiveLoader {
 public:
  // `catalog` and `store` outlive it.
  ArchiveLoader(const ServerOptions& options, const MemoryPlan& plan,
                std::vector<PlannedArchive> planned, Catalog& catalog,
                BlockStore& store);

  // Opens all archives, several at a time, within the plan's memory for
  // archives, and publishes each when it is open; `opened` is told its name, on
  // any thread. Blocks on I/O.
  // Errors: as OpenInParallel() of parallel_opening.h, of Archive::Open();
  //         FailedPrecondition  there is no memory for archives that were
  //                             replaced by larger ones meanwhile.
  absl::Status OpenAll(const std::function<void(const std::string&)>& opened);

  // Looks at all archives and opens those whose files have changed, one by one.
  // `ended` is told whether that went well, for each archive. Returns what to
  // say about it: a line for each archive, or one for many that are unchanged.
  // Blocks on I/O.
  std::vector<LogLine> Reload(const std::function<void(bool)>& ended);

  // Lets the above end soon, now and in future. Thread-safe.
  void Stop() { stop_ = true; }

 private:
  // Without publishing it.
  absl::StatusOr<std::shared_ptr<const ServedArchive>> OpenOne(
      const ArchiveArgument& argument);
  // What happened, as the end of a sentence; empty: nothing.
  absl::StatusOr<std::string> ReloadOne(const ArchiveArgument& argument);
  // What calls keep of archives that have been replaced.
  uint64_t ReplacedBytes();

  const ServerOptions options_;
  const MemoryPlan plan_;
  const std::vector<PlannedArchive> planned_;
  Catalog& catalog_;
  BlockStore& store_;
  std::atomic<bool> stop_ = false;
  // Taken by archives that turned out larger than planned.
  std::atomic<uint64_t> unplanned_bytes_ = 0;
  // In the order of their replacement; gone when the last call has ended.
  std::vector<std::weak_ptr<const Archive>> replaced_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
