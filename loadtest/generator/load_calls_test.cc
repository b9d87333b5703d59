// SPDX-License-Identifier: Apache-2.0
//
// Tests each kind of call separately: its methods, its records, and that it
// ends once. load_modes_test.cc tests them in runs.
#include "loadtest/generator/load_calls.h"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"

#include "client/quire/testing/fake_server.h"
#include "codecs/base/mutex.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr size_t kCallDocuments = 20;
constexpr uint64_t kCallSizeMax = 2'000;

// Counts ended calls.
class Ends {
 public:
  LoadCallDone Expect() {
    return [this] {
      MutexLock lock(&mutex_);
      ++count_;
      changed_.NotifyAll();
    };
  }

  void WaitFor(int count) {
    MutexLock lock(&mutex_);
    while (count_ < count) {
      changed_.Wait(&mutex_);
    }
  }

  int count() const {
    MutexLock lock(&mutex_);
    return count_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// An archive of documents of 1 to 1,500 bytes, the last of 3,500: more than one
// Read or item of a batch may have.
class LoadCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(20261122);
    FakeArchive archive;
    for (size_t i = 0; i < kCallDocuments; ++i) {
      FakeDocument document;
      document.id = absl::StrCat("document/", i);
      document.text.resize(i + 1 == kCallDocuments ? 3'500
                                                   : 1 + random() % 1'500);
      for (char& c : document.text) {
        c = static_cast<char>(random());
      }
      size_bytes_ += document.text.size();
      archive.documents.push_back(std::move(document));
    }
    documents_ = archive.documents;
    server_ = FakeServer::Start({.read_size_bytes_max = kCallSizeMax},
                                {{"a", archive}});
    ASSERT_NE(server_, nullptr);
    options_.archive = "a";
    Begin();
  }

  // Starts another run, with its own figures.
  void Begin() {
    load_ = std::make_unique<LoadContext>();
    load_->options = options_;
    for (int i = 0; i < 2; ++i) {
      load_->stubs.push_back(v1::Archive::NewStub(grpc::CreateChannel(
          server_->address(), grpc::InsecureChannelCredentials())));
    }
    targets_ = std::make_unique<LoadTargets>(options_, nullptr, size_bytes_,
                                             documents_.size());
    load_->targets = targets_.get();
    load_->archive_size_bytes = size_bytes_;
    load_->limits.set_read_size_bytes_max(kCallSizeMax);
    load_->limits.set_batch_message_items_max(100);
    load_->started = std::chrono::steady_clock::now();
    load_->recorder.BeginWindow(0);
  }

  LoadReport Report() { return load_->recorder.Finish(load_->NowNs()); }

  LoadReport Read(const LoadTarget& target) {
    Begin();
    Ends ends;
    StartLoadRead(*load_, {.target = target, .done = ends.Expect()});
    ends.WaitFor(1);
    return Report();
  }

  LoadReport Batch(uint64_t first_index, uint64_t count) {
    Begin();
    Ends ends;
    StartLoadBatch(*load_, first_index, count, {.done = ends.Expect()});
    ends.WaitFor(1);
    return Report();
  }

  uint64_t size_bytes_ = 0;
  std::vector<FakeDocument> documents_;
  std::unique_ptr<FakeServer> server_;
  LoadOptions options_;
  std::unique_ptr<LoadTargets> targets_;
  std::unique_ptr<LoadContext> load_;
};

TEST_F(LoadCallsTest, ReadsARange) {
  const LoadReport report = Read({.place = TextSpan{100, 700}});
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.text_bytes, 700u);
  EXPECT_EQ(report.wire_bytes, 700u);
  EXPECT_GT(report.message_bytes, 700u);
  EXPECT_EQ(report.latency.count(), 1u);
  EXPECT_EQ(server_->CallCount("Read"), 1);
  EXPECT_EQ(server_->CallCount("ReadStream"), 0);
}

TEST_F(LoadCallsTest, StreamsWhatIsKnownToBeLarge) {
  EXPECT_EQ(Read({.place = TextSpan{0, kCallSizeMax}}).right_count, 1u);
  EXPECT_EQ(server_->CallCount("ReadStream"), 0);
  const LoadReport report = Read({.place = TextSpan{0, kCallSizeMax + 1}});
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.text_bytes, kCallSizeMax + 1);
  EXPECT_EQ(server_->CallCount("Read"), 1);
  EXPECT_EQ(server_->CallCount("ReadStream"), 1);
}

