// SPDX-License-Identifier: Apache-2.0
//
// Numbered pieces of work, shared by several threads.
#ifndef QUIRE_CODECS_BASE_WORK_IN_THREADS_H_
#define QUIRE_CODECS_BASE_WORK_IN_THREADS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace quire {

// Returns 0, 1, 2, ... across all threads; unset at the end.
using NextNumber = std::function<std::optional<uint64_t>()>;

// Calls `work` on `thread_count` threads, including the calling one, or fewer
// if there are fewer items, or the system refuses threads; they share the
// numbers below `count`. Returns when all have ended.
// REQUIRES: thread_count >= 1.
inline void WorkInThreads(uint32_t thread_count, uint64_t count,
                          const std::function<void(const NextNumber&)>& work) {
  if (count == 0) {
    return;
  }
  std::atomic<uint64_t> handed_out = 0;
  const NextNumber next = [&]() -> std::optional<uint64_t> {
    const uint64_t i = handed_out++;
    return i < count ? std::optional(i) : std::nullopt;
  };
  std::vector<std::jthread> threads(std::min<uint64_t>(count, thread_count) -
                                    1);
  try {
    std::ranges::generate(threads,
                          [&] { return std::jthread([&] { work(next); }); });
  } catch (const std::system_error&) {
    // The running ones do all the work.
  }
  work(next);
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_WORK_IN_THREADS_H_
