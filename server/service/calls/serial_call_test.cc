// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/serial_call.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr int kThreadCount = 4;
constexpr int kEventsPerThread = 2000;

// Ends after all events; nothing may touch the object then.
class CountingCall : private SerialCall {
 public:
  explicit CountingCall(std::atomic<int>& finished) : finished_(finished) {}

  void Event() {
    Update([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++event_count_; });
  }

 private:
  bool Act() override {
    // Without the mutex: serialisation must hold by itself. ThreadSanitizer and
    // this counter check it.
    EXPECT_EQ(acting_count_++, 0);
    bool is_over = false;
    {
      MutexLock lock(&mutex_);
      is_over = event_count_ == kThreadCount * kEventsPerThread;
    }
    --acting_count_;
    return is_over;
  }

  void FinishCall() override {
    ++finished_;
    delete this;
  }

  std::atomic<int>& finished_;
  int acting_count_ = 0;
  int event_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(SerialCallTest, OneThreadActsForAllAndEndsOnce) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> finished{0};
    auto* call = new CountingCall(finished);
    std::vector<std::thread> threads;
    threads.reserve(kThreadCount);
    for (int t = 0; t < kThreadCount; ++t) {
      threads.emplace_back([call] {
        for (int i = 0; i < kEventsPerThread; ++i) {
          call->Event();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(finished, 1);
  }
}

// An event from within Act() is neither lost nor handled recursively.
class ReentrantCall : private SerialCall {
 public:
  void Start() {
    Update([] {});
  }

  int act_count() const { return act_count_; }

  bool is_finished() const { return is_finished_; }

 private:
  bool Act() override {
    if (++act_count_ < 5) {
      Update([] {});
    }
    return act_count_ == 5;
  }

  void FinishCall() override { is_finished_ = true; }

  int act_count_ = 0;
  bool is_finished_ = false;
};

TEST(SerialCallTest, ActsAgainForEventsFromWithin) {
  ReentrantCall call;
  call.Start();
  EXPECT_EQ(call.act_count(), 5);
  EXPECT_TRUE(call.is_finished());
}

}  // namespace
}  // namespace quire
