// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/logging/call_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "testing/base/status_matchers.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CallLogTest : public ::testing::Test {
 protected:
  CallLogTest() {
    std::string directory = ::testing::TempDir() + "/call_log_XXXXXX";
    directory_ = mkdtemp(directory.data());
  }

  ~CallLogTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/access.log"; }

  CallLogOptions Options() {
    CallLogOptions options;
    options.path = path();
    options.log = [this](LogLevel level, const std::string& text) {
      MutexLock lock(&mutex_);
      said_.push_back(absl::StrCat(static_cast<int>(level), " ", text));
    };
    return options;
  }

  std::vector<std::string> said() {
    MutexLock lock(&mutex_);
    return said_;
  }

  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::vector<nlohmann::json> Lines(const std::string& path) {
    std::vector<nlohmann::json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

 private:
  std::string directory_;
  Mutex mutex_;
  std::vector<std::string> said_ ABSL_GUARDED_BY(mutex_);
};

CallRecord Record() {
  return {.time = absl::FromUnixMicros(1'800'000'000'000'042),
          .identity = "token:reader",
          .address = "ipv4:10.0.0.1",
          .method = "Read",
          .archive = "docs",
          .document = "a/b",
          .size_bytes = 1234,
          .code = "OK",
          .duration = absl::Microseconds(250),
          .read_duration = absl::Microseconds(200),
          .send_duration = absl::Microseconds(30),
          .trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
          .parent_id = "00f067aa0ba902b7"};
}

// Writes until `pipe`, the write end of the log's, is full, and lines wait that
// the writer tries to write.
void BlockWriter(CallLog& log, int pipe) {
  pollfd writable = {.fd = pipe, .events = POLLOUT, .revents = 0};
  while (poll(&writable, 1, 0) != 0) {
    log.Write(Record());
  }
  while (log.dropped_count() < 1000) {
    log.Write(Record());
  }
  // The writer takes the full queue, and blocks with the mutex locked. If it is
  // late, the test proves less and still passes.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// Expects Reopen() to succeed while no one reads from the pipe, and returns how
// many lines it dropped; closes `reader`.
uint64_t ReopenWithinAMinute(CallLog& log, int reader) {
  const uint64_t dropped_count = log.dropped_count();
  std::future<absl::Status> reopened =
      std::async(std::launch::async, [&] { return log.Reopen(); });
  const bool is_done =
      reopened.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  const uint64_t dropped_by_reopen = log.dropped_count() - dropped_count;
  // Otherwise it waits for a reader.
  close(reader);
  EXPECT_TRUE(is_done);
  QUIRE_EXPECT_OK(reopened.get());
  return dropped_by_reopen;
}

TEST_F(CallLogTest, WritesALineForEachCall) {
  CallLogOptions options = Options();
  options.documents = CallLogOptions::Documents::kPlain;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
    log->Write(Record());
    CallRecord failed = {.time = absl::FromUnixSeconds(1'800'000'001),
                         .method = "GetArchive",
                         .code = "NOT_FOUND",
                         .reason = "ARCHIVE_NOT_FOUND"};
    log->Write(failed);
    EXPECT_EQ(log->dropped_count(), 0U);
  }
  const std::vector<nlohmann::json> lines = Lines(path());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], nlohmann::json::parse(R"({
      "time": "2027-01-15T08:00:00.000042Z", "identity": "token:reader",
      "address": "ipv4:10.0.0.1", "method": "Read", "archive": "docs",
      "document": "a/b", "bytes": 1234, "code": "OK", "duration_us": 250,
      "read_us": 200, "send_us": 30,
      "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
      "parent_id": "00f067aa0ba902b7"})"));
  EXPECT_EQ(lines[1], nlohmann::json::parse(R"({
      "time": "2027-01-15T08:00:01.000000Z", "method": "GetArchive",
      "bytes": 0, "code": "NOT_FOUND", "reason": "ARCHIVE_NOT_FOUND",
      "duration_us": 0, "send_us": 0})"));
}

