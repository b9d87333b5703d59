// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_keeper.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Only a hang takes this long.
constexpr std::chrono::minutes kPatience{1};

// A source that gives what the test says.
class CredentialKeeperTest : public ::testing::Test {
 protected:
  void Start(std::chrono::milliseconds pause = std::chrono::hours(1)) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        keeper_, CredentialKeeper::Start(
                     {.find =
                          [this](const std::atomic<bool>& /*cancel*/) {
                            MutexLock lock(&mutex_);
                            ++ask_count_;
                            return finding_;
                          },
                      .notice =
                          [this](bool is_failure, const std::string& line) {
                            MutexLock lock(&mutex_);
                            lines_.push_back((is_failure ? "W " : "I ") + line);
                          },
                      .pause = pause}));
  }

  void Give(const std::string& id, absl::Time expiry = absl::InfiniteFuture(),
            bool is_local = false) {
    MutexLock lock(&mutex_);
    finding_ = {.credentials = StoreCredentials{.access_key_id = id,
                                                .secret_access_key = "SECRET",
                                                .expiry = expiry,
                                                .source = "the test"},
                .is_local = is_local};
  }

  void Fail() {
    MutexLock lock(&mutex_);
    finding_ = {.credentials = absl::UnavailableError("the test: fails"),
                .is_local = false};
  }

  // Waits for the answer. Returns the key id in force; "" if none is known.
  std::string Ask(std::shared_ptr<const StoreCredentials> refused = nullptr) {
    absl::Notification done;
    keeper_->Ask(std::move(refused), [&done] { done.Notify(); });
    done.WaitForNotification();
    return Id();
  }

  std::string Id() const {
    const auto current = keeper_->Current();
    return current == nullptr ? "" : current->access_key_id;
  }

  uint64_t ask_count() {
    MutexLock lock(&mutex_);
    return ask_count_;
  }

  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

  Mutex mutex_;
  CredentialFinding finding_ ABSL_GUARDED_BY(mutex_) = {
      .credentials = StoreCredentials()};
  uint64_t ask_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  // Uses what is above.
  std::unique_ptr<CredentialKeeper> keeper_;
};

TEST_F(CredentialKeeperTest, AsksWhenTheFirstRequestNeedsIt) {
  Give("A");
  Start();
  QUIRE_EXPECT_OK(keeper_->Reload(kPatience));
  EXPECT_EQ(Id(), "");
  EXPECT_EQ(ask_count(), 0u);
  EXPECT_EQ(Ask(), "A");
  EXPECT_EQ(Ask(), "A");
  EXPECT_EQ(ask_count(), 1u);
  keeper_->Stop();
  EXPECT_THAT(lines(),
              ElementsAre("I credentials for object stores: the test"));
}

TEST_F(CredentialKeeperTest, RefusedCredentialsAreReplaced) {
  Give("A", absl::InfiniteFuture(), /*is_local=*/true);
  Start();
  Ask();
  const auto first = keeper_->Current();
  Give("B", absl::InfiniteFuture(), /*is_local=*/true);
  EXPECT_EQ(Ask(first), "B");
  EXPECT_EQ(ask_count(), 2u);
  // Another request with the old ones.
  EXPECT_EQ(Ask(first), "B");
  EXPECT_EQ(ask_count(), 2u);
  // Files are read at each refusal.
  EXPECT_EQ(Ask(keeper_->Current()), "B");
  EXPECT_EQ(ask_count(), 3u);
}

TEST_F(CredentialKeeperTest, ServicesAreNotAskedAtEachRefusal) {
  Give("A");
  Start();
  Ask();
  Give("B");
  EXPECT_EQ(Ask(keeper_->Current()), "A");
  EXPECT_EQ(ask_count(), 1u);
  // A reload does not wait.
  QUIRE_EXPECT_OK(keeper_->Reload(kPatience));
  EXPECT_EQ(Id(), "B");
}

