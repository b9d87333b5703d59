// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits while the system's clock is set.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "server/service/limits/admission.h"
#include "server/service/limits/connection_table.h"
#include "server/service/limits/quota.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

std::atomic<time_t> clock_ahead_s = 0;

// Sets the system's clock, as this program sees it, an hour ahead.
class ClockChangeTest : public ::testing::Test {
 protected:
  ~ClockChangeTest() override { clock_ahead_s = 0; }

  static time_t WallClock() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
  }

  static void SetClockAhead() {
    const time_t before = WallClock();
    clock_ahead_s = 3600;
    ASSERT_GE(WallClock(), before + 3600);
  }
};

TEST_F(ClockChangeTest, AnswersWaitAsBefore) {
  Admission admission(100, 60);
  auto held = admission.Admit("a", 60, Admission::Use::kSingleAnswer);
  QUIRE_ASSERT_OK(held);
  std::vector<absl::StatusOr<Admission::Ticket>> given;
  Admission::TurnId id = 0;
  EXPECT_FALSE(admission
                   .AdmitInTurn(
                       "b", 60, 1,
                       [&](absl::StatusOr<Admission::Ticket> ticket) {
                         given.push_back(std::move(ticket));
                       },
                       id)
                   .has_value());
  SetClockAhead();
  admission.EndLateTurns();
  EXPECT_EQ(admission.waiting_count(), 1u);
  held->Release();
  ASSERT_EQ(given.size(), 1u);
  QUIRE_EXPECT_OK(given.front());
  given.clear();
}

TEST_F(ClockChangeTest, ConnectionsStayOpen) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ConnectionTable table({.client_connections_max = 1,
                         .crowded_descriptor = 10'000,
                         .last_descriptor = 10'000,
                         .silence_max = absl::Minutes(2)});
  EXPECT_EQ(table.Add(ends[0], "peer", "a"), ConnectionVerdict::kTaken);
  SetClockAhead();
  EXPECT_GT(table.EndSilent(), absl::ZeroDuration());
  EXPECT_EQ(table.silent_ended_count(), 0u);
  for (const int fd : ends) {
    close(fd);
  }
}

TEST_F(ClockChangeTest, QuotasStayUsed) {
  QuotaBook book;
  Quota quota;
  quota.bytes_per_second = 1 << 20;
  auto use = book.Begin("a", quota, /*is_stream=*/false);
  QUIRE_ASSERT_OK(use);
  use->Sent(1 << 30);
  SetClockAhead();
  EXPECT_THAT(book.Begin("a", quota, /*is_stream=*/false),
              HasCode(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace quire

// The linker prefers this definition to that of the C library.
extern "C" int clock_gettime(clockid_t clock_id, timespec* tp) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock_id, tp));
  if (result == 0 && clock_id == CLOCK_REALTIME) {
    tp->tv_sec += quire::clock_ahead_s;
  }
  return result;
}
