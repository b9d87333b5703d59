// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/admission.h"

#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "proto/error_details.h"

#include "server/service/base/service_error.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kSingleAnswer = Admission::Use::kSingleAnswer;
constexpr auto kStream = Admission::Use::kStream;

TEST(AdmissionTest, BoundsAllClientsAndEachOne) {
  Admission admission(100, 60);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.Admit("a", 50, kSingleAnswer));
  EXPECT_EQ(ReasonOf(admission.Admit("a", 11, kSingleAnswer).status()),
            v1::SERVER_BUSY);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.Admit("b", 50, kSingleAnswer));
  EXPECT_EQ(ReasonOf(admission.Admit("c", 1, kSingleAnswer).status()),
            v1::SERVER_BUSY);
  EXPECT_EQ(admission.in_flight_bytes(), 100u);
  EXPECT_EQ(admission.rejected_count(), 2u);
  a.Release();
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.Admit("c", 50, kSingleAnswer));
}

TEST(AdmissionTest, ClientsAreToldApartByTheirNames) {
  EXPECT_EQ(ClientIdOf("ipv4:10.0.0.1"), ClientIdOf("ipv4:10.0.0.1"));
  EXPECT_NE(ClientIdOf("ipv4:10.0.0.1"), ClientIdOf("ipv4:10.0.0.2"));
}

TEST(AdmissionTest, SaysWhatCanNeverBe) {
  Admission admission(100, 60);
  const absl::Status status = admission.Admit("a", 61, kSingleAnswer).status();
  EXPECT_THAT(status, HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(status), v1::LIMIT_EXCEEDED);
}

TEST(AdmissionTest, TicketsGrowMoveAndGiveBackOnce) {
  Admission admission(100, 100);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket ticket,
                               admission.Admit("a", 40, kSingleAnswer));
    QUIRE_EXPECT_OK(ticket.Grow(40));
    EXPECT_FALSE(ticket.Grow(40).ok());
    EXPECT_EQ(ticket.size_bytes(), 80u);
    Admission::Ticket moved = std::move(ticket);
    EXPECT_EQ(admission.in_flight_bytes(), 80u);
    QUIRE_ASSERT_OK_AND_ASSIGN(moved, admission.Admit("a", 20, kSingleAnswer));
    EXPECT_EQ(admission.in_flight_bytes(), 20u);
  }
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
}

TEST(AdmissionTest, StreamsOfAClientLeaveAQuarterOfItsShareToSingleAnswers) {
  Admission admission(1'000, 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.Admit("a", 50, kStream));
  EXPECT_EQ(ReasonOf(admission.Admit("a", 26, kStream).status()),
            v1::SERVER_BUSY);
  // Half, for optional use.
  EXPECT_FALSE(a.TryGrow(1));
  a.Fit(50, 51);
  EXPECT_EQ(a.size_bytes(), 50u);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.Admit("a", 25, kStream));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.Admit("a", 25, kSingleAnswer));
  EXPECT_EQ(ReasonOf(admission.Admit("a", 1, kStream).status()),
            v1::SERVER_BUSY);
  // Not even alone: a retry would be useless.
  EXPECT_EQ(ReasonOf(admission.Admit("d", 76, kStream).status()),
            v1::LIMIT_EXCEEDED);
}

TEST(AdmissionTest, StreamsLeaveAQuarterToSingleAnswers) {
  Admission admission(100, 60);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.Admit("a", 40, kStream));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.Admit("b", 30, kStream));
  EXPECT_EQ(ReasonOf(admission.Admit("c", 6, kStream).status()),
            v1::SERVER_BUSY);
  EXPECT_EQ(ReasonOf(b.Grow(6)), v1::SERVER_BUSY);
  QUIRE_EXPECT_OK(b.Grow(5));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.Admit("c", 25, kSingleAnswer));
  // Bytes of single answers count, too.
  EXPECT_EQ(ReasonOf(admission.Admit("d", 1, kSingleAnswer).status()),
            v1::SERVER_BUSY);
  a.Release();
  EXPECT_EQ(ReasonOf(admission.Admit("d", 16, kStream).status()),
            v1::SERVER_BUSY);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket d,
                             admission.Admit("d", 15, kStream));
}

