// SPDX-License-Identifier: Apache-2.0
//
// Calls that the server refuses with a delay, and the metadata of repeated
// calls.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client.h"
#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "codecs/base/mutex.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

class ClientRetryTest : public ClientFixture {
 protected:
  absl::Status ReadInBatch() {
    return client_->ReadBatch(
        "web", {DocumentKey::Ordinal(0), ByteSpan{0, 10}},
        [](const BatchAnswer& answer) { return answer.result.status(); });
  }

  absl::Status ScanAll() {
    std::string text;
    const absl::Status status =
        client_->Scan("web", {}, [&](const ScanPiece& piece) {
          text.append(AsText(piece.data).data(), piece.data.size());
          return absl::OkStatus();
        });
    EXPECT_TRUE(!status.ok() || text == web_text_);
    return status;
  }

  absl::Status StreamSome() {
    std::string text;
    return Stream(ByteSpan{0, 5000}, text);
  }

  absl::Status FetchDictionary() {
    return client_->GetDictionary(
        "hash-of-web", [](uint64_t, ByteView) { return absl::OkStatus(); },
        "web");
  }

  // Makes calls of each kind, with `faults` before each.
  void MakeEachCall(const FakeFaults& faults) {
    const auto with_faults = [&] { server_->SetFaults(faults); };
    with_faults();
    QUIRE_EXPECT_OK(client_->GetArchive("web"));
    with_faults();
    QUIRE_EXPECT_OK(client_->ListArchives());
    with_faults();
    QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 10}));
    with_faults();
    QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 15000}));
    with_faults();
    QUIRE_EXPECT_OK(client_->ListDocuments("web").Next());
    with_faults();
    QUIRE_EXPECT_OK(StreamSome());
    with_faults();
    QUIRE_EXPECT_OK(ReadInBatch());
    with_faults();
    QUIRE_EXPECT_OK(ScanAll());
    with_faults();
    QUIRE_EXPECT_OK(FetchDictionary());
  }

  // Makes waits end at once and records their delays.
  void RecordWaits() {
    options_.told_wait = [this](absl::Duration delay) {
      MutexLock lock(&mutex_);
      waits_.push_back(delay);
      return waits_.size() < 50;
    };
    Connect();
  }

  std::vector<absl::Duration> Waits() {
    MutexLock lock(&mutex_);
    return waits_;
  }

 private:
  Mutex mutex_;
  std::vector<absl::Duration> waits_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ClientRetryTest, WaitsAsOftenAsTold) {
  for (const int attempts_max : {4, 1}) {
    options_.attempts_max = attempts_max;
    Connect();
    FakeFaults faults;
    faults.with_listing = true;
    faults.opening_calls = 6;
    faults.over_quota_calls = 6;
    MakeEachCall(faults);
    faults = {};
    // Scans themselves, not the call for the description.
    faults.busy_calls = 12;
    faults.busy_retry_delay = absl::Milliseconds(1);
    MakeEachCall(faults);
  }
}

TEST_F(ClientRetryTest, EndsAtTheTimeLimitWithTheServersError) {
  options_.deadline = absl::Milliseconds(200);
  options_.stream_idle_max = absl::Milliseconds(200);
  Connect();
  QUIRE_ASSERT_OK(client_->GetLimits());
  FakeFaults faults;
  faults.opening_calls = -1;
  faults.told_delay = absl::Milliseconds(20);
  server_->SetFaults(faults);
  for (const absl::Status& status :
       {client_->GetArchive("web").status(), StreamSome(), ReadInBatch(),
        FetchDictionary()}) {
    // An attempt may be in progress as the time ends.
    EXPECT_THAT(
        status,
        FailsWith(
            absl::StatusCode::kUnavailable,
            AllOf(HasSubstr("the archive is being opened; gave up after "),
                  AnyOf(HasSubstr(" attempts, as the server asks to wait 20ms"),
                        HasSubstr(" attempts, the last one without an answer")),
                  HasSubstr(" and the time limit is 200ms; allow more time"))));
    EXPECT_EQ(ErrorReasonOf(status), "ARCHIVE_OPENING");
    EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(20));
  }
  // The last attempt has no answer.
  faults.opening_calls = 1;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->GetArchive("web"),
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("2 attempts, the last one without an answer "
                                  "and the time limit is 200ms")));
}

