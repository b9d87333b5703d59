// SPDX-License-Identifier: GPL-3.0-or-later
//
// Numbered pieces of work, shared by several threads.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_WORK_IN_THREADS_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_WORK_IN_THREADS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "codecs/base/numbered_work.h"

namespace quire {

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

// Returns workers that start their threads for each run and end with it: they
// hold none in between. Thread-safe. REQUIRES: thread_count >= 1.
inline Workers WorkersOf(uint32_t thread_count) {
  return {.thread_count = thread_count,
          .run = [thread_count](
                     uint64_t count,
                     const std::function<void(const NextNumber&)>& work) {
            WorkInThreads(thread_count, count, work);
          }};
}

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_WORK_IN_THREADS_H_
