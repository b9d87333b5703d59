// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/batch_memory.h"

#include "server/service/base/service_error.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint64_t kItem = BatchMemory::kWaitingItemBytes;
constexpr uint64_t kRead = BatchMemory::kItemBytes;
constexpr uint64_t kTotal = 1 << 20;
constexpr uint64_t kMost = 1 << 16;

TEST(BatchMemoryTest, HoldsMemoryWhileItemsAreUnanswered) {
  Admission admission(kTotal, kTotal / 2);
  BatchMemory memory(admission, "a");
  EXPECT_TRUE(memory.TryReserve(100));
  QUIRE_ASSERT_OK(memory.Arrive({.count = {0}}, kMost));
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
  EXPECT_TRUE(memory.TryReserve(100));
  QUIRE_ASSERT_OK(memory.Arrive(
      {.count = {3}, .largest_bytes = 500, .all_bytes = 1'100}, kMost));
  EXPECT_EQ(memory.unanswered_count(), 3u);
  EXPECT_EQ(admission.in_flight_bytes(), 3 * kItem + 1'100);
  ASSERT_TRUE(memory.window().TryTake(1'000));
  memory.Sent({2}, 1'000);
  EXPECT_EQ(admission.in_flight_bytes(), kItem + 1'100);
  ASSERT_TRUE(memory.window().TryTake(100));
  memory.Sent({1}, 100);
  EXPECT_EQ(memory.unanswered_count(), 0u);
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
}

TEST(BatchMemoryTest, ReservesForAMessageThatIsBeingRead) {
  Admission admission(kTotal, kTotal / 2);
  BatchMemory memory(admission, "a");
  QUIRE_ASSERT_OK(memory.Arrive(
      {.count = {2}, .largest_bytes = 500, .all_bytes = 500}, kMost));
  ASSERT_TRUE(memory.TryReserve(100));
  EXPECT_EQ(admission.in_flight_bytes(), 2 * kItem + 100 * kRead + 500);
  // Unneeded memory is returned; a larger answer widens the window.
  QUIRE_ASSERT_OK(memory.Arrive(
      {.count = {5}, .largest_bytes = 700, .all_bytes = 900}, kMost));
  EXPECT_EQ(admission.in_flight_bytes(), 7 * kItem + 700);
  ASSERT_TRUE(memory.TryReserve(100));
  memory.Sent({7}, 0);
  // All items are answered: later items are admitted on arrival.
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
  QUIRE_ASSERT_OK(memory.Arrive(
      {.count = {1}, .largest_bytes = 500, .all_bytes = 500}, kMost));
  EXPECT_EQ(admission.in_flight_bytes(), kItem + 500);
  ASSERT_TRUE(memory.TryReserve(100));
  // The client has no more to send.
  QUIRE_ASSERT_OK(memory.Arrive({.count = {0}}, kMost));
  EXPECT_EQ(admission.in_flight_bytes(), kItem + 500);
}

TEST(BatchMemoryTest, ChargesRefusedItemsUntilTheirErrorsAreSent) {
  Admission admission(kTotal, kTotal / 2);
  BatchMemory memory(admission, "a");
  QUIRE_ASSERT_OK(memory.Arrive({.count = {.items = 5, .refused = 2},
                                 .largest_bytes = 500,
                                 .all_bytes = 500},
                                kMost));
  EXPECT_EQ(admission.in_flight_bytes(), 3 * kItem + 2 * kRead + 500);
  memory.Sent({.items = 2, .refused = 1}, 0);
  EXPECT_EQ(admission.in_flight_bytes(), 2 * kItem + kRead + 500);
  memory.Sent({.items = 3, .refused = 1}, 0);
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
}

TEST(BatchMemoryTest, GoesOnWithWhatItHasWhereThereIsNoMore) {
  Admission admission(kTotal, kTotal);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Admission::Ticket others,
      admission.Admit("others", kTotal / 2, Admission::Use::kStream));
  BatchMemory memory(admission, "a");
  // All of it is free, but the minimum is given.
  QUIRE_ASSERT_OK(memory.Arrive(
      {.count = {2}, .largest_bytes = 500, .all_bytes = 900}, kMost));
  EXPECT_EQ(admission.in_flight_bytes(), kTotal / 2 + 2 * kItem + 500);
  EXPECT_FALSE(memory.TryReserve(1));
  EXPECT_EQ(admission.rejected_count(), 0u);
  // Past three quarters.
  EXPECT_EQ(
      ReasonOf(memory.Arrive(
          {.count = {1}, .largest_bytes = kTotal / 4, .all_bytes = kTotal / 4},
          kMost)),
      v1::SERVER_BUSY);
}

}  // namespace
}  // namespace quire
