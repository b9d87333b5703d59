// SPDX-License-Identifier: Apache-2.0
//
// Tests every mode of a load run against a server with scripted faults.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <initializer_list>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"

#include "client/quire/testing/fake_server.h"
#include "loadtest/generator/load_run.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::PrintToString;

// One in ten of these documents is larger than the server's limit on a Read.
constexpr size_t kModeDocuments = 60;
constexpr uint64_t kModeSizeMax = 4000;

class LoadModesTest : public ::testing::Test {
 protected:
  LoadModesTest() {
    std::mt19937 random(20261122);
    FakeArchive archive;
    std::ofstream index(index_path_);
    for (size_t i = 0; i < kModeDocuments; ++i) {
      const size_t size = 1 + random() % 2000 + (i % 10 == 0 ? 5000 : 0);
      FakeDocument document;
      document.id = absl::StrCat("document/", i);
      for (size_t byte = 0; byte < size; ++byte) {
        document.text.push_back(static_cast<char>(random()));
      }
      index << text_.size() << "\t" << size << "\t" << document.id << "\n";
      text_ += document.text;
      archive.documents.push_back(std::move(document));
    }
    std::ofstream(text_path_, std::ios::binary) << text_;
    index.close();
    server_ = FakeServer::Start({.read_size_bytes_max = kModeSizeMax},
                                {{"a", archive}});
    options_.archive = "a";
    options_.request_count = 300;
    options_.range_size_bytes = 2000;
    options_.in_flight = 8;
    options_.batch_size = 40;
  }

  void SetUp() override {
    ASSERT_NE(server_, nullptr);
    inputs_.channels = {
        grpc::CreateChannel(server_->address(),
                            grpc::InsecureChannelCredentials()),
        grpc::CreateChannel(server_->address(),
                            grpc::InsecureChannelCredentials())};
    QUIRE_ASSERT_OK_AND_ASSIGN(source_,
                               SourceText::Open(text_path_, index_path_));
    inputs_.source = source_.get();
  }

  void TearDown() override {
    unlink(text_path_.c_str());
    unlink(index_path_.c_str());
  }