TEST_F(ClientRetryTest, DoesNotBeginAWaitThatIsTooLong) {
  FakeFaults faults;
  faults.over_quota_calls = -1;
  faults.told_delay = absl::Hours(1);
  server_->SetFaults(faults);
  const absl::Status status = client_->GetArchive("web").status();
  EXPECT_THAT(status,
              FailsWith(absl::StatusCode::kResourceExhausted,
                        HasSubstr("one attempt, as the server asks to "
                                  "wait 1h and the time limit is 30s")));
  EXPECT_EQ(server_->CallCount("GetArchive"), 1);
  EXPECT_THAT(StreamSome(), HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(server_->CallCount("ReadStream"), 1);
}

TEST_F(ClientRetryTest, AddsToTheDelayAtRandom) {
  RecordWaits();
  FakeFaults faults;
  faults.over_quota_calls = 20;
  faults.told_delay = absl::Seconds(1);
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->GetArchive("web"));
  const std::vector<absl::Duration> waits = Waits();
  EXPECT_EQ(waits.size(), 20U);
  EXPECT_THAT(waits, Each(AllOf(Ge(absl::Seconds(1)), Le(absl::Seconds(1.2)))));
  EXPECT_NE(waits.front(), waits.back());
}

TEST_F(ClientRetryTest, BoundsDelays) {
  options_.deadline = absl::InfiniteDuration();
  options_.retry_backoff = absl::Milliseconds(100);
  RecordWaits();
  FakeFaults faults;
  faults.opening_calls = 30;
  faults.told_delay = absl::ZeroDuration();
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->GetArchive("web"));
  std::vector<absl::Duration> waits = Waits();
  ASSERT_EQ(waits.size(), 30U);
  EXPECT_GE(waits.front(), absl::Milliseconds(10));
  EXPECT_GE(waits.back(), absl::Milliseconds(200));
  faults.opening_calls = 1;
  // As a server may mean it: longer than any process runs.
  faults.told_delay = absl::Hours(24 * 365 * 200);
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->GetArchive("web"));
  waits = Waits();
  EXPECT_GE(waits.back(), absl::Seconds(30));
  EXPECT_LE(waits.back(), absl::Seconds(36));
}

TEST_F(ClientRetryTest, FailsAtOnceIfTheProgramDoesNotWait) {
  options_.told_wait = [](absl::Duration) { return false; };
  Connect();
  FakeFaults faults;
  faults.opening_calls = -1;
  server_->SetFaults(faults);
  EXPECT_THAT(
      client_->GetArchive("web"),
      FailsWith(absl::StatusCode::kUnavailable, "the archive is being opened"));
  EXPECT_EQ(server_->CallCount("GetArchive"), 1);
}

TEST_F(ClientRetryTest, CountsAttemptsForProxies) {
  FakeFaults faults;
  faults.unavailable_calls = 2;
  faults.opening_calls = 1;
  faults.over_quota_calls = 1;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->Read("web", DocumentKey::Ordinal(1)));
  // The refusals by quota and opening come first, and are not counted.
  EXPECT_THAT(server_->Attempts(),
              ElementsAre("Read", "Read", "Read", "Read 1", "Read 2"));
}

TEST_F(ClientRetryTest, CountsAttemptsOfStreamsFromTheLastMessage) {
  QUIRE_ASSERT_OK(client_->GetLimits("web"));
  FakeFaults faults;
  faults.broken_streams = 2;
  faults.messages_before_break = 2;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(ScanAll());
  EXPECT_THAT(server_->Attempts(), ElementsAre("ListArchives", "GetArchive",
                                               "Scan", "Scan 1", "Scan 1"));
  faults = {};
  faults.unavailable_calls = 2;
  faults.opening_calls = 1;  // Not counted.
  for (const auto& call : std::vector<std::function<absl::Status()>>{
           [this] { return StreamSome(); }, [this] { return ReadInBatch(); },
           [this] { return FetchDictionary(); }}) {
    server_->SetFaults(faults);
    const size_t before = server_->Attempts().size();
    QUIRE_EXPECT_OK(call());
    const std::vector<std::string> attempts = server_->Attempts();
    ASSERT_EQ(attempts.size(), before + 4);
    EXPECT_FALSE(absl::StrContains(attempts[before], ' '));
    EXPECT_FALSE(absl::StrContains(attempts[before + 1], ' '));
    EXPECT_TRUE(absl::EndsWith(attempts[before + 2], " 1"));
    EXPECT_TRUE(absl::EndsWith(attempts[before + 3], " 2"));
  }
}

}  // namespace
}  // namespace quire
