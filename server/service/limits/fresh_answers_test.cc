// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/fresh_answers.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <random>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kMax = FreshAnswers::kBytesMax;
constexpr uint64_t kGreedy = 1;
constexpr uint64_t kPolite = 2;
constexpr absl::Duration kStep = absl::Microseconds(1);

absl::Time At(absl::Duration since) {
  return absl::UnixEpoch() + since;
}

TEST(FreshAnswersTest, BoundsAClientOnlyWhileAnotherAsks) {
  FreshAnswers answers;
  const absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall(kGreedy, now);
  answers.Begin(kGreedy, 5 * kMax, now);
  EXPECT_TRUE(answers.MayBegin(kGreedy, 1, now));
  answers.NoteCall(kPolite, now);
  EXPECT_FALSE(answers.MayBegin(kGreedy, 1, now));
  EXPECT_TRUE(answers.MayBegin(kPolite, 10 * kMax, now));
  answers.NoteCall(kGreedy, now);
  EXPECT_FALSE(answers.MayBegin(kGreedy, 1, now));
}

TEST(FreshAnswersTest, AClientAsksUntilSomeTimeAfterItsLastCall) {
  FreshAnswers answers;
  absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall(kPolite, now);
  answers.NoteCall(kGreedy, now);
  now += FreshAnswers::kAskingDuration;
  answers.Begin(kGreedy, kMax, now);
  EXPECT_FALSE(answers.MayBegin(kGreedy, 1, now));
  EXPECT_TRUE(answers.MayBegin(kGreedy, 1, now + kStep));
}

TEST(FreshAnswersTest, SentAndOldAnswersDoNotCount) {
  FreshAnswers answers;
  absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall(kPolite, now);
  answers.NoteCall(kGreedy, now);
  const FreshAnswers::Id sent = answers.Begin(kGreedy, kMax / 2, now);
  const FreshAnswers::Id old = answers.Begin(kGreedy, kMax / 2, now);
  EXPECT_FALSE(answers.MayBegin(kGreedy, 1, now));
  answers.End(sent);
  EXPECT_TRUE(answers.MayBegin(kGreedy, kMax / 2, now));
  EXPECT_FALSE(answers.MayBegin(kGreedy, kMax / 2 + 1, now));
  now += FreshAnswers::kFreshDuration - kStep;
  EXPECT_FALSE(answers.MayBegin(kGreedy, kMax / 2 + 1, now));
  EXPECT_TRUE(answers.MayBegin(kGreedy, kMax / 2 + 1, now + kStep));
  answers.End(old);
}

// Against a map of all answers.
TEST(FreshAnswersTest, AgreesWithAPlainAccount) {
  std::mt19937 random(7);
  FreshAnswers answers;

  struct Known {
    uint64_t client = 0;
    uint64_t size_bytes = 0;
    absl::Time begun;
  };

  std::map<FreshAnswers::Id, Known> known;
  std::map<uint64_t, absl::Time> asked;
  absl::Time now = At(absl::ZeroDuration());
  for (int step = 0; step < 20'000; ++step) {
    now += absl::Microseconds(random() % 3'000);
    const uint64_t client = random() % 3;
    const uint64_t size_bytes = random() % 4 == 0 ? 0 : random() % (kMax / 2);
    answers.NoteCall(client, now);
    asked[client] = now;
    uint64_t fresh_bytes = 0;
    for (const auto& [id, answer] : known) {
      if (answer.client == client &&
          now < answer.begun + FreshAnswers::kFreshDuration) {
        fresh_bytes += answer.size_bytes;
      }
    }
    bool others_ask = false;
    for (const auto& [other, time] : asked) {
      others_ask |=
          other != client && now - time <= FreshAnswers::kAskingDuration;
    }
    const bool may_begin =
        !others_ask || fresh_bytes == 0 || fresh_bytes + size_bytes <= kMax;
    ASSERT_EQ(answers.MayBegin(client, size_bytes, now), may_begin) << step;
    if (may_begin) {
      known[answers.Begin(client, size_bytes, now)] = {client, size_bytes, now};
    }
    while (!known.empty() && random() % 2 == 0) {
      auto ended = known.begin();
      std::advance(ended, random() % known.size());
      answers.End(ended->first);
      known.erase(ended);
    }
  }
}

}  // namespace
}  // namespace quire