TEST_F(CallLogTest, NoBytesBreakALine) {
  CallLogOptions options = Options();
  options.documents = CallLogOptions::Documents::kPlain;
  std::vector<std::string> documents = {
      "\"",           "\\",
      "\n{}",         "\xff\xfe",
      "\x1b[2J",      std::string("a\0b", 3),
      "na\xc3\xafve", std::string(100'000, 'x')};
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
    for (const std::string& document : documents) {
      CallRecord record = Record();
      record.document = document;
      record.archive = document;
      log->Write(record);
    }
  }
  const std::vector<nlohmann::json> lines = Lines(path());
  ASSERT_EQ(lines.size(), documents.size());
  EXPECT_EQ(lines[0]["document"], "\"");
  EXPECT_EQ(lines[2]["document"], "\n{}");
  EXPECT_EQ(lines[6]["document"], "na\xc3\xafve");
  EXPECT_EQ(lines[7]["document"], std::string(1024, 'x'));
  EXPECT_EQ(lines[7]["archive"], documents[7]);
}

TEST_F(CallLogTest, DocumentsAreHashedOrLeftOut) {
  std::vector<std::string> hashes;
  for (int start = 0; start < 2; ++start) {
    std::filesystem::remove(path());
    {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(Options()));
      for (const char* document : {"a", "b", "a"}) {
        CallRecord record = Record();
        record.document = document;
        log->Write(record);
      }
    }
    const std::vector<nlohmann::json> lines = Lines(path());
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_FALSE(lines[0].contains("document"));
    EXPECT_EQ(lines[0]["document_hash"], lines[2]["document_hash"]);
    EXPECT_NE(lines[0]["document_hash"], lines[1]["document_hash"]);
    hashes.push_back(lines[0]["document_hash"]);
    EXPECT_EQ(hashes.back().size(), 16U);
  }
  // Another key.
  EXPECT_NE(hashes[0], hashes[1]);
  // Servers with the same key file agree.
  for (int start = 0; start < 2; ++start) {
    std::filesystem::remove(path());
    CallLogOptions options = Options();
    options.hash_key_path = path() + ".key";
    std::ofstream(options.hash_key_path) << "0123456789abcdef";
    {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
      CallRecord record = Record();
      record.document = "a";
      log->Write(record);
    }
    // First 64 bits of SHA-256 of key and id.
    EXPECT_EQ(Lines(path())[0]["document_hash"], "68ac6eb3c7c11822");
    std::ofstream(options.hash_key_path) << "short";
    EXPECT_THAT(CallLog::Open(options),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          ::testing::HasSubstr("16 bytes or more, got 5")));
    std::filesystem::remove(options.hash_key_path);
  }
  CallLogOptions options = Options();
  options.documents = CallLogOptions::Documents::kNone;
  std::filesystem::remove(path());
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
    EXPECT_FALSE(log->wants_documents());
    log->Write(Record());
  }
  EXPECT_FALSE(Lines(path())[0].contains("document_hash"));
  EXPECT_FALSE(Lines(path())[0].contains("document"));
}

TEST_F(CallLogTest, GoesOnInANewFile) {
  QUIRE_ASSERT_OK_AND_ASSIGN(auto log, CallLog::Open(Options()));
  log->Write(Record());
  // Wait for the first line: lines after Reopen() go to the new file.
  while (Lines(path()).empty()) {
    std::this_thread::yield();
  }
  std::filesystem::rename(path(), path() + ".1");
  QUIRE_ASSERT_OK(log->Reopen());
  log->Write(Record());
  log->Write(Record());
  log.reset();
  EXPECT_EQ(Lines(path() + ".1").size(), 1U);
  EXPECT_EQ(Lines(path()).size(), 2U);
}

TEST_F(CallLogTest, KeepsTheOldFileWhereThereCanBeNoNewOne) {
  QUIRE_ASSERT_OK_AND_ASSIGN(auto log, CallLog::Open(Options()));
  std::filesystem::rename(path(), path() + ".1");
  std::filesystem::create_directory(path());
  EXPECT_THAT(
      log->Reopen(),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                HasSubstr("access.log: cannot open as the access log")));
  log->Write(Record());
  log.reset();
  EXPECT_EQ(Lines(path() + ".1").size(), 1U);
}