TEST_F(CredentialKeeperTest, RenewsBeforeTheExpiry) {
  Give("A", absl::Now() + absl::Seconds(1));
  Start();
  EXPECT_EQ(Ask(), "A");
  Give("B");
  while (Id() != "B") {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(keeper_->failure_count(), 0u);
}

TEST_F(CredentialKeeperTest, AFailedRenewalKeepsCredentials) {
  Give("A", absl::Now() + absl::Seconds(1));
  Start();
  EXPECT_EQ(Ask(), "A");
  Fail();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(keeper_->Reload(kPatience),
                FailsWith(absl::StatusCode::kUnavailable, "the test: fails"));
    EXPECT_EQ(Id(), "A");
    EXPECT_GE(keeper_->failure_count(), static_cast<uint64_t>(i));
  }
  EXPECT_EQ(keeper_->last_error().message(), "the test: fails");
  // A service that cannot be reached looks like none.
  {
    MutexLock lock(&mutex_);
    finding_ = {.credentials = StoreCredentials{.source = "is away"},
                .is_local = false};
  }
  EXPECT_THAT(keeper_->Reload(kPatience),
              FailsWith(absl::StatusCode::kUnavailable, HasSubstr("is away")));
  EXPECT_EQ(Id(), "A");
  Give("B");
  QUIRE_EXPECT_OK(keeper_->Reload(kPatience));
  EXPECT_EQ(Id(), "B");
  QUIRE_EXPECT_OK(keeper_->last_error());
  keeper_->Stop();
  // One line for all failures.
  EXPECT_THAT(
      lines(),
      ElementsAre(HasSubstr("I credentials for object stores: the test, until"),
                  HasSubstr("W no new credentials for object stores: the test: "
                            "fails; those of the test stay in force, until"),
                  "I credentials for object stores: the test"));
}

TEST_F(CredentialKeeperTest, ReportsTheFirstFailure) {
  Fail();
  Start(std::chrono::milliseconds(0));
  EXPECT_EQ(Ask(), "");
  EXPECT_THAT(keeper_->last_error(), HasCode(absl::StatusCode::kUnavailable));
  Give("A");
  EXPECT_EQ(Ask(), "A");
}

TEST_F(CredentialKeeperTest, RemovedKeysAreNotUsedAnyMore) {
  Give("A", absl::InfiniteFuture(), /*is_local=*/true);
  Start();
  Ask();
  {
    MutexLock lock(&mutex_);
    finding_ = {.credentials = StoreCredentials()};
  }
  QUIRE_EXPECT_OK(keeper_->Reload(kPatience));
  EXPECT_FALSE(keeper_->Current()->is_set());
}

TEST_F(CredentialKeeperTest, StopsWithinAQuestion) {
  absl::Notification asked;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      keeper_,
      CredentialKeeper::Start(
          {.find = [&asked](const std::atomic<bool>& cancel) {
            asked.Notify();
            while (!cancel) {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            return CredentialFinding{.credentials = absl::CancelledError("")};
          }}));
  keeper_->Ask(nullptr, [] {});
  asked.WaitForNotification();
  EXPECT_THAT(keeper_->Reload(std::chrono::milliseconds(1)),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  keeper_->Stop();
  EXPECT_EQ(keeper_->failure_count(), 0u);
}

TEST(CredentialKeeperTimesTest, AsksEarlierThanTheExpiry) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  const auto next = [&](absl::Duration left) {
    return CredentialKeeper::NextTime(now, now + left) - now;
  };
  EXPECT_EQ(next(absl::Hours(6)), absl::Hours(6) - absl::Minutes(15));
  EXPECT_EQ(next(absl::Minutes(15)), absl::Seconds(30));
  EXPECT_EQ(next(absl::Seconds(40)), absl::Seconds(10));
  EXPECT_EQ(next(absl::Seconds(2)), absl::Seconds(1));
  EXPECT_EQ(next(-absl::Hours(1)), absl::Seconds(30));
  EXPECT_GT(now + next(absl::Minutes(15.4)), now);
}

}  // namespace
}  // namespace quire
