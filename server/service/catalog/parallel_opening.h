// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens many archives, and many segments of one, concurrently within their
// planned memory.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_
#define QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"

#include "server/archive/files/ordered_openings.h"

namespace quire {

// Memory for opening one archive, in bytes.
struct OpeningNeed {
  // Kept while the archive is open.
  uint64_t kept_bytes = 0;
  // In addition, while it is being opened.
  uint64_t working_bytes = 0;
};

// Opens number `index` of the archives. The helpers are for its segments: they
// get the threads and the memory that other openings leave.
using OpenWithHelpers =
    std::function<absl::Status(size_t index, OpeningHelpers* helpers)>;

// Calls `open` once for each of `needs`, from this thread and others, those
// that keep most first. Opened archives and openings in progress take at most
// `memory_bytes`, unless a single opening takes more: that one runs alone.
// Starts no opening after a failure, or once `cancel` is true.
// Returns when all have ended. Errors: the failure of the first in `needs`,
// with the number of other failures; Cancelled if there is none and some
// openings did not start.
absl::Status OpenInParallel(const std::vector<OpeningNeed>& needs,
                            uint64_t memory_bytes,
                            const std::atomic<bool>& cancel,
                            const OpenWithHelpers& open);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_