TEST_F(CallLogTest, ReopensStandardOutputThatNoOneReads) {
  const auto signal_before = signal(SIGPIPE, SIG_IGN);
  int ends[2] = {};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  ASSERT_EQ(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
  CallLogOptions options = Options();
  options.path = "-";
  options.queue_size_bytes_max = 1 << 16;
  auto log = CallLog::Open(options);
  ASSERT_EQ(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
  close(before);
  QUIRE_ASSERT_OK(log.status());
  BlockWriter(**log, ends[1]);
  EXPECT_EQ(ReopenWithinAMinute(**log, ends[0]), 0U);
  log->reset();
  close(ends[1]);
  signal(SIGPIPE, signal_before);
}

TEST_F(CallLogTest, ReopensAPipeThatNoOneReads) {
  const auto signal_before = signal(SIGPIPE, SIG_IGN);
  for (const bool is_replaced : {false, true}) {
    std::filesystem::remove(path());
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    const int reader = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader, 0);
    const int writer = open(path().c_str(), O_WRONLY | O_CLOEXEC);
    CallLogOptions options = Options();
    options.queue_size_bytes_max = 1 << 16;
    QUIRE_ASSERT_OK_AND_ASSIGN(auto log, CallLog::Open(options));
    BlockWriter(*log, writer);
    if (is_replaced) {
      std::filesystem::remove(path());
    }
    const uint64_t dropped_count = ReopenWithinAMinute(*log, reader);
    EXPECT_EQ(dropped_count > 0, is_replaced);
    log->Write(Record());
    log.reset();
    if (is_replaced) {
      EXPECT_FALSE(Lines(path()).empty());
    }
    close(writer);
  }
  signal(SIGPIPE, signal_before);
}

TEST_F(CallLogTest, KeepsAPipeThatHasNoReaderNow) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const int reader = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  QUIRE_ASSERT_OK_AND_ASSIGN(auto log, CallLog::Open(Options()));
  close(reader);
  EXPECT_THAT(log->Reopen(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("No such device or address")));
}

TEST_F(CallLogTest, DropsLinesWhereNoOneReadsThem) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const int reader = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  CallLogOptions options = Options();
  options.queue_size_bytes_max = 1 << 16;
  uint64_t written = 0;
  uint64_t dropped = 0;
  std::string lines;
  std::thread drain;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
    // The pipe fills, then the queue.
    while (log->dropped_count() < 10) {
      log->Write(Record());
      ++written;
    }
    ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
    drain = std::thread([&] {
      char buffer[4096];
      for (ssize_t size; (size = read(reader, buffer, sizeof(buffer))) > 0;) {
        lines.append(buffer, static_cast<size_t>(size));
      }
    });
    // Until there is space again; lines dropped meanwhile are counted.
    for (uint64_t before = log->dropped_count();;
         before = log->dropped_count()) {
      log->Write(Record());
      ++written;
      if (log->dropped_count() == before) {
        break;
      }
    }
    dropped = log->dropped_count();
  }
  drain.join();
  close(reader);
  uint64_t count = 0;
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(nlohmann::json::accept(line.begin(), line.end())) << line;
    ++count;
  }
  EXPECT_EQ(count + dropped, written);
}

TEST_F(CallLogTest, SaysThatTheDiskIsFull) {
  CallLogOptions options = Options();
  options.path = "/dev/full";
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(options));
    for (uint64_t i = 1; i <= 3; ++i) {
      log->Write(Record());
      while (log->dropped_count() < i) {
        std::this_thread::yield();
      }
    }
  }
  EXPECT_THAT(said(),
              ElementsAre("2 /dev/full: cannot write: No space left on device; "
                          "access log lines are dropped until this is fixed"));
}

// A limit on file sizes stands for a disk that is full for a while.
TEST_F(CallLogTest, BeginsANewLineAfterOneThatIsTorn) {
  const auto signal_before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit_before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit_before), 0);
  QUIRE_ASSERT_OK_AND_ASSIGN(auto log, CallLog::Open(Options()));
  log->Write(Record());
  while (Lines(path()).empty()) {
    std::this_thread::yield();
  }
  const std::string line = Content(path());
  rlimit limit = limit_before;
  limit.rlim_cur = line.size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  log->Write(Record());
  while (log->dropped_count() < 1) {
    std::this_thread::yield();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit_before), 0);
  log->Write(Record());
  log.reset();
  signal(SIGXFSZ, signal_before);
  EXPECT_EQ(Content(path()),
            absl::StrCat(line, line.substr(0, 10), "\n", line));
}

TEST_F(CallLogTest, RefusesAPathThatCannotBe) {
  CallLogOptions options = Options();
  options.path += "/below/a/file/that/is/not";
  EXPECT_THAT(CallLog::Open(options).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("cannot open as the access log")));
}

TEST_F(CallLogTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 500;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto log, CallLog::Open(Options()));
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&log] {
        for (int call = 0; call < kCalls; ++call) {
          log->Write(Record());
        }
      });
    }
    threads.clear();
    EXPECT_EQ(log->dropped_count(), 0U);
  }
  EXPECT_EQ(Lines(path()).size(), size_t{kThreads} * kCalls);
}

}  // namespace
}  // namespace quire