TEST(AdmissionTest, TicketsAreResized) {
  Admission admission(100, 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket ticket,
                             admission.Admit("a", 40, kSingleAnswer));
  for (const uint64_t size_bytes : {70u, 70u, 10u, 100u}) {
    QUIRE_EXPECT_OK(ticket.Resize(size_bytes));
    EXPECT_EQ(ticket.size_bytes(), size_bytes);
    EXPECT_EQ(admission.in_flight_bytes(), size_bytes);
  }
  QUIRE_EXPECT_OK(ticket.Resize(60));
  EXPECT_EQ(ReasonOf(ticket.Resize(101)), v1::SERVER_BUSY);
  EXPECT_EQ(admission.in_flight_bytes(), 60u);
}

TEST(AdmissionTest, WhatStreamsCanDoWithoutIsOfHalf) {
  Admission admission(100, 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.Admit("a", 30, kStream));
  EXPECT_TRUE(a.TryGrow(20));
  EXPECT_FALSE(a.TryGrow(1));
  EXPECT_EQ(a.size_bytes(), 50u);
  QUIRE_EXPECT_OK(a.Grow(10));
  a.Shrink(40);
  EXPECT_EQ(a.size_bytes(), 20u);
  EXPECT_EQ(admission.in_flight_bytes(), 20u);
  EXPECT_EQ(admission.rejected_count(), 0u);
  a.Shrink(20);
  EXPECT_TRUE(a.TryGrow(1));
  EXPECT_EQ(admission.in_flight_bytes(), 1u);
}

TEST(AdmissionTest, ClientsHaveAsMuchOfHalfAsTheyLeaveToOthers) {
  Admission admission(1'000, 500);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.AdmitWindow("a", 10, 10));
  for (int i = 0; i < 20; ++i) {
    a.Fit(10, 400);
  }
  EXPECT_NEAR(static_cast<double>(a.size_bytes()), 250, 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.AdmitWindow("b", 10, 10));
  for (int i = 0; i < 20; ++i) {
    a.Fit(10, 400);
    b.Fit(10, 400);
  }
  EXPECT_NEAR(static_cast<double>(a.size_bytes()), 166, 3);
  EXPECT_NEAR(static_cast<double>(b.size_bytes()), 166, 3);
  // Bytes in use stay.
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.Admit("c", 500, kSingleAnswer));
  a.Fit(100, 400);
  EXPECT_EQ(a.size_bytes(), 100u);
  // Nothing is free, so half of the held bytes are too many.
  const uint64_t before_bytes = b.size_bytes();
  b.Fit(10, 400);
  EXPECT_EQ(b.size_bytes(), before_bytes - before_bytes / 2);
  c.Release();
  b.Fit(10, 10);
  EXPECT_EQ(b.size_bytes(), before_bytes - before_bytes / 2);
}

TEST(AdmissionTest, WindowsBeginWithinAnEighth) {
  Admission admission(800, 400);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.AdmitWindow("a", 10, 40));
  EXPECT_EQ(a.size_bytes(), 40u);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.AdmitWindow("a", 10, 40));
  EXPECT_EQ(b.size_bytes(), 10u);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.AdmitWindow("c", 10, 40));
  EXPECT_EQ(c.size_bytes(), 25u);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket d,
                             admission.AdmitWindow("d", 300, 340));
  EXPECT_EQ(d.size_bytes(), 300u);
  EXPECT_EQ(ReasonOf(admission.AdmitWindow("e", 300, 340).status()),
            v1::SERVER_BUSY);
  EXPECT_EQ(admission.in_flight_bytes(), 375u);
}

absl::Duration RetryDelayIn(const absl::Status& status) {
  const auto details = ParseErrorDetails(ToGrpcStatus(status).error_details());
  return details.has_value()
             ? details->retry_delay.value_or(absl::InfiniteDuration())
             : absl::InfiniteDuration();
}

