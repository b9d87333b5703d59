// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opening many archives at once, within the memory that was planned for them.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_
#define QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace quire {

// What opening one archive takes, in bytes.
struct OpeningNeed {
  // Kept once it is open.
  uint64_t kept_bytes = 0;
  // On top of that, while it is opened.
  uint64_t working_bytes = 0;
};

// Calls open(i) once for each of `needs`, from this thread and others, those
// that keep most first. What has been opened and what is being opened takes at
// most `memory_bytes`, unless a single opening takes more: that one runs alone.
// After a failure, or once `cancel` is true, none is begun.
// Returns, when all have ended, the failure of the first in `needs`, which says
// how many more there are; Cancelled if there is none and some were not begun.
absl::Status OpenInParallel(const std::vector<OpeningNeed>& needs,
                            uint64_t memory_bytes,
                            const std::atomic<bool>& cancel,
                            const std::function<absl::Status(size_t)>& open);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_PARALLEL_OPENING_H_
