// SPDX-License-Identifier: Apache-2.0
#include "client/cli/answer_order.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint64_t kOrderSeed = 7;

// The text of item number n: of 0 to 9,999 bytes.
std::string TextOf(uint64_t number) {
  return std::string(number * 7919 % 10'000,
                     static_cast<char>('a' + number % 26));
}

class AnswerOrderTest : public ::testing::Test {
 protected:
  AnswerOrder Make(const AnswerOrderOptions& options) {
    return AnswerOrder(
        options,
        [this](ItemAnswer answer) {
          tags_.push_back(answer.tag);
          EXPECT_TRUE(answer.result.ok());
          right_count_ +=
              answer.result->data == TextOf(answer.tag) ? size_t{1} : 0;
          return absl::OkStatus();
        },
        [](uint64_t tag, const ReadTarget& target) {
          ReadResult result;
          result.data = TextOf(std::get<ByteSpan>(target).offset);
          return ItemAnswer{
              .tag = tag, .target = target, .result = std::move(result)};
        });
  }

  static void Answer(AnswerOrder& order, uint64_t number) {
    ReadResult result;
    result.data = TextOf(number);
    QUIRE_ASSERT_OK(order.Take({.tag = number,
                                .target = ByteSpan{number, 0},
                                .result = std::move(result)}));
  }

  // Asks for `count` items and answers them in an order drawn at random.
  void RunShuffled(AnswerOrder& order, uint64_t count) {
    std::vector<uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (const uint64_t number : numbers) {
      EXPECT_EQ(order.Ask(ByteSpan{number, 0}), number);
    }
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(kOrderSeed));
    for (const uint64_t number : numbers) {
      Answer(order, number);
    }
  }

  void ExpectAllInOrder(uint64_t count) const {
    ASSERT_EQ(tags_.size(), count);
    EXPECT_TRUE(std::is_sorted(tags_.begin(), tags_.end()));
    EXPECT_EQ(right_count_, count);
  }

  std::vector<uint64_t> tags_;
  size_t right_count_ = 0;
};

TEST_F(AnswerOrderTest, OrdersInMemory) {
  AnswerOrder order = Make({});
  RunShuffled(order, 2'000);
  ExpectAllInOrder(2'000);
  EXPECT_EQ(order.separate_count(), 0u);
}

TEST_F(AnswerOrderTest, ReadsTheMissingOneSeparatelyIfMemoryIsFull) {
  AnswerOrder order = Make({.memory_size_bytes_max = 100'000});
  RunShuffled(order, 2'000);
  ExpectAllInOrder(2'000);
  EXPECT_GT(order.separate_count(), 0u);
}

TEST_F(AnswerOrderTest, PassedAnswersMakeRoom) {
  AnswerOrder order = Make({.memory_size_bytes_max = 20'000});
  for (uint64_t number = 0; number < 200; ++number) {
    order.Ask(ByteSpan{number, 0});
  }
  for (uint64_t number = 0; number < 200; number += 2) {
    Answer(order, number + 1);
    Answer(order, number);
  }
  ExpectAllInOrder(200);
  EXPECT_EQ(order.separate_count(), 0u);
}

TEST_F(AnswerOrderTest, LetsAnswersThroughIfTheyNeedNoOrder) {
  AnswerOrder order = Make({.ordered = false, .in_flight_max = 1});
  RunShuffled(order, 500);
  EXPECT_TRUE(order.has_room());
  EXPECT_EQ(tags_.size(), 500u);
  EXPECT_FALSE(std::is_sorted(tags_.begin(), tags_.end()));
}

TEST_F(AnswerOrderTest, AsksForAsManyAsFindRoom) {
  AnswerOrder order = Make({.memory_size_bytes_max = 100'000,
                            .in_flight_min = 10,
                            .in_flight_max = 40});
  uint64_t asked_count = 0;
  while (order.has_room()) {
    order.Ask(ByteSpan{asked_count++, 0});
  }
  // The size of answers is not known yet.
  EXPECT_EQ(asked_count, 10u);
  // These answers have 0, 7,919 and 5,838 bytes.
  for (const uint64_t number : std::initializer_list<uint64_t>{0, 1, 2}) {
    Answer(order, number);
  }
  while (order.has_room()) {
    order.Ask(ByteSpan{asked_count++, 0});
  }
  EXPECT_EQ(asked_count, 3u + 22u);
}

TEST_F(AnswerOrderTest, AsksForNoMoreThanItMay) {
  AnswerOrder order = Make({.in_flight_min = 10, .in_flight_max = 40});
  order.Ask(ByteSpan{0, 0});
  Answer(order, 0);
  uint64_t asked_count = 0;
  while (order.has_room()) {
    order.Ask(ByteSpan{1 + asked_count++, 0});
  }
  EXPECT_EQ(asked_count, 40u);
}

TEST_F(AnswerOrderTest, EndsWithTheSinksError) {
  AnswerOrder order(
      {},
      [](const ItemAnswer&) {
        return absl::FailedPreconditionError("disk full");
      },
      [](uint64_t, const ReadTarget&) { return ItemAnswer(); });
  order.Ask(ByteSpan{0, 0});
  EXPECT_EQ(
      order.Take({.tag = 0, .target = ByteSpan{0, 0}, .result = ReadResult()})
          .message(),
      "disk full");
}

}  // namespace
}  // namespace quire