TEST(AdmissionTest, SaysWhenToComeBackByWhatIsSetFree) {
  absl::Time now = absl::UnixEpoch();
  Admission admission(1'024, 1'024, [&now] { return now; });
  const auto refuse = [&admission](uint64_t size_bytes) {
    return RetryDelayIn(
        admission.Admit("b", size_bytes, kSingleAnswer).status());
  };
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket all,
                             admission.Admit("a", 1'024, kSingleAnswer));
  refuse(1);
  all.Shrink(256);
  now += absl::Milliseconds(500);
  // 512 per second were returned.
  EXPECT_EQ(refuse(512), RetryPacer::kWaitMin + absl::Seconds(1));
  EXPECT_EQ(refuse(512), RetryPacer::kWaitMin + absl::Seconds(2));
  now += absl::Milliseconds(500);
  // Almost nothing was returned.
  EXPECT_GE(refuse(512), RetryPacer::kWaitMax / 2);
  EXPECT_EQ(RetryDelayIn(admission.Admit("b", 1'025, kSingleAnswer).status()),
            absl::InfiniteDuration());
}

TEST(AdmissionTest, AdmitsEmptyAnswersAlways) {
  Admission admission(100, 100);
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket a,
                             admission.Admit("a", 0, kSingleAnswer));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket b,
                             admission.Admit("a", 0, kSingleAnswer));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket all,
                             admission.Admit("b", 100, kSingleAnswer));
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket c,
                             admission.Admit("a", 0, kSingleAnswer));
  a.Release();
  b.Release();
  EXPECT_EQ(admission.in_flight_bytes(), 100u);
}

TEST(AdmissionTest, HoldsUnderManyThreads) {
  Admission admission(1000, 400);
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&admission, t] {
      const std::string client = t % 2 == 0 ? "even" : "odd";
      for (uint64_t i = 0; i < 2000; ++i) {
        absl::StatusOr<Admission::Ticket> ticket =
            admission.Admit(client, 1 + i % 200, kSingleAnswer);
        EXPECT_LE(admission.in_flight_bytes(), 800u);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
}

// --- Waiting in turn ---

// Answers of 10 bytes: 100 in total and 60 for each client.
class AdmissionTurnTest : public ::testing::Test {
 protected:
  // Returns the id. If the answer waits, its name is appended to order_ once it
  // gets a ticket, and to refused_ if it does not.
  Admission::TurnId Ask(const std::string& client, const std::string& name,
                        uint64_t size_bytes = 10, uint64_t waiting_bytes = 1) {
    Admission::TurnId id = 0;
    auto ticket = admission_.AdmitInTurn(
        client, size_bytes, waiting_bytes,
        [this, name](absl::StatusOr<Admission::Ticket> given) {
          if (given.ok()) {
            order_.push_back(name);
            tickets_.push_back(*std::move(given));
          } else {
            refused_.push_back(name);
            last_refusal_ = given.status();
          }
        },
        id);
    if (ticket.has_value() && ticket->ok()) {
      order_.push_back(name);
      tickets_.push_back(**std::move(ticket));
    } else if (ticket.has_value()) {
      refused_.push_back(name);
      last_refusal_ = ticket->status();
    }
    return id;
  }

  // Returns the ticket admitted first.
  void Return() {
    Admission::Ticket ticket = std::move(tickets_.front());
    tickets_.pop_front();
  }

  absl::Time now_ = absl::UnixEpoch();
  Admission admission_{100, 60, [this] { return now_; }};
  std::deque<Admission::Ticket> tickets_;
  std::vector<std::string> order_;
  std::vector<std::string> refused_;
  absl::Status last_refusal_;
};

TEST_F(AdmissionTurnTest, ClientsTakeTurnsAndOfOneTheFirstIsFirst) {
  Ask("c", "c1", 50);
  Ask("d", "d1", 50);
  Ask("a", "a1");
  Ask("a", "a2");
  Ask("a", "a3");
  Ask("b", "b1");
  EXPECT_THAT(order_, ElementsAre("c1", "d1"));
  EXPECT_EQ(admission_.waiting_count(), 4u);
  Return();
  EXPECT_THAT(order_, ElementsAre("c1", "d1", "a1", "b1", "a2", "a3"));
  EXPECT_EQ(admission_.waiting_count(), 0u);
  EXPECT_EQ(admission_.in_flight_bytes(), 90u);
  EXPECT_EQ(admission_.rejected_count(), 0u);
}

TEST_F(AdmissionTurnTest, SmallAnswersDoNotOvertakeLargeOnes) {
  Ask("a", "a1", 60);
  Ask("b", "b1", 40);
  Ask("c", "large", 50);
  Ask("d", "small", 5);
  tickets_.pop_back();
  EXPECT_THAT(order_, ElementsAre("a1", "b1"));
  // Later small answers are not admitted either.
  Ask("e", "late", 5);
  EXPECT_EQ(admission_.waiting_count(), 3u);
  Return();
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "large", "small", "late"));
}

