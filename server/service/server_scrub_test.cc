// SPDX-License-Identifier: GPL-3.0-or-later
//
// A server that scrubs its archives.
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/scrub_state.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ServerScrubTest : public ServerTest {
 protected:
  ServerScrubTest() {
    documents_ = MakeDocuments(60, 1);
    WriteArchive(archive_path(), documents_);
    std::filesystem::create_directory(state_path());
  }

  // Before the lines that it writes.
  ~ServerScrubTest() override { StopServer(); }

  std::string state_path() const { return directory() + "/state"; }

  void Start(uint64_t rate_bytes_per_second = uint64_t{1} << 30) {
    ServerOptions options;
    options.metrics_address = "127.0.0.1:0";
    options.scrub = {.interval = interval_,
                     .state_directory = state_path(),
                     .rate_bytes_per_second = rate_bytes_per_second};
    options.report_damage = [this](const std::string& message) {
      MutexLock lock(&mutex_);
      damages_.push_back(message);
    };
    options.say = [this](LogLevel, const std::string& line) {
      MutexLock lock(&mutex_);
      lines_.push_back(line);
    };
    StartServer(options);
  }

  double Metric(const std::string& name) {
    const std::string page = HttpGet(server().metrics_address(), "/metrics");
    const std::string start = absl::StrCat("\n", name, "{archive=\"docs\"} ");
    const size_t found = page.find(start);
    double value = -1;
    if (found != std::string::npos) {
      const size_t begin = found + start.size();
      EXPECT_TRUE(absl::SimpleAtod(
          page.substr(begin, page.find('\n', begin) - begin), &value));
    }
    return value;
  }

  // Waits until a pass has ended, and returns its line.
  std::string WaitForPass() {
    while (true) {
      {
        MutexLock lock(&mutex_);
        for (const std::string& line : lines_) {
          if (absl::StrContains(line, ": scrubbed: ")) {
            const std::string found = line;
            lines_.clear();
            return found;
          }
        }
      }
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  // Returns true if one of the next passes ends with the line; the first may
  // have begun before.
  bool HasPass(const std::string& line) {
    for (int pass = 0; pass < 4; ++pass) {
      if (WaitForPass() == line) {
        return true;
      }
    }
    return false;
  }

  // Flips a bit of a block.
  void Damage(BlockAddress block) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(archive_path()));
    Flip(archive->SegmentPath(block.segment_index),
         static_cast<std::streamoff>(archive->BlockExtent(block).offset.value +
                                     20));
  }

  // Size of all files except MANIFEST.
  uint64_t FilesSizeBytes() {
    uint64_t size_bytes = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(archive_path())) {
      size_bytes +=
          entry.path().filename() == "MANIFEST" ? 0 : entry.file_size();
    }
    return size_bytes;
  }

  // Flips a bit of a file.
  static void Flip(const std::string& path, std::streamoff place) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    const int byte = file.get();
    file.seekp(place);
    file.put(static_cast<char>(byte ^ 1));
  }

  std::vector<TestDocument> documents_;
  absl::Duration interval_ = absl::Hours(24);
  Mutex mutex_;
  std::vector<std::string> damages_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ServerScrubTest, ReadsEveryFileOnceAndCachesNothing) {
  Start();
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 0 damaged blocks or indexes");
  EXPECT_EQ(Metric("quire_scrubbed_bytes_total"), FilesSizeBytes());
  EXPECT_EQ(Metric("quire_scrub_damaged_blocks"), 0);
  EXPECT_GT(Metric("quire_scrub_last_completed_timestamp_seconds"), 1.6e9);
  const std::string page = HttpGet(server().metrics_address(), "/metrics");
  EXPECT_THAT(page, HasSubstr("\nquire_cache_blocks 0\n"));
  EXPECT_THAT(page, HasSubstr("\nquire_cache_misses_total 0\n"));
  EXPECT_THAT(page, HasSubstr("\nquire_scrub_interval_seconds 86400\n"));
}