TEST_F(LoadCallsTest, StreamsWhatTurnsOutToBeLarge) {
  const LoadReport report = Read({.ordinal = kCallDocuments - 1});
  EXPECT_EQ(report.request_count, 1u);
  EXPECT_EQ(report.right_count, 1u);
  EXPECT_EQ(report.text_bytes, 3'500u);
  EXPECT_EQ(report.retry_count, 0u);
  EXPECT_EQ(server_->CallCount("Read"), 1);
  EXPECT_EQ(server_->CallCount("ReadStream"), 1);
}

TEST_F(LoadCallsTest, RecordsTheServersReason) {
  const LoadReport report = Read({.id = absl::string_view("nobody")});
  EXPECT_EQ(report.error_count(), 1u);
  EXPECT_THAT(report.errors, ElementsAre(Key("NOT_FOUND DOCUMENT_NOT_FOUND")));
  EXPECT_EQ(report.latency.count(), 0u);
}

TEST_F(LoadCallsTest, GivesUpABusyServerWhenItsTimeIsOver) {
  FakeFaults faults;
  faults.busy_calls = -1;
  server_->SetFaults(faults);
  Begin();
  // Due as long ago as the limit of a call.
  load_->started -= load_->options.deadline;
  Ends ends;
  StartLoadRead(*load_,
                {.target = {.place = TextSpan{0, 10}}, .done = ends.Expect()});
  ends.WaitFor(1);
  const LoadReport report = Report();
  EXPECT_EQ(report.retry_count, 0u);
  EXPECT_THAT(report.errors,
              ElementsAre(Key("RESOURCE_EXHAUSTED SERVER_BUSY")));
  EXPECT_EQ(report.lower_bound_count, 1u);
}

TEST_F(LoadCallsTest, ABatchIsSentWhateverTheLimitOfItsMessages) {
  options_.range_size_bytes = 10;
  Begin();
  load_->limits.set_batch_message_items_max(0);
  Ends ends;
  StartLoadBatch(*load_, 0, 3, {.done = ends.Expect()});
  ends.WaitFor(1);
  EXPECT_EQ(Report().request_count, 3u);
  EXPECT_EQ(server_->LargestBatchMessage(), 1);
}

// Each kind of call alone, so that no other call receives anything.
TEST_F(LoadCallsTest, GivesUpAServerThatIsSilent) {
  FakeFaults faults;
  faults.stalled_calls = -1;
  server_->SetFaults(faults);
  options_.deadline = std::chrono::milliseconds(20);
  options_.range_size_bytes = 500;
  for (int kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    Begin();
    Ends ends;
    switch (kind) {
      case 0:
        StartLoadRead(*load_, {.target = {.place = TextSpan{0, 10}},
                               .done = ends.Expect()});
        break;
      case 1:
        StartLoadRead(*load_, {.target = {.place = TextSpan{0, 3'000}},
                               .done = ends.Expect()});
        break;
      case 2:
        StartLoadBatch(*load_, 0, 30, {.done = ends.Expect()});
        break;
      default:
        StartLoadScan(*load_, 0, 1, {.done = ends.Expect()});
        break;
    }
    if (kind != 0) {
      // As a run does at every tick, as if the time were over.
      load_->open_calls.CancelSilent(0);
      EXPECT_EQ(ends.count(), 0);
      load_->open_calls.CancelSilent(load_->NowNs());
    }
    ends.WaitFor(1);
    const LoadReport report = Report();
    EXPECT_THAT(report.errors, ElementsAre(Key("DEADLINE_EXCEEDED")));
    EXPECT_EQ(report.request_count, kind == 2 ? 30u : 1u);
    EXPECT_EQ(report.lower_bound_count, report.request_count);
    EXPECT_EQ(report.unanswered_count, 0u);
    EXPECT_TRUE(load_->is_silent);
  }
  server_->Release();
}

TEST_F(LoadCallsTest, OneSilentCallAmongOthersIsNoSilentServer) {
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  Begin();
  Ends ends;
  // Both are answered; the third message comes after both began.
  StartLoadRead(
      *load_, {.target = {.place = TextSpan{0, 3'000}}, .done = ends.Expect()});
  StartLoadRead(*load_, {.target = {.place = TextSpan{0, 10}},
                         .index = 1,
                         .done = ends.Expect()});
  ends.WaitFor(1);
  StartLoadRead(*load_, {.target = {.place = TextSpan{0, 10}},
                         .index = 2,
                         .done = ends.Expect()});
  ends.WaitFor(2);
  load_->open_calls.CancelSilent(load_->NowNs());
  ends.WaitFor(3);
  EXPECT_THAT(Report().errors, ElementsAre(Key("DEADLINE_EXCEEDED")));
  EXPECT_FALSE(load_->is_silent);
  server_->Release();
}

TEST_F(LoadCallsTest, ABatchAnswersAllOfItsRequests) {
  options_.what = LoadKind::kDocuments;
  for (const uint64_t count : std::initializer_list<uint64_t>{1, 99, 350}) {
    uint64_t text_bytes = 0;
    Begin();
    for (uint64_t i = 40; i < 40 + count; ++i) {
      text_bytes += documents_[*targets_->At(i).ordinal].text.size();
    }
    const LoadReport report = Batch(40, count);
    EXPECT_EQ(report.request_count, count);
    EXPECT_EQ(report.right_count, count);
    EXPECT_EQ(report.text_bytes, text_bytes);
  }
  EXPECT_EQ(server_->CallCount("BatchRead"), 3);
  // For the largest document, whose size only the server knows.
  EXPECT_GT(server_->CallCount("ReadStream"), 0);
  EXPECT_EQ(server_->CallCount("Read"), server_->CallCount("ReadStream"));
}

TEST_F(LoadCallsTest, ABatchOfLargeRangesNeedsNoBatch) {
  options_.range_size_bytes = kCallSizeMax + 1;
  const LoadReport report = Batch(0, 5);
  EXPECT_EQ(report.right_count, 5u);
  EXPECT_EQ(report.text_bytes, 5 * (kCallSizeMax + 1));
  EXPECT_EQ(server_->CallCount("BatchRead"), 0);
  EXPECT_EQ(server_->CallCount("ReadStream"), 5);
}

TEST_F(LoadCallsTest, PartsOfAScanAreAllOfTheText) {
  for (const uint64_t parts : std::initializer_list<uint64_t>{1, 2, 7}) {
    uint64_t text_bytes = 0;
    for (uint64_t part = 0; part < parts; ++part) {
      Begin();
      Ends ends;
      StartLoadScan(*load_, part, parts,
                    {.index = part, .done = ends.Expect()});
      ends.WaitFor(1);
      const LoadReport report = Report();
      EXPECT_EQ(report.right_count, report.request_count);
      EXPECT_GE(report.text_bytes, size_bytes_ / parts);
      EXPECT_LE(report.text_bytes, size_bytes_ / parts + 1);
      text_bytes += report.text_bytes;
    }
    EXPECT_EQ(text_bytes, size_bytes_);
  }
}

TEST_F(LoadCallsTest, WhatTheRunsEndCancelsIsNoError) {
  FakeFaults faults;
  faults.stalled_calls = -1;
  server_->SetFaults(faults);
  options_.range_size_bytes = 500;
  Begin();
  Ends ends;
  StartLoadRead(*load_,
                {.target = {.place = TextSpan{0, 10}}, .done = ends.Expect()});
  StartLoadRead(*load_, {.target = {.place = TextSpan{0, 3'000}},
                         .index = 1,
                         .done = ends.Expect()});
  StartLoadBatch(*load_, 0, 30, {.index = 2, .done = ends.Expect()});
  StartLoadScan(*load_, 0, 1, {.index = 3, .done = ends.Expect()});
  EXPECT_EQ(ends.count(), 0);
  EXPECT_FALSE(load_->open_calls.is_cancelled());
  load_->open_calls.CancelAll();
  // And a later one.
  StartLoadRead(*load_, {.target = {.place = TextSpan{5, 10}},
                         .index = 4,
                         .done = ends.Expect()});
  ends.WaitFor(5);
  EXPECT_TRUE(load_->open_calls.is_cancelled());
  const LoadReport report = Report();
  EXPECT_EQ(report.request_count, 0u);
  EXPECT_EQ(report.unanswered_count, 1u + 1 + 30 + 1 + 1);
  EXPECT_EQ(report.lower_bound_count, report.unanswered_count);
  EXPECT_EQ(report.latency.count(), report.unanswered_count);
  EXPECT_TRUE(report.faults.empty());
  server_->Release();
  EXPECT_EQ(ends.count(), 5);
}

TEST_F(LoadCallsTest, AnAnswerThatIsWrongIsNoError) {
  FakeFaults faults;
  faults.wrong_checksums = -1;
  server_->SetFaults(faults);
  const LoadReport report = Read({.place = TextSpan{0, 10}});
  EXPECT_EQ(report.wrong_count, 1u);
  EXPECT_EQ(report.error_count(), 0u);
  EXPECT_THAT(report.faults, ElementsAre(HasSubstr("checksum")));
}

}  // namespace
}  // namespace quire