TEST_F(AdmissionTurnTest, AClientWhoseShareIsInUseHoldsUpNoOther) {
  Ask("a", "a1", 60);
  Ask("a", "a2");
  EXPECT_EQ(admission_.waiting_count(), 1u);
  Ask("b", "b1", 30);
  EXPECT_THAT(order_, ElementsAre("a1", "b1"));
  // It waits for bytes of others, so the next client waits for its turn.
  Ask("c", "large", 20);
  Ask("d", "small", 5);
  EXPECT_THAT(order_, ElementsAre("a1", "b1"));
  Return();
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "large", "a2", "small"));
}

TEST_F(AdmissionTurnTest, SmallAnswersDoNotOvertakeOthersOfTheirClient) {
  Ask("a", "a1", 50);
  Ask("a", "large", 20);
  Ask("a", "small");
  EXPECT_THAT(order_, ElementsAre("a1"));
  Return();
  EXPECT_THAT(order_, ElementsAre("a1", "large", "small"));
}

TEST_F(AdmissionTurnTest, ManyAnswersThatWaitForTheirShareRefuseNoOtherClient) {
  Ask("a", "a1", 60);
  for (size_t i = 0; i < Admission::kWaitingAnswersMax; ++i) {
    Ask("a", "more");
  }
  EXPECT_EQ(admission_.waiting_count(), Admission::kWaitingAnswersMax / 2);
  // It gets its ticket from the call itself.
  Admission::TurnId id = 0;
  auto ticket = admission_.AdmitInTurn(
      "b", 10, Admission::kWaitingBytesMax,
      [](const absl::StatusOr<Admission::Ticket>& /*given*/) {
        ADD_FAILURE() << "it waited";
      },
      id);
  ASSERT_TRUE(ticket.has_value());
  QUIRE_EXPECT_OK(*ticket);
  now_ += Admission::kTurnWaitMax;
  admission_.EndLateTurns();
}

TEST_F(AdmissionTurnTest, WaitsAreBoundedInTime) {
  Ask("a", "a1", 60);
  Ask("b", "b1", 40);
  Ask("c", "c1");
  now_ += Admission::kTurnWaitMax / 2;
  Ask("c", "c2");
  now_ += Admission::kTurnWaitMax / 2 - absl::Nanoseconds(1);
  admission_.EndLateTurns();
  EXPECT_THAT(refused_, IsEmpty());
  now_ += absl::Nanoseconds(1);
  admission_.EndLateTurns();
  EXPECT_THAT(refused_, ElementsAre("c1"));
  EXPECT_EQ(ReasonOf(last_refusal_), v1::SERVER_BUSY);
  EXPECT_EQ(admission_.rejected_count(), 1u);
  Return();
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "c2"));
}

