// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/decode_pool.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

TEST(DecodePoolTest, RunsEveryTaskOnceAlsoThoseThatTasksAdd) {
  std::atomic<int> runs = 0;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(3));
    EXPECT_EQ(pool->thread_count(), 3);
    std::vector<DecodePool::Task> tasks;
    tasks.reserve(200);
    for (int i = 0; i < 200; ++i) {
      tasks.push_back({.run = [&runs, p = pool.get()] {
        ++runs;
        p->Add({.run = [&runs] { ++runs; }});
      }});
    }
    pool->Add(tasks);
    EXPECT_TRUE(tasks.empty());
  }
  EXPECT_EQ(runs, 400);
}

TEST(DecodePoolTest, RunsTasksOfAClientInTheirOrder) {
  std::vector<int> order;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(1));
    std::vector<DecodePool::Task> tasks;
    tasks.reserve(100);
    for (int i = 0; i < 100; ++i) {
      tasks.push_back({.run = [&order, i] { order.push_back(i); }});
    }
    pool->Add(tasks);
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(DecodePoolTest, ClientsTakeTurns) {
  std::vector<uint64_t> order;
  {
    std::promise<void> go_on;
    QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(1));
    pool->Add(
        {.run = [went_on = go_on.get_future().share()] { went_on.wait(); }});
    for (const uint64_t client : {1U, 1U, 1U, 1U, 2U, 2U}) {
      pool->Add({.run = [&order, client] { order.push_back(client); },
                 .client_id = client,
                 .cost = 64 << 10});
    }
    go_on.set_value();
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 1, 2, 1, 1));
}

TEST(DecodePoolTest, TellsWhetherClientsTakeTurns) {
  QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(1));
  const auto add = [&pool](uint64_t client_id, int count) {
    for (int i = 0; i < count; ++i) {
      pool->Add({.run = [] {}, .client_id = client_id});
    }
  };
  add(1, 65);
  EXPECT_FALSE(pool->serves_several_clients());
  add(2, 1);
  EXPECT_TRUE(pool->serves_several_clients());
  add(1, 64);
  EXPECT_TRUE(pool->serves_several_clients());
  add(1, 1);
  EXPECT_FALSE(pool->serves_several_clients());
}

TEST(DecodePoolTest, TellsHowLongTheThreadsHaveEnoughToDo) {
  // The tasks refer to these until the pool is destroyed.
  std::promise<void> go_on;
  std::future<void> went_on = go_on.get_future();
  std::promise<void> begun;
  QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(1));
  EXPECT_EQ(pool->Backlog().count(), 0);
  std::vector<DecodePool::Task> tasks;
  tasks.push_back({.run = [] {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start <
           std::chrono::milliseconds(1)) {
    }
  }});
  tasks.push_back({.run = [&] {
    begun.set_value();
    went_on.wait();
  }});
  tasks.push_back({.run = [] {}});
  tasks.push_back({.run = [] {}});
  pool->Add(tasks);
  begun.get_future().wait();
  // A sixteenth of the millisecond for each of the two that wait.
  EXPECT_GE(pool->Backlog(), std::chrono::microseconds(2 * 1000 / 16));
  go_on.set_value();
}

TEST(DecodePoolTest, HasAThreadForEachCoreByDefault) {
  QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(0));
  EXPECT_GE(pool->thread_count(), 1);
}

}  // namespace
}  // namespace quire
