// SPDX-License-Identifier: GPL-3.0-or-later
//
// A server that scrubs its archives.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/segment_reader.h"
#include "server/service/scrub/scrub_state.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

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
    Start({.interval = absl::Hours(24),
           .rate_bytes_per_second = rate_bytes_per_second},
          {});
  }

  void Start(ScrubOptions scrub, const std::vector<ArchiveArgument>& archives) {
    ServerOptions options;
    options.archives = archives;
    options.metrics_address = "127.0.0.1:0";
    scrub.state_directory = state_path();
    options.scrub = std::move(scrub);
    options.report_damage = [this](const std::string& message) {
      MutexLock lock(&mutex_);
      damages_.push_back(message);
    };
    options.log = [this](LogLevel, const std::string& line) {
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
        for (size_t i = 0; i < lines_.size(); ++i) {
          const std::string& line = lines_[i];
          if (absl::StrContains(line, " cannot be read twice") ||
              absl::StrContains(line, ": quired repair")) {
            unreadable_.push_back(line);
          }
          if (absl::StrContains(line, ": scrubbed: ")) {
            std::string found = line;
            lines_.erase(lines_.begin(),
                         lines_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            return found;
          }
        }
      }
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  // Returns true if one of the next passes ends with the line; the first may
  // have begun before. Passes before them must end with another line.
  bool HasPass(const std::string& line) {
    ptrdiff_t left = 4;
    {
      MutexLock lock(&mutex_);
      left += std::ranges::count_if(lines_, [](const std::string& said) {
        return absl::StrContains(said, ": scrubbed: ");
      });
    }
    for (; left > 0; --left) {
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

  uint64_t FilesSizeBytes() {
    uint64_t size_bytes = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(archive_path())) {
      size_bytes += entry.file_size();
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
  Mutex mutex_;
  std::vector<std::string> damages_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  // Lines about blocks that cannot be read, and about damaged indexes and
  // containers, from before the last pass that WaitForPass() returned.
  std::vector<std::string> unreadable_;
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
    // Blocks are checked by several threads at a time.
    EXPECT_THAT(damages_,
                UnorderedElementsAre(HasSubstr("archive docs: block 1 of "),
                                     HasSubstr("archive docs: block 3 of ")));
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

TEST_F(ServerScrubTest, IgnoresATimeInTheFuture) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(archive_path()));
  QUIRE_ASSERT_OK(WriteScrubState(
      state_path(),
      {{"docs",
        {.uuid = archive->info().uuid, .completed_at_s = 10'000'000'000}}}));
  Start();
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 0 damaged blocks or indexes");
  EXPECT_LT(Metric("quire_scrub_last_completed_timestamp_seconds"), 1e10);
}

// Lets every read of a file of this process fail that is open now.
void BreakFile(const std::string& path) {
  const int unreadable = open("/dev/null", O_WRONLY | O_CLOEXEC);
  size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    std::error_code error;
    const std::string target =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd), error)
            .string();
    if (!error && target == std::filesystem::canonical(path).string()) {
      dup3(unreadable, fd, O_CLOEXEC);
      ++count;
    }
  }
  close(unreadable);
  EXPECT_GT(count, 0u) << path;
}

// The archive comes first by name, so that it would hold up the other one.
TEST_F(ServerScrubTest, CountsUnreadableBlocksAndReadsTheOtherArchives) {
  const std::string broken = directory() + "/broken";
  WriteArchive(broken, documents_);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(broken));
  const uint64_t block_count = archive->info().block_count;
  Start({.interval = absl::Seconds(1)},
        {{"broken", broken}, {"docs", archive_path()}});
  BreakFile(archive->SegmentPath(0));
  // Passes that began before may end without damage.
  const std::string damaged =
      absl::StrCat("archive broken: scrubbed: ", block_count + 1,
                   " damaged blocks or indexes");
  while (WaitForPass() != damaged) {
  }
  while (WaitForPass() !=
         "archive docs: scrubbed: 0 damaged blocks or indexes") {
  }
  EXPECT_THAT(
      unreadable_,
      Contains(HasSubstr(absl::StrCat("archive broken: block 1 of ", broken,
                                      "/segment-00000000 cannot be read"))));
}

class ServerScrubGrowthTest : public ServerScrubTest {
 protected:
  // Appends a document in a segment of its own, of two blocks. If it `joins`,
  // the small segments at the end become one of a higher number.
  void Append(const std::string& id, bool joins = false) {
    auto change = ArchiveChange::Begin(archive_path());
    ASSERT_TRUE(change.ok()) << change.status();
    const auto writer = ArchiveWriter::Append(*std::move(change), "test");
    const std::string text(20000, 'n');
    QUIRE_ASSERT_OK(writer->AddDocument({.id = id, .size_bytes = text.size()}));
    const ByteView bytes = AsBytes(text);
    QUIRE_ASSERT_OK(writer->AppendBlock(bytes.first(16384), {}));
    QUIRE_ASSERT_OK(writer->AppendBlock(bytes.subspan(16384), {}));
    if (joins) {
      const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(),
                                          nullptr, CodecUse::kEncodeAndDecode);
      QUIRE_ASSERT_OK(codec);
      const auto count =
          writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr);
      QUIRE_ASSERT_OK(count);
      EXPECT_EQ(*count, 2u);
    }
    QUIRE_ASSERT_OK(writer->Commit());
  }

  std::shared_ptr<const Archive> Open() {
    auto archive = Archive::Open(archive_path());
    EXPECT_THAT(archive, IsOk());
    return *std::move(archive);
  }

  // Size of the blocks of a segment from one on.
  static uint64_t SizeBytesFrom(const Archive& archive, BlockAddress block) {
    uint64_t size_bytes = 0;
    for (; block.block_index < archive.SegmentBlockCount(block.segment_index);
         ++block.block_index) {
      size_bytes += archive.BlockExtent(block).size_bytes;
    }
    return size_bytes;
  }
};

TEST_F(ServerScrubGrowthTest, KeepsWhatItKnowsWhenAnArchiveGrows) {
  const std::string other = directory() + "/other";
  WriteArchive(other, MakeDocuments(3, 2));
  Damage({0, 1});
  Start({.interval = absl::Hours(24)},
        {{"docs", archive_path()}, {"other", other}});
  // The archive that opened first is the first.
  const std::string passes[] = {WaitForPass(), WaitForPass()};
  EXPECT_THAT(passes,
              UnorderedElementsAre(
                  "archive docs: scrubbed: 1 damaged block or index",
                  "archive other: scrubbed: 0 damaged blocks or indexes"));
  const double completed_at_s =
      Metric("quire_scrub_last_completed_timestamp_seconds");
  const uint64_t size_bytes = FilesSizeBytes();
  Append("new");
  WriteArchive(other, MakeDocuments(4, 3));
  EXPECT_THAT(Reload(), Contains(HasSubstr("has grown")));
  // The archive that has grown comes before this one.
  EXPECT_EQ(WaitForPass(),
            "archive other: scrubbed: 0 damaged blocks or indexes");
  EXPECT_EQ(Metric("quire_scrub_damaged_blocks"), 1);
  EXPECT_EQ(Metric("quire_scrubbed_bytes_total"), size_bytes);
  EXPECT_EQ(Metric("quire_scrub_last_completed_timestamp_seconds"),
            completed_at_s);
}

TEST_F(ServerScrubGrowthTest, ContinuesAPassInTheSegmentsThatStayed) {
  WriteArchive(archive_path(), documents_, "copy");
  Append("second");
  const std::shared_ptr<const Archive> before = Open();
  const uint64_t first_count = before->SegmentBlockCount(0);
  const ScrubProgress in_first = {.uuid = before->info().uuid,
                                  .next_block = 3,
                                  .segment_number = 0,
                                  .segment_next_block = 3,
                                  .damaged_count = 2,
                                  .completed_at_s = 1000};
  ScrubProgress in_second = in_first;
  in_second.next_block = first_count + 1;
  in_second.segment_number = 1;
  in_second.segment_next_block = 1;
  // State file of an earlier version.
  ScrubProgress unknown = in_first;
  unknown.segment_number.reset();
  Append("third", /*joins=*/true);
  const std::shared_ptr<const Archive> after = Open();
  ASSERT_EQ(after->info().segment_count, 2u);
  ASSERT_EQ(after->SegmentNumber(1), 3u);
  const uint64_t joined_bytes = SizeBytesFrom(*after, {1, 0});

  struct Case {
    ScrubProgress progress;
    uint64_t read_bytes;
    uint64_t damaged_count;
  };

  const std::vector<Case> cases = {
      {in_first, SizeBytesFrom(*after, {0, 3}) + joined_bytes, 2},
      {in_second, joined_bytes, 2},
      {unknown, FilesSizeBytes(), 0}};
  for (const Case& known : cases) {
    QUIRE_ASSERT_OK(WriteScrubState(state_path(), {{"docs", known.progress}}));
    Start();
    EXPECT_EQ(WaitForPass(),
              absl::StrCat("archive docs: scrubbed: ", known.damaged_count,
                           " damaged blocks or indexes"));
    EXPECT_EQ(Metric("quire_scrubbed_bytes_total"), known.read_bytes);
    StopServer();
  }
}

// Files that were whole when the server read them, and are damaged since.
TEST_F(ServerScrubTest, FindsDamageOfIndexesDictionaryAndSymbolTable) {
  WriteArchive(archive_path(), documents_, "rlz", TrainTable(documents_));
  Start({.interval = absl::Milliseconds(1)}, {});
  EXPECT_EQ(WaitForPass(),
            "archive docs: scrubbed: 0 damaged blocks or indexes");
  for (const char* const name :
       {"MANIFEST", "segment-", "dictionary-", "symbols-"}) {
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

TEST_F(ServerScrubTest, FindsDamageOfContainers) {
  fields_ = {{"name", FieldType::kString}};
  documents_ = DocumentsOfRandomIds(20);
  for (TestDocument& document : documents_) {
    document.fields = {document.id};
  }
  WriteArchive(archive_path(), documents_);
  std::string path;
  std::streamoff place = 0;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(archive_path()));
    path = archive->SegmentPath(0);
    const SectionEntry* const data =
        archive->ReaderOf(0).footer().Find(SectionType::kContainerData);
    ASSERT_NE(data, nullptr);
    place = static_cast<std::streamoff>(data->offset);
  }
  const uint64_t size_bytes = FilesSizeBytes();
  Flip(path, place);
  Start();
  EXPECT_EQ(WaitForPass(), "archive docs: scrubbed: 1 damaged block or index");
  EXPECT_EQ(Metric("quire_scrubbed_bytes_total"), size_bytes);
  EXPECT_THAT(
      unreadable_,
      ElementsAre(AllOf(HasSubstr("segment-00000000: container data: checksum"),
                        HasSubstr("; reads of its damaged parts fail: "))));
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
