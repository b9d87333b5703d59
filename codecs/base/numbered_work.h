// SPDX-License-Identifier: Apache-2.0
//
// Pieces of work that a caller may share among threads. Codecs have none.
#ifndef QUIRE_CODECS_BASE_NUMBERED_WORK_H_
#define QUIRE_CODECS_BASE_NUMBERED_WORK_H_

#include <cstdint>
#include <functional>
#include <optional>

namespace quire {

// Returns 0, 1, 2, ... across all threads; unset at the end.
using NextNumber = std::function<std::optional<uint64_t>()>;

// Calls `work` on one or more threads, which share the numbers below `count`.
// Returns when all have ended.
using RunNumberedWork = std::function<void(
    uint64_t count, const std::function<void(const NextNumber&)>& work)>;

// On the calling thread.
inline void WorkAlone(uint64_t count,
                      const std::function<void(const NextNumber&)>& work) {
  uint64_t handed_out = 0;
  work([&]() -> std::optional<uint64_t> {
    return handed_out < count ? std::optional(handed_out++) : std::nullopt;
  });
}

// Threads of the caller. Results do not depend on them.
struct Workers {
  // Upper bound on the threads that `run` uses. At least 1.
  uint32_t thread_count = 1;
  RunNumberedWork run = WorkAlone;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_NUMBERED_WORK_H_
