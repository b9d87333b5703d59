// SPDX-License-Identifier: GPL-3.0-or-later
//
// Openings of the parts of an archive on several threads, with the result of
// one thread.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_ORDERED_OPENINGS_H_
#define QUIRE_SERVER_ARCHIVE_FILES_ORDERED_OPENINGS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace quire {

// Threads and memory that openings may use in addition to their own.
// Thread-safe. Neither function waits.
class OpeningHelpers {
 public:
  virtual ~OpeningHelpers() = default;

  // True if another thread may open a part that takes `working_bytes` of memory
  // while it is opened; then End() must follow.
  virtual bool Begin(uint64_t working_bytes) = 0;
  virtual void End(uint64_t working_bytes) = 0;
};

// Calls open(i) once for each i < working_bytes.size(), which start in
// ascending order, on this thread and on those that `helpers` allows; null
// allows none. working_bytes[i] is the memory that open(i) takes while it runs,
// in bytes; this thread's own is the caller's to reserve. Starts none after a
// failure, and returns when all have ended.
// `open` must be thread-safe. `helpers` is called with a lock held.
// Errors: the one that a single thread would have returned: that of the lowest
//         index.
absl::Status OpenInOrder(std::span<const uint64_t> working_bytes,
                         OpeningHelpers* helpers,
                         absl::FunctionRef<absl::Status(size_t)> open);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_ORDERED_OPENINGS_H_