TEST_F(AdmissionTurnTest, WaitsAreBoundedInNumberAndMemory) {
  Ask("a", "a1", 60);
  Ask("b", "b1", 40);
  Ask("c", "c1", 10, Admission::kWaitingBytesMax - 5);
  Ask("c", "c2", 10, 6);
  EXPECT_THAT(refused_, ElementsAre("c2"));
  EXPECT_EQ(ReasonOf(last_refusal_), v1::SERVER_BUSY);
  refused_.clear();
  Return();
  for (size_t i = 0; i < Admission::kWaitingAnswersMax; ++i) {
    Ask(absl::StrCat("client ", i), "more", 60);
  }
  EXPECT_EQ(admission_.waiting_count(), Admission::kWaitingAnswersMax);
  EXPECT_THAT(refused_, IsEmpty());
  Ask("b", "b2");
  EXPECT_THAT(refused_, ElementsAre("b2"));
  now_ += Admission::kTurnWaitMax;
  admission_.EndLateTurns();
  EXPECT_EQ(admission_.waiting_count(), 0u);
}

TEST_F(AdmissionTurnTest, EachClientLeavesOthersRoomToWait) {
  Ask("a", "a1", 60);
  Ask("b", "b1", 40);
  for (const char* const client : {"a", "b"}) {
    for (size_t i = 0; i < Admission::kWaitingAnswersMax; ++i) {
      Ask(client, "more", 60, 1);
    }
  }
  // The first half, and half of the rest.
  EXPECT_EQ(admission_.waiting_count(), Admission::kWaitingAnswersMax * 3 / 4);
  EXPECT_EQ(ReasonOf(last_refusal_), v1::SERVER_BUSY);
  refused_.clear();
  Ask("c", "c1", 60, 1);
  EXPECT_THAT(refused_, IsEmpty());
  now_ += Admission::kTurnWaitMax;
  admission_.EndLateTurns();
  refused_.clear();
  // The same for their memory.
  constexpr uint64_t kQuarter = Admission::kWaitingBytesMax / 4;
  const Admission::TurnId a2 = Ask("a", "a2", 60, kQuarter);
  Ask("a", "a3", 60, kQuarter);
  Ask("a", "a4", 60, 1);
  EXPECT_THAT(refused_, ElementsAre("a4"));
  admission_.Withdraw(a2);
  Ask("a", "a5", 60, kQuarter + 1);
  Ask("c", "c2", 60, 2 * kQuarter - 1);
  EXPECT_THAT(refused_, ElementsAre("a4", "a2"));
  now_ += Admission::kTurnWaitMax;
  admission_.EndLateTurns();
  EXPECT_EQ(admission_.waiting_count(), 0u);
}