  LoadReport Run() {
    absl::StatusOr<LoadReport> report = RunLoad(inputs_, options_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : LoadReport();
  }

  // Stalls `call_count` calls of the next run, except the one that describes
  // the archive.
  void StallInRun(int call_count) {
    inputs_.on_window = [this, call_count] {
      faults_ = {};
      faults_.stalled_calls = call_count;
      server_->SetFaults(faults_);
    };
  }

  // Waits until `count` calls have reached the server.
  void AwaitCalls(const char* method, int count) const {
    while (server_->CallCount(method) < count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void ExpectAllRight(const LoadReport& report, uint64_t count) {
    EXPECT_EQ(report.request_count, count);
    EXPECT_EQ(report.right_count, count) << PrintToString(report.faults);
    EXPECT_EQ(report.latency.count(), count);
    EXPECT_EQ(report.unanswered_count, 0u);
    EXPECT_EQ(report.lower_bound_count, 0u);
    EXPECT_TRUE(report.is_good());
  }

  const std::string stem_ =
      absl::StrCat(::testing::TempDir(), "/load_modes_test.", getpid());
  const std::string text_path_ = stem_ + ".raw";
  const std::string index_path_ = stem_ + ".tsv";
  std::string text_;
  std::unique_ptr<SourceText> source_;
  std::unique_ptr<FakeServer> server_;
  LoadInputs inputs_;
  LoadOptions options_;
  FakeFaults faults_;
};

TEST_F(LoadModesTest, BatchesReadWhatSingleCallsRead) {
  for (const LoadKind what : {LoadKind::kRanges, LoadKind::kDocuments}) {
    options_.what = what;
    options_.mode = LoadMode::kRandom;
    const LoadReport random = Run();
    ExpectAllRight(random, 300);
    options_.mode = LoadMode::kBatch;
    for (const uint32_t in_flight : std::initializer_list<uint32_t>{1, 3}) {
      options_.in_flight = in_flight;
      const LoadReport batch = Run();
      ExpectAllRight(batch, 300);
      EXPECT_EQ(batch.text_bytes, random.text_bytes);
      EXPECT_EQ(batch.wire_bytes, random.wire_bytes);
    }
  }
  // 300 in batches of 40, four times.
  EXPECT_EQ(server_->CallCount("BatchRead"), 4 * 8);
}

TEST_F(LoadModesTest, ScansTheWholeTextInParts) {
  options_.mode = LoadMode::kFull;
  options_.duration.reset();
  for (const uint32_t in_flight : std::initializer_list<uint32_t>{1, 3, 7}) {
    options_.in_flight = in_flight;
    const LoadReport report = Run();
    EXPECT_EQ(report.text_bytes, text_.size());
    ExpectAllRight(report, report.right_count);
    EXPECT_GE(report.right_count, text_.size() / 1000);
  }
  EXPECT_EQ(server_->CallCount("Scan"), 11);
}

TEST_F(LoadModesTest, ReadsDocumentsByNumberWithoutASource) {
  inputs_.source = nullptr;
  options_.what = LoadKind::kDocuments;
  for (const LoadMode mode : {LoadMode::kRandom, LoadMode::kBatch}) {
    options_.mode = mode;
    const LoadReport report = Run();
    ExpectAllRight(report, 300);
    EXPECT_FALSE(report.is_compared);
  }
  EXPECT_GT(server_->CallCount("ReadStream"), 0);
}

TEST_F(LoadModesTest, LeavesOutTheWarmUp) {
  options_.warmup = std::chrono::milliseconds(20);
  int window_count = 0;
  inputs_.on_window = [&window_count] { ++window_count; };
  const LoadReport report = Run();
  ExpectAllRight(report, 300);
  EXPECT_GT(report.warmup_count, 0u);
  EXPECT_EQ(report.started_count, report.warmup_count + 300);
  EXPECT_EQ(window_count, 1);
  options_.mode = LoadMode::kBatch;
  options_.in_flight = 1;
  const LoadReport batch = Run();
  ExpectAllRight(batch, 300);
  // Whole batches.
  EXPECT_GT(batch.warmup_count, 0u);
  EXPECT_EQ(batch.warmup_count % options_.batch_size, 0u);
}

// The server stalls for at least 300 ms while 200 requests per second are due.
// With two calls in flight at most, all others must be held, and their latency
// must include the stall.
TEST_F(LoadModesTest, AnOpenLoopChargesAStallToAllThatWereDue) {
  StallInRun(2);
  options_.requests_per_second = 200;
  options_.request_count = 40;
  options_.in_flight = 2;
  std::thread release([this] {
    // However late this wakes, the last one is due 170 ms after the start.
    AwaitCalls("Read", 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server_->Release();
  });
  const LoadReport report = Run();
  release.join();
  ExpectAllRight(report, 40);
  EXPECT_GE(report.held_count, 30u);
  // Answered after the stall; a late start only makes it longer.
  EXPECT_GE(report.latency.PercentileUs(1), 50'000u);
  EXPECT_GE(report.latency.max_us(), 200'000u);
}

TEST_F(LoadModesTest, CutsStreamsWhenItsTimeIsOverAndWhenInterrupted) {
  options_.request_count.reset();
  std::atomic<bool> interrupt = false;
  inputs_.interrupt = &interrupt;
  for (const LoadMode mode :
       {LoadMode::kBatch, LoadMode::kFull, LoadMode::kRandom}) {
    options_.mode = mode;
    const bool is_interrupted = mode == LoadMode::kRandom;
    StallInRun(-1);
    options_.duration = std::chrono::milliseconds(is_interrupted ? 60'000 : 30);
    // Set before the run it would start nothing, so wait for a call.
    interrupt = false;
    std::thread later;
    if (is_interrupted) {
      later = std::thread([this, &interrupt] {
        AwaitCalls("Read", 1);
        interrupt = true;
      });
    }
    const LoadReport report = Run();
    if (later.joinable()) {
      later.join();
    }
    server_->SetFaults({});
    EXPECT_EQ(report.request_count, 0u) << PrintToString(report.faults);
    EXPECT_EQ(report.end,
              is_interrupted ? LoadEnd::kInterrupt : LoadEnd::kDuration);
    EXPECT_GT(report.unanswered_count, 0u);
    // All of it was due within the run, and waited to its end.
    EXPECT_EQ(report.lower_bound_count, report.unanswered_count);
    EXPECT_EQ(report.latency.count(), report.unanswered_count);
    EXPECT_FALSE(report.is_good());
    if (!is_interrupted) {
      EXPECT_GE(report.latency.max_us(), 30'000u);
    }
  }
  server_->Release();
}

// No duration, against a server that describes the archive and is silent
// afterwards, in the warm-up or after it.
TEST_F(LoadModesTest, EveryModeEndsAgainstASilentServer) {
  const struct {
    LoadMode mode;
    bool is_warmup;
    uint64_t range_size_bytes;
    uint32_t in_flight;
  } cases[] = {
      {LoadMode::kRandom, false, 100, 8},
      {LoadMode::kRandom, true, 100, 1},
      // By ReadStream.
      {LoadMode::kRandom, false, kModeSizeMax + 1, 8},
      {LoadMode::kRandom, true, kModeSizeMax + 1, 1},
      {LoadMode::kBatch, false, 100, 1},
      {LoadMode::kBatch, true, 100, 1},
      {LoadMode::kFull, false, 100, 8},
  };

  options_.duration.reset();
  options_.deadline = std::chrono::milliseconds(50);
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat("case ", &c - cases));
    options_.mode = c.mode;
    options_.warmup = std::chrono::hours(c.is_warmup ? 1 : 0);
    options_.range_size_bytes = c.range_size_bytes;
    options_.in_flight = c.in_flight;
    options_.request_count = 300;
    if (c.mode == LoadMode::kFull) {
      options_.request_count.reset();
    }
    faults_ = {};
    faults_.calls_before_stall = 1;
    faults_.stalled_calls = -1;
    server_->SetFaults(faults_);
    const LoadReport report = Run();
    EXPECT_EQ(report.end, LoadEnd::kSilence);
    EXPECT_EQ(report.right_count, 0u);
    EXPECT_FALSE(report.is_good());
    EXPECT_EQ(report.error_count(), report.request_count);
    if (c.is_warmup) {
      EXPECT_EQ(report.request_count, 0u);
    }
    // Few of the 300 requests, or of those of the warm-up, were started.
    EXPECT_LE(report.started_count, 80u);
  }
  server_->Release();
}

// Arrivals that are never started wait as long as started ones.
TEST_F(LoadModesTest, AnOpenLoopChargesAStallThatDoesNotEnd) {
  StallInRun(-1);
  options_.requests_per_second = 200;
  options_.request_count.reset();
  options_.duration = std::chrono::milliseconds(100);
  options_.deadline = std::chrono::milliseconds(150);
  options_.in_flight = 2;
  const LoadReport report = Run();
  server_->Release();
  EXPECT_EQ(report.right_count, 0u);
  EXPECT_GT(report.unstarted_count, 10u);
  EXPECT_EQ(
      report.lower_bound_count,
      report.error_count() + report.unanswered_count + report.unstarted_count);
  EXPECT_GE(report.latency.max_us(), 100'000u);
}

TEST_F(LoadModesTest, GivesUpTablesThatDoNotCome) {
  options_.deadline = std::chrono::milliseconds(50);
  FakeDocument document;
  document.id = "one";
  document.text = "text";
  FakeArchive archive;
  archive.documents.push_back(std::move(document));
  archive.has_symbol_table = true;
  archive.dictionary = "a dictionary";
  archive.codec = "rlz";
  server_->Reload({{"a", archive}});
  inputs_.source = nullptr;
  options_.range_size_bytes = 1;
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kFsst, AnswerEncoding::kStored}) {
    options_.encoding = encoding;
    faults_ = {};
    faults_.calls_before_stall = 1;
    faults_.stalled_calls = -1;
    server_->SetFaults(faults_);
    EXPECT_THAT(RunLoad(inputs_, options_),
                HasCode(absl::StatusCode::kDeadlineExceeded));
  }
  server_->Release();
}

TEST_F(LoadModesTest, ABatchSaysWhatItsServerDidWrong) {
  options_.mode = LoadMode::kBatch;
  options_.in_flight = 1;
  faults_ = {};
  faults_.wrong_checksums = 3;
  server_->SetFaults(faults_);
  LoadReport report = Run();
  EXPECT_EQ(report.wrong_count, 3u);
  EXPECT_EQ(report.right_count, 297u);
  EXPECT_THAT(report.faults.at(0), HasSubstr("checksum"));

  faults_ = {};
  faults_.unknown_tags = 1;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_GT(report.wrong_count, 0u);
  EXPECT_EQ(report.request_count, 300u);

  faults_ = {};
  faults_.repeated_results = 1;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_GT(report.wrong_count, 0u);

  faults_ = {};
  faults_.early_ends = 1;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_EQ(report.request_count, 300u);
  EXPECT_GT(report.wrong_count, 0u);
  EXPECT_THAT(report.faults.at(0), HasSubstr("without an answer"));

  faults_ = {};
  faults_.broken_streams = 1;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_EQ(report.request_count, 300u);
  EXPECT_THAT(report.errors, ElementsAre(Key("UNAVAILABLE")));
}

TEST_F(LoadModesTest, AScanSaysWhatItsServerDidWrong) {
  options_.mode = LoadMode::kFull;
  options_.duration.reset();
  options_.in_flight = 1;
  faults_ = {};
  faults_.wrong_ranges = 1;
  server_->SetFaults(faults_);
  LoadReport report = Run();
  EXPECT_EQ(report.wrong_count, 1u);
  EXPECT_THAT(report.faults.at(0), HasSubstr("wrong range"));

  faults_ = {};
  faults_.early_ends = 1;
  faults_.messages_before_break = 5;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_EQ(report.wrong_count, 1u);
  EXPECT_EQ(report.right_count, 5u);
  EXPECT_THAT(report.faults.at(0), HasSubstr("bytes came"));

  faults_ = {};
  faults_.broken_streams = 1;
  faults_.messages_before_break = 5;
  server_->SetFaults(faults_);
  report = Run();
  EXPECT_EQ(report.wrong_count, 0u);
  EXPECT_EQ(report.error_count(), 1u);
  EXPECT_THAT(report.errors, ElementsAre(Key("UNAVAILABLE")));
}

TEST_F(LoadModesTest, RefusesAServerOfALimitOfZero) {
  FakeDocument document;
  document.id = "one";
  document.text = "text";
  FakeArchive archive;
  archive.documents.push_back(std::move(document));
  const std::unique_ptr<FakeServer> zero =
      FakeServer::Start({.batch_message_items_max = 0}, {{"a", archive}});
  ASSERT_NE(zero, nullptr);
  inputs_.channels = {
      grpc::CreateChannel(zero->address(), grpc::InsecureChannelCredentials())};
  inputs_.source = nullptr;
  options_.mode = LoadMode::kBatch;
  EXPECT_THAT(RunLoad(inputs_, options_),
              FailsWith(absl::StatusCode::kInternal,
                        HasSubstr("batch_message_items_max")));
}

TEST_F(LoadModesTest, RefusesASourceOfOtherDocuments) {
  std::ofstream(index_path_, std::ios::app) << "0\t1\tone more\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(source_,
                             SourceText::Open(text_path_, index_path_));
  inputs_.source = source_.get();
  EXPECT_THAT(RunLoad(inputs_, options_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("documents, its source")));
}

}  // namespace
}  // namespace quire
