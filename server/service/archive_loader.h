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
#include "server/service/server_options.h"
#include "server/storage/block_store.h"

namespace quire {

// An archive that is to be served, before it is opened.
struct PlannedArchive {
  ArchiveArgument argument;
  ArchiveOutline outline;
};

// An archive that cannot be opened.
struct BrokenArchive {
  std::string name;
  // With the archive's path.
  absl::Status reason;
};

// All of them in one, and how to serve the others if there are good ones.
// REQUIRES: `broken` is not empty.
absl::Status JoinReasons(const std::vector<BrokenArchive>& broken,
                         size_t good_count);

// What is known of archives before they are opened. Adds those of which nothing
// can be known to `broken`. Blocks on a little I/O for each.
// Errors: InvalidArgument    two archives of one name.
//         ResourceExhausted  no memory.
absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments,
    std::vector<BrokenArchive>& broken);

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

  // Told the name of an archive that is served from now on, or is no more. May
  // be called on any thread.
  using ServingChanged =
      std::function<void(const std::string& name, bool is_serving)>;

  // Opens all archives, several at a time, within the plan's memory for
  // archives, and publishes each when it is open. Those that cannot be opened
  // are in `broken` then, in no order, and not in the catalog. Blocks on I/O.
  // Errors: Cancelled          Stop() was called.
  //         ResourceExhausted  no memory.
  absl::Status OpenAll(const ServingChanged& changed,
                       std::vector<BrokenArchive>& broken);

  // From now on `wanted` are to be served, and archives of the names `kept`,
  // which are left alone: removes all others, looks at `wanted`, and opens
  // those that are new or whose files have changed, one by one. The cache
  // shrinks before one is refused for want of memory, and grows again when
  // there is space. Calls `ended` with the outcome of each that is not left as
  // it was. Returns a line about each archive, or one about many that are
  // unchanged. Blocks on I/O. REQUIRES: the names of `wanted` differ.
  std::vector<LogLine> Reload(const std::vector<ArchiveArgument>& wanted,
                              const std::vector<std::string>& kept,
                              const ServingChanged& changed,
                              const std::function<void(bool)>& ended);

  // Lets the above end soon, now and in future. Thread-safe.
  void Stop() { stop_ = true; }

 private:
  // Without publishing it.
  absl::StatusOr<std::shared_ptr<ServedArchive>> OpenOne(
      const ArchiveArgument& argument);
  // Into an empty place in the catalog; `outline` is what was planned for.
  absl::Status OpenPlanned(const PlannedArchive& planned);
  // What happened, as the end of a sentence; empty: nothing.
  absl::StatusOr<std::string> ReloadOne(const ArchiveArgument& argument);
  // Removes all that are not to be served; a line for each.
  std::vector<LogLine> RemoveOthers(const std::vector<ArchiveArgument>& wanted,
                                    const std::vector<std::string>& kept,
                                    const ServingChanged& changed);
  // Memory of archives that are served, and of replaced ones that calls keep.
  ReloadNeed HeldBytes();
  // Gives the cache what archives leave it.
  void FitCache(const ReloadNeed& need);

  const ServerOptions options_;
  const MemoryPlan plan_;
  const std::vector<PlannedArchive> planned_;
  const std::shared_ptr<DecodeWorkspaces> workspaces_;
  Catalog& catalog_;
  BlockStore& store_;
  std::atomic<bool> stop_ = false;
  // Taken by archives that turned out larger than planned.
  std::atomic<uint64_t> unplanned_bytes_ = 0;
  // In the order of their replacement or removal; gone when the last call has
  // ended.
  std::vector<std::weak_ptr<const Archive>> replaced_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
