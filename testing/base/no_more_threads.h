// SPDX-License-Identifier: Apache-2.0
//
// For tests: a system that cannot start threads.
#ifndef QUIRE_TESTING_BASE_NO_MORE_THREADS_H_
#define QUIRE_TESTING_BASE_NO_MORE_THREADS_H_

#include <pthread.h>

#include <cstddef>

#include "gtest/gtest.h"

namespace quire {

// During its life no thread starts unless it specifies its stack size: the
// default becomes larger than any address space. At most one at a time.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t without;
    EXPECT_EQ(pthread_getattr_default_np(&without), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&without, size_t{1} << 60), 0);
    EXPECT_EQ(pthread_setattr_default_np(&without), 0);
    pthread_attr_destroy(&without);
  }

  ~NoMoreThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_NO_MORE_THREADS_H_
