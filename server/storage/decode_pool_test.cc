// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/decode_pool.h"

#include <atomic>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

TEST(DecodePoolTest, RunsEveryTaskOnceAlsoThoseThatTasksAdd) {
  std::atomic<int> runs = 0;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(3));
    EXPECT_EQ(pool->thread_count(), 3);
    std::vector<DecodePool::Task> tasks;
    tasks.reserve(200);
    for (int i = 0; i < 200; ++i) {
      tasks.emplace_back([&runs, p = pool.get()] {
        ++runs;
        std::vector<DecodePool::Task> more;
        more.emplace_back([&runs] { ++runs; });
        p->Add(more);
      });
    }
    pool->Add(tasks);
    EXPECT_TRUE(tasks.empty());
  }
  EXPECT_EQ(runs, 400);
}

TEST(DecodePoolTest, RunsTasksInTheirOrder) {
  std::vector<int> order;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(1));
    std::vector<DecodePool::Task> tasks;
    tasks.reserve(100);
    for (int i = 0; i < 100; ++i) {
      tasks.emplace_back([&order, i] { order.push_back(i); });
    }
    pool->Add(tasks);
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(DecodePoolTest, HasAThreadForEachCoreByDefault) {
  QUIRE_ASSERT_OK_AND_ASSIGN(auto pool, DecodePool::Create(0));
  EXPECT_GE(pool->thread_count(), 1);
}

}  // namespace
}  // namespace quire