TEST_F(AdmissionTurnTest, WithdrawnWaitsMakeWayForOthers) {
  Ask("a", "a1", 60);
  Ask("b", "b1", 35);
  const Admission::TurnId large = Ask("c", "large", 50);
  Ask("d", "small", 5);
  EXPECT_EQ(admission_.waiting_count(), 2u);
  admission_.Withdraw(large);
  EXPECT_THAT(refused_, ElementsAre("large"));
  EXPECT_THAT(last_refusal_, HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(order_, ElementsAre("a1", "b1", "small"));
  admission_.Withdraw(large);
  EXPECT_THAT(refused_, ElementsAre("large"));
}

TEST_F(AdmissionTurnTest, WhatCanNeverBeDoesNotWait) {
  Ask("a", "a1", 61);
  EXPECT_THAT(refused_, ElementsAre("a1"));
  EXPECT_EQ(ReasonOf(last_refusal_), v1::LIMIT_EXCEEDED);
}

// Next to another client, a client has at most two answers of 1 MiB on their
// way to the network; the third one waits until one is sent, or is old.
TEST(AdmissionFreshTest, AClientWithManyAnswersMakesWayWhileAnotherAsks) {
  constexpr uint64_t kSize = 1 << 20;
  absl::Time now = absl::UnixEpoch();
  Admission admission(100 * kSize, 60 * kSize, [&now] { return now; });
  std::deque<Admission::Ticket> tickets;
  size_t waiting_count = 0;
  const auto ask = [&](absl::string_view client) {
    Admission::TurnId id = 0;
    std::optional<absl::StatusOr<Admission::Ticket>> ticket =
        admission.AdmitInTurn(
            client, kSize, 0,
            [&](absl::StatusOr<Admission::Ticket> admitted) {
              QUIRE_ASSERT_OK(admitted.status());
              tickets.push_back(*std::move(admitted));
              --waiting_count;
            },
            id);
    if (ticket.has_value()) {
      QUIRE_ASSERT_OK(ticket->status());
      tickets.push_back(**std::move(ticket));
    } else {
      ++waiting_count;
    }
  };
  for (int i = 0; i < 10; ++i) {
    ask("greedy");
  }
  EXPECT_EQ(waiting_count, 0u);
  ask("polite");
  ask("greedy");
  ask("greedy");
  ask("greedy");
  EXPECT_EQ(waiting_count, 3u);
  ask("polite");
  EXPECT_EQ(waiting_count, 3u);
  // Sent; one of the polite client's is left.
  while (tickets.size() > 3) {
    tickets.pop_front();
  }
  EXPECT_EQ(waiting_count, 1u);
  // The others are old: their client does not read them.
  now += FreshAnswers::kFreshDuration;
  admission.EndLateTurns();
  EXPECT_EQ(waiting_count, 0u);
  EXPECT_EQ(admission.rejected_count(), 0u);
}

TEST(AdmissionTimerTest, EndsWaitsByItself) {
  Admission admission(100, 100);
  admission.StartTimer();
  QUIRE_ASSERT_OK_AND_ASSIGN(Admission::Ticket all,
                             admission.Admit("a", 100, kSingleAnswer));
  std::promise<absl::Status> ended;
  Admission::TurnId id = 0;
  const absl::Time start = absl::Now();
  EXPECT_FALSE(admission
                   .AdmitInTurn(
                       "b", 1, 1,
                       [&](absl::StatusOr<Admission::Ticket> given) {
                         ended.set_value(given.status());
                       },
                       id)
                   .has_value());
  EXPECT_EQ(ReasonOf(ended.get_future().get()), v1::SERVER_BUSY);
  EXPECT_GE(absl::Now() - start, Admission::kTurnWaitMax);
}

TEST(AdmissionTurnThreadsTest, EveryAnswerGetsOneEnd) {
  constexpr int kThreads = 8;
  constexpr int kAnswers = 1000;
  Admission admission(1000, 400);
  admission.StartTimer();
  std::atomic<int> given_count = 0;
  std::atomic<int> other_count = 0;
  // A thread that the system keeps from running holds up others: they may wait
  // for too long, or too many.
  const auto count_end = [&](const absl::StatusOr<Admission::Ticket>& given) {
    EXPECT_TRUE(given.ok() || absl::IsCancelled(given.status()) ||
                ReasonOf(given.status()) == v1::SERVER_BUSY)
        << given.status();
    ++(given.ok() ? given_count : other_count);
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < kAnswers; ++i) {
        Admission::TurnId id = 0;
        const auto ticket =
            admission.AdmitInTurn(absl::StrCat("client ", t % 3),
                                  1 + random() % 300, 100, count_end, id);
        EXPECT_LE(admission.in_flight_bytes(), 1000u);
        if (ticket.has_value()) {
          count_end(*ticket);
        } else if (random() % 4 == 0) {
          admission.Withdraw(id);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // The timer's thread may still end some.
  const absl::Time late = absl::Now() + absl::Minutes(1);
  while ((given_count + other_count < kThreads * kAnswers ||
          admission.in_flight_bytes() > 0) &&
         absl::Now() < late) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(given_count + other_count, kThreads * kAnswers) << "seeds 0 to 7";
  EXPECT_GT(given_count, 0);
  EXPECT_EQ(admission.in_flight_bytes(), 0u);
  EXPECT_EQ(admission.waiting_count(), 0u);
}

}  // namespace
}  // namespace quire
