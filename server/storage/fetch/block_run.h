// SPDX-License-Identifier: GPL-3.0-or-later
//
// The blocks that a scheduler has as one request.
#ifndef QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_
#define QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_

#include <string>

#include "absl/container/inlined_vector.h"

#include "server/storage/fetch/in_flight_table.h"
#include "server/storage/fetch/read_memory.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// Neighbours in one file that were asked for by one client in one step, and are
// of one class: the queue's work is done once for all of them. What concerns
// one of them alone (a cancelled fetch, another class) splits the run.
using BlockRun = absl::InlinedVector<InFlightBlock*, 2>;

// Whether the block that `fetch` asks for may be read with those of the run:
// always if the run is empty, otherwise if it follows the last one and the run
// stays small enough to be read whole, in one piece of the drive.
bool MayJoin(const BlockRun& run, const BlockFetch& fetch,
             const ReadMemory& memory);

// The run as the scheduler of `drive_name` is to have it, but for the id. Where
// the run lies on the drive is known only if its file was found to be on that
// drive.
// REQUIRES: !run.empty().
ScheduledRequest RequestFor(const BlockRun& run, const std::string& drive_name);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_BLOCK_RUN_H_
