// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks that form one request of a scheduler.
#ifndef QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_
#define QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_

#include <string>

#include "absl/container/inlined_vector.h"

#include "server/storage/fetch/in_flight_table.h"
#include "server/storage/fetch/read_memory.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// Adjacent blocks of one file and one class that one client requested in one
// step: the queue handles them together. An event that concerns one of them (a
// cancelled fetch, another class) splits the run.
using BlockRun = absl::InlinedVector<InFlightBlock*, 2>;

// True if the block of `fetch` may be read with the run: always if the run is
// empty; otherwise if it follows the last block and the run stays small enough
// to be read whole, in one extent of the drive.
bool MayJoin(const BlockRun& run, const BlockFetch& fetch,
             const ReadMemory& memory);

// Returns the scheduler's request for the run on `drive_name`, without the id.
// Its position on the drive is known only if its file was located on that
// drive.
// REQUIRES: !run.empty().
ScheduledRequest RequestFor(const BlockRun& run, const std::string& drive_name);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_
