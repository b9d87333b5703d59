// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_TESTING_CODECS_THREADED_WORK_H_
#define QUIRE_TESTING_CODECS_THREADED_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "codecs/base/numbered_work.h"

namespace quire {

// Workers that are as many threads, however few pieces there are.
inline Workers ThreadedWork(uint32_t thread_count) {
  return {.thread_count = thread_count,
          .run = [thread_count](
                     uint64_t count,
                     const std::function<void(const NextNumber&)>& work) {
            std::atomic<uint64_t> handed_out = 0;
            const NextNumber next = [&]() -> std::optional<uint64_t> {
              const uint64_t i = handed_out++;
              return i < count ? std::optional(i) : std::nullopt;
            };
            std::vector<std::jthread> threads;
            for (uint32_t i = 0; i < thread_count; ++i) {
              threads.emplace_back([&] { work(next); });
            }
          }};
}

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_THREADED_WORK_H_
