// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/fresh_answers.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kMax = FreshAnswers::kBytesMax;
constexpr absl::Duration kStep = absl::Microseconds(1);

absl::Time At(absl::Duration since) {
  return absl::UnixEpoch() + since;
}

TEST(FreshAnswersTest, BoundsAClientOnlyWhileAnotherAsks) {
  FreshAnswers answers;
  const absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall("greedy", now);
  answers.Begin("greedy", 5 * kMax, now);
  EXPECT_TRUE(answers.MayBegin("greedy", 1, now));
  answers.NoteCall("polite", now);
  EXPECT_FALSE(answers.MayBegin("greedy", 1, now));
  EXPECT_TRUE(answers.MayBegin("polite", 10 * kMax, now));
  answers.NoteCall("greedy", now);
  EXPECT_FALSE(answers.MayBegin("greedy", 1, now));
}

TEST(FreshAnswersTest, AClientAsksUntilSomeTimeAfterItsLastCall) {
  FreshAnswers answers;
  absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall("polite", now);
  answers.NoteCall("greedy", now);
  now += FreshAnswers::kAskingDuration;
  answers.Begin("greedy", kMax, now);
  EXPECT_FALSE(answers.MayBegin("greedy", 1, now));
  EXPECT_TRUE(answers.MayBegin("greedy", 1, now + kStep));
}

TEST(FreshAnswersTest, SentAndOldAnswersDoNotCount) {
  FreshAnswers answers;
  absl::Time now = At(absl::ZeroDuration());
  answers.NoteCall("polite", now);
  answers.NoteCall("greedy", now);
  const FreshAnswers::Id sent = answers.Begin("greedy", kMax / 2, now);
  const FreshAnswers::Id old = answers.Begin("greedy", kMax / 2, now);
  EXPECT_FALSE(answers.MayBegin("greedy", 1, now));
  answers.End(sent);
  EXPECT_TRUE(answers.MayBegin("greedy", kMax / 2, now));
  EXPECT_FALSE(answers.MayBegin("greedy", kMax / 2 + 1, now));
  now += FreshAnswers::kFreshDuration - kStep;
  EXPECT_FALSE(answers.MayBegin("greedy", kMax / 2 + 1, now));
  EXPECT_TRUE(answers.MayBegin("greedy", kMax / 2 + 1, now + kStep));
  answers.End(old);
}

// Against a map of all answers.
TEST(FreshAnswersTest, AgreesWithAPlainAccount) {
  std::mt19937 random(7);
  FreshAnswers answers;

  struct Known {
    std::string client;
    uint64_t size_bytes;
    absl::Time begun;
  };

  std::map<FreshAnswers::Id, Known> known;
  std::map<std::string, absl::Time> asked;
  absl::Time now = At(absl::ZeroDuration());
  for (int step = 0; step < 20'000; ++step) {
    now += absl::Microseconds(random() % 3'000);
    const std::string client = absl::StrCat("client", random() % 3);
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
