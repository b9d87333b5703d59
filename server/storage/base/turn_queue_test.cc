// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/turn_queue.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

struct Item {
  uint64_t client_id = 0;
  uint64_t cost = 0;
  // Makes items movable only.
  std::unique_ptr<int> number = nullptr;
};

using Queue = TurnQueue<Item>;

constexpr uint64_t kTurn = Queue::kTurnCost;

// Returns the clients of the next `count` items.
std::vector<uint64_t> PopClients(Queue& queue, int count) {
  std::vector<uint64_t> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(queue.Pop().client_id);
  }
  return clients;
}

void PushMany(Queue& queue, uint64_t client_id, uint64_t cost, int count) {
  for (int i = 0; i < count; ++i) {
    queue.Push({.client_id = client_id, .cost = cost});
  }
}

TEST(TurnQueueTest, ItemsOfOneClientLeaveInOrderOfArrival) {
  Queue queue;
  EXPECT_TRUE(queue.empty());
  for (int i = 0; i < 100; ++i) {
    queue.Push({.client_id = 7,
                .cost = static_cast<uint64_t>(i) << 14,
                .number = std::make_unique<int>(i)});
  }
  EXPECT_EQ(queue.size(), 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(*queue.Pop().number, i);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(TurnQueueTest, ClientsTakeTurns) {
  Queue queue;
  PushMany(queue, 1, kTurn, 4);
  PushMany(queue, 2, kTurn, 2);
  PushMany(queue, 3, kTurn, 1);
  EXPECT_THAT(PopClients(queue, 7), ElementsAre(1, 2, 3, 1, 2, 1, 1));
}

TEST(TurnQueueTest, ATurnIsWorthACostNotACount) {
  Queue queue;
  PushMany(queue, 1, kTurn, 3);
  PushMany(queue, 2, kTurn / 4, 9);
  EXPECT_THAT(PopClients(queue, 12),
              ElementsAre(1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2));
}

TEST(TurnQueueTest, LargeItemsArePaidForByLaterTurns) {
  Queue queue;
  PushMany(queue, 1, 4 * kTurn, 3);
  PushMany(queue, 2, kTurn, 9);
  EXPECT_THAT(PopClients(queue, 12),
              ElementsAre(1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2));
}

TEST(TurnQueueTest, AClientThatComesBackHasNoDebt) {
  Queue queue;
  PushMany(queue, 1, 8 * kTurn, 1);
  PushMany(queue, 2, kTurn, 5);
  EXPECT_THAT(PopClients(queue, 2), ElementsAre(1, 2));
  PushMany(queue, 1, kTurn, 1);
  EXPECT_THAT(PopClients(queue, 3), ElementsAre(1, 2, 2));
}

// However much a client asks for, it waits for a few turns only, and the others
// for no more than its dearest item.
TEST(TurnQueueTest, CostsAreBounded) {
  Queue queue;
  PushMany(queue, 1, UINT64_MAX, 3);
  PushMany(queue, 2, kTurn, 40);
  PushMany(queue, 3, 0, 40);
  std::map<uint64_t, int> popped;
  for (int i = 0; i < 83; ++i) {
    const uint64_t client = queue.Pop().client_id;
    ++popped[client];
    if (client == 1 && popped[1] == 2) {
      EXPECT_EQ(popped[2], Queue::kCostMax / Queue::kTurnCost);
    }
    if (client == 2 && popped[2] == 1) {
      EXPECT_EQ(popped[3], 0);
    }
    if (client == 2 && popped[2] == 2) {
      EXPECT_EQ(popped[3], Queue::kTurnCost / Queue::kCostMin);
    }
  }
  EXPECT_EQ(popped[1], 3);
  EXPECT_TRUE(queue.empty());
}

TEST(TurnQueueTest, ANewClientWaitsForOneTurnOfEachOther) {
  Queue queue;
  for (uint64_t client = 1; client <= 50; ++client) {
    PushMany(queue, client, kTurn / 2, 100);
  }
  PopClients(queue, 31);
  queue.Push({.client_id = 99, .cost = 1});
  int waited = 0;
  while (queue.Pop().client_id != 99) {
    ++waited;
  }
  EXPECT_EQ(waited, 2 * 50 - 1);
}

}  // namespace
}  // namespace quire