TEST_F(ServerScrubTest, ReportsDamageUntilTheArchiveIsRepaired) {
  const std::string copy = directory() + "/copy";
  std::filesystem::copy(archive_path(), copy);
  Damage({0, 1});
  Damage({0, 3});
  Start();
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 2 damaged blocks or indexes");
  EXPECT_EQ(Metric("quire_scrub_damaged_blocks"), 2);
  {
    MutexLock lock(&mutex_);
    ASSERT_EQ(damages_.size(), 2u);
    EXPECT_THAT(damages_[0], HasSubstr("archive docs: block 1 of "));
  }
  // New files of the same contents are read at once.
  std::filesystem::remove_all(archive_path());
  std::filesystem::rename(copy, archive_path());
  EXPECT_THAT(Reload(), Contains(HasSubstr("same contents in new files")));
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 0 damaged blocks or indexes");
  EXPECT_EQ(Metric("quire_scrub_damaged_blocks"), 0);
}

TEST_F(ServerScrubTest, ResumesWhereItWas) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(archive_path()));
  const uint64_t block_count = archive->info().block_count;
  ASSERT_GT(block_count, 4u);
  QUIRE_ASSERT_OK(
      WriteScrubState(state_path(), {{"docs",
                                      {.uuid = archive->info().uuid,
                                       .next_block = block_count - 2,
                                       .damaged_count = 1,
                                       .completed_at_s = 1000}}}));
  Start();
  EXPECT_EQ(WaitForPass(), "archive docs: scrubbed: 1 damaged block or index");
  EXPECT_EQ(Metric("quire_scrubbed_bytes_total"),
            archive->BlockExtent({0, block_count - 2}).size_bytes +
                archive->BlockExtent({0, block_count - 1}).size_bytes);
  StopServer();
  QUIRE_ASSERT_OK_AND_ASSIGN(const ScrubState state,
                             ReadScrubState(state_path()));
  const ScrubProgress& progress = state.at("docs");
  EXPECT_EQ(progress.next_block, 0u);
  EXPECT_EQ(progress.last_damaged_count, 1u);
  EXPECT_GT(progress.completed_at_s, 1'600'000'000);
}

// Files that were whole when the server read them, and are damaged since.
TEST_F(ServerScrubTest, FindsDamageOfIndexesDictionaryAndSymbolTable) {
  WriteArchive(archive_path(), documents_, "rlz", TrainTable(documents_));
  interval_ = absl::Milliseconds(1);
  Start();
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 0 damaged blocks or indexes");
  for (const char* const name : {"segment-", "dictionary-", "symbols-"}) {
    SCOPED_TRACE(name);
    std::string path;
    for (const auto& entry :
         std::filesystem::directory_iterator(archive_path())) {
      if (absl::StartsWith(entry.path().filename().string(), name)) {
        path = entry.path();
      }
    }
    const auto time = std::filesystem::last_write_time(path);
    const auto flip = [&] {
      // In the footer of the segment.
      Flip(path,
           static_cast<std::streamoff>(std::filesystem::file_size(path) - 12));
      std::filesystem::last_write_time(path, time);
    };
    flip();
    EXPECT_TRUE(HasPass("archive docs: scrubbed: 1 damaged block or index"));
    EXPECT_EQ(Metric("quire_scrub_damaged_blocks"), 1);
    flip();
    EXPECT_TRUE(HasPass("archive docs: scrubbed: 0 damaged blocks or indexes"));
  }
}

// A server stops while the scrub waits for its rate.
TEST_F(ServerScrubTest, StopsBetweenReads) {
  Start(/*rate_bytes_per_second=*/1);
  while (Metric("quire_scrubbed_bytes_total") < 1) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  StopServer();
  QUIRE_EXPECT_OK(ReadScrubState(state_path()));
}

TEST_F(ServerScrubTest, RefusesAnUnusableStateDirectory) {
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  options.listen_address = "127.0.0.1:0";
  options.scrub = {.interval = absl::Hours(1),
                   .state_directory = directory() + "/none"};
  EXPECT_THAT(Server::Start(options),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

}  // namespace
}  // namespace quire
