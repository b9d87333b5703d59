// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/worker_threads.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/no_more_threads.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Workers = WorkerThreads<std::shared_ptr<int>>;

TEST(WorkerThreadsTest, OneThreadWorksInTheOrderOfArrival) {
  std::vector<int> order;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        auto workers,
        Workers::Start("test", 1, [&order](const std::shared_ptr<int>& item) {
          order.push_back(*item);
        }));
    for (int i = 0; i < 4; ++i) {
      auto item = std::make_shared<int>(i);
      workers->Add(&item, &item + 1);
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST(WorkerThreadsTest, EndsWhenAllIsDoneAlsoWhatTheWorkAdds) {
  std::atomic<int> runs = 0;
  {
    Workers* self = nullptr;
    std::promise<void> known;
    std::shared_future<void> is_known = known.get_future().share();
    QUIRE_ASSERT_OK_AND_ASSIGN(
        auto workers,
        Workers::Start("test", 3, [&, is_known](std::shared_ptr<int>& item) {
          is_known.wait();
          ++runs;
          if (--*item > 0) {
            self->Add(&item, &item + 1);
          }
        }));
    self = workers.get();
    std::vector<std::shared_ptr<int>> items;
    for (int i = 0; i < 20; ++i) {
      items.push_back(std::make_shared<int>(10));
    }
    workers->Add(items.begin(), items.end());
    EXPECT_EQ(workers->thread_count(), 3U);
    // The destructor runs before most of the work is added.
    known.set_value();
  }
  EXPECT_EQ(runs, 200);
}

TEST(WorkerThreadsTest, DestroysAnItemBeforeItTakesTheNext) {
  std::vector<int64_t> uses_before;
  auto first = std::make_shared<int>(0);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        auto workers,
        Workers::Start("test", 1, [&](const std::shared_ptr<int>& /*item*/) {
          uses_before.push_back(first.use_count());
        }));
    std::array<std::shared_ptr<int>, 2> items = {first,
                                                 std::make_shared<int>(1)};
    workers->Add(std::make_move_iterator(items.begin()),
                 std::make_move_iterator(items.end()));
  }
  EXPECT_THAT(uses_before, ElementsAre(2, 1));
}

TEST(WorkerThreadsTest, CountsWhatNoThreadHasTaken) {
  std::promise<void> begun;
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      auto workers,
      Workers::Start("test", 1, [&](const std::shared_ptr<int>& item) {
        if (*item == 0) {
          begun.set_value();
          may_go_on.wait();
        }
      }));
  EXPECT_EQ(workers->queue_length(), 0U);
  const std::array<std::shared_ptr<int>, 3> items = {std::make_shared<int>(0),
                                                     std::make_shared<int>(1),
                                                     std::make_shared<int>(2)};
  workers->Add(items.begin(), items.end());
  begun.get_future().wait();
  EXPECT_EQ(workers->queue_length(), 2U);
  go_on.set_value();
}

TEST(WorkerThreadsTest, ASystemWithoutThreadsIsAnError) {
  const NoMoreThreads none;
  const auto workers =
      Workers::Start("quire-test", 2, [](std::shared_ptr<int>& /*item*/) {});
  ASSERT_EQ(workers.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(workers.status().message(),
              HasSubstr("cannot start 2 threads \"quire-test\""));
}

}  // namespace
}  // namespace quire
