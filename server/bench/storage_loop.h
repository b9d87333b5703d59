// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive's blocks out of storage, without gRPC.
#ifndef QUIRE_SERVER_BENCH_STORAGE_LOOP_H_
#define QUIRE_SERVER_BENCH_STORAGE_LOOP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/bench/bench_requests.h"
#include "server/storage/block_store.h"

namespace quire {

// Keeps `in_flight` of the requests in flight until `end`; each that ends
// begins the next, on the decode pool's thread, as the service does. Returns
// what was read, when all requests that were begun have ended. Errors: those of
// the first block that failed; no request is begun after it.
absl::StatusOr<BenchCounts> ReadFromStore(
    std::shared_ptr<const Archive> archive, BenchRequests& requests,
    FetchClass fetch_class, uint32_t in_flight, BenchClock::time_point end,
    BlockStore& store);

}  // namespace quire

#endif  // QUIRE_SERVER_BENCH_STORAGE_LOOP_H_
