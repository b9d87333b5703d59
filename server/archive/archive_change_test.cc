// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes of an archive in place: kills at every system call, the order of the
// calls, the lock, history, and what a change refuses.
#include "server/archive/files/archive_change.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/unfinished_archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kSmallBlockSizeBytes = 4096;

TestSegment Segment(char letter) {
  return {{.id = std::string(1, letter), .text = std::string(9000, letter)}};
}

class ArchiveChangeTest : public ::testing::Test {
 protected:
  ArchiveChangeTest() {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = kSmallBlockSizeBytes;
    EXPECT_TRUE(
        WriteTestArchive(path_, options, {Segment('a'), Segment('b')}).ok());
  }

  static absl::StatusOr<ArchiveInfo> Append(const std::string& path,
                                            char letter, bool joins = false) {
    auto change = ArchiveChange::Begin(path);
    if (!change.ok()) {
      return change.status();
    }
    return Finish(*std::move(change), letter, joins);
  }

  static absl::StatusOr<ArchiveInfo> Finish(ArchiveChange change, char letter,
                                            bool joins = false) {
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    const absl::Status status = WriteTestSegment(
        Segment(letter), kSmallBlockSizeBytes, nullptr, *writer);
    if (!status.ok()) {
      return status;
    }
    if (joins) {
      const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(),
                                          nullptr, CodecUse::kEncodeAndDecode);
      const auto joined =
          writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr);
      if (!joined.ok()) {
        return joined.status();
      }
    }
    return writer->Commit();
  }

  // Returns the first letters of all documents; fails unless all is whole.
  std::string Letters() const {
    const auto report = VerifyArchive(
        path_, {}, [](const ArchiveDamage&) { ADD_FAILURE() << "damage"; });
    EXPECT_TRUE(report.ok()) << report.status();
    const auto archive = Archive::Open(path_);
    EXPECT_TRUE(archive.ok()) << archive.status();
    std::string letters;
    for (uint64_t i = 0; i < (*archive)->info().document_count; ++i) {
      const Document document = (*archive)->GetDocument({i}).value();
      letters += ReadTestRange(**archive, document.range).value()[0];
      EXPECT_EQ(document.id, letters.substr(letters.size() - 1));
    }
    return letters;
  }

  std::vector<std::string> Names(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
};

// A manifest with members that agree only in their sums.
TEST_F(ArchiveChangeTest, RefusesToJoinWithoutTheMemberOfABlock) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("auto").value();
  options.block_size_bytes = kSmallBlockSizeBytes;
  options.replace = true;
  const auto context =
      std::make_shared<CodecContext>(CodecContext{"dictionary", ""});
  // Their blocks are joined, too.
  const TestSegment small = {{.id = "s", .text = std::string(900, 's')}};
  QUIRE_ASSERT_OK(WriteTestArchive(path_, options, {small, small}, context));
  const std::string bytes = ReadTestFile(path_ + "/MANIFEST");
  QUIRE_ASSERT_OK_AND_ASSIGN(Manifest manifest, ParseManifest(AsBytes(bytes)));
  ASSERT_EQ(manifest.members.size(), 1u);
  manifest.members[0].codec = CodecId::kAuto;
  WriteTestFile(path_ + "/MANIFEST", EncodeManifest(manifest));
  QUIRE_ASSERT_OK_AND_ASSIGN(auto change, ArchiveChange::Begin(path_));
  const auto writer = ArchiveWriter::Append(std::move(change), "test");
  QUIRE_ASSERT_OK(
      WriteTestSegment(Segment('c'), kSmallBlockSizeBytes, nullptr, *writer));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto codec,
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode));
  EXPECT_THAT(
      writer->JoinSegments(*codec, uint64_t{1} << 30, nullptr).status(),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("MANIFEST: member")));
  // That the segments were not joined does not keep the new one out.
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, writer->Commit());
  EXPECT_EQ(info.segment_count, 3u);
}

// Joining is optional: old damage does not keep new documents out, but new
// damage does.
TEST_F(ArchiveChangeTest, AppendsToADamagedSegmentWithoutJoiningIt) {
  const std::string good = ReadTestFile(path_ + "/segment-00000001");
  const auto spoil = [](std::string bytes, const std::string& file) {
    bytes[60] ^= 1;
    WriteTestFile(file, bytes);
  };
  spoil(good, path_ + "/segment-00000001");
  const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(), nullptr,
                                      CodecUse::kEncodeAndDecode);
  const auto start = [&] {
    return ArchiveWriter::Append(ArchiveChange::Begin(path_).value(), "test");
  };
  {
    const auto writer = start();
    QUIRE_ASSERT_OK(
        WriteTestSegment(Segment('c'), kSmallBlockSizeBytes, nullptr, *writer));
    EXPECT_THAT(
        writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr).status(),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("segment-00000001")));
    QUIRE_ASSERT_OK(writer->Commit());
  }
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000001",
                          "segment-00000002"));
  WriteTestFile(path_ + "/segment-00000001", good);
  EXPECT_EQ(Letters(), "abc");
  {
    const auto writer = start();
    QUIRE_ASSERT_OK(
        WriteTestSegment(Segment('d'), kSmallBlockSizeBytes, nullptr, *writer));
    const std::string file = path_ + ".partial/segment-00000003";
    spoil(ReadTestFile(file), file);
    EXPECT_THAT(
        writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr).status(),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("segment-00000003")));
    EXPECT_THAT(writer->Commit(), HasCode(absl::StatusCode::kDataLoss));
  }
  EXPECT_EQ(Letters(), "abc");
}

TEST_F(ArchiveChangeTest, AppendsSegmentsWithTheNextNumbers) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto before, Archive::Open(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, Append(path_, 'c'));
  EXPECT_EQ(Letters(), "abc");
  EXPECT_EQ(info.segment_count, 3u);
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000001",
                          "segment-00000002"));
  EXPECT_THAT(Names(directory_.path()), ElementsAre("a"));
  const ArchiveInfo& old = before->info();
  EXPECT_THAT(info.history,
              ElementsAre(ArchiveState{old.uuid, old.size_bytes, 2}));
  EXPECT_NE(info.uuid, old.uuid);
  // The archive that was open before stays as it was.
  EXPECT_EQ(ReadTestRange(*before, {{0}, 18000}).value(),
            std::string(9000, 'a') + std::string(9000, 'b'));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto after, Archive::Open(path_));
  EXPECT_EQ(after->FindState(old.uuid)->document_count, 2u);
  EXPECT_EQ(after->FindState(info.uuid)->document_count, 3u);
  EXPECT_FALSE(after->FindState("").has_value());
}

// In a child process, so that the kernel drops the lock.
class KilledChangeTest : public ArchiveChangeTest,
                         public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(WithoutAndWithJoining, KilledChangeTest,
                         ::testing::Bool());

// A resumable and a plain writer, each killed just after it swapped its archive
// with the old one: what is left is no archive to resume.
TEST_F(ArchiveChangeTest, AfterTwoKillsNoReplacedArchiveLooksUnfinished) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = kSmallBlockSizeBytes;
  options.replace = true;
  const auto replace = [&](bool is_resumable) {
    absl::StatusOr<std::unique_ptr<ArchiveWriter>> writer =
        absl::UnknownError("");
    if (is_resumable) {
      auto unfinished = UnfinishedArchive::Open(path_, true, "codec copy\n", 1,
                                                /*restart=*/false);
      writer =
          ArchiveWriter::Continue(*std::move(unfinished), options, nullptr,
                                  [](uint64_t) { return absl::OkStatus(); });
    } else {
      writer = ArchiveWriter::Create(path_, options, nullptr);
    }
    WriteTestSegment(Segment('c'), kSmallBlockSizeBytes, nullptr, **writer)
        .IgnoreError();
    (*writer)->Commit().status().IgnoreError();
  };
  for (const bool is_resumable : {true, false}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool is_swapped = false;
      const auto kill_if_swapped = [&is_swapped] {
        if (is_swapped) {
          raise(SIGKILL);
        }
      };
      const ScopedSystemCallHooks hooks(
          {.before_fsync = [&](int) { kill_if_swapped(); },
           .before_rename =
               [&](const std::string& /*from*/, const std::string& to) {
                 is_swapped = to == "a";
               },
           .before_unlinkat = [&](const std::string&) { kill_if_swapped(); }});
      replace(is_resumable);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(Letters(), "c");
  }
  EXPECT_TRUE(fs::exists(path_ + ".partial/PARTIAL"));
  EXPECT_FALSE(fs::exists(path_ + ".partial/JOURNAL"));
  QUIRE_ASSERT_OK(Append(path_, 'd'));
  EXPECT_EQ(Letters(), "cd");
  EXPECT_EQ(Names(directory_.path()), std::vector<std::string>{"a"});
}

// The mark and the removed journal of the old archive must be durable before it
// is called PATH.partial.
TEST_F(ArchiveChangeTest, SyncsTheOldArchiveBeforeItIsSwapped) {
  WriteTestFile(path_ + "/JOURNAL", "of a killed writer");
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = kSmallBlockSizeBytes;
  options.replace = true;
  std::vector<std::string> calls;
  const ScopedSystemCallHooks hooks(
      {.before_fsync =
           [&](int fd) {
             calls.push_back(
                 "sync " + fs::read_symlink(absl::StrCat("/proc/self/fd/", fd))
                               .filename()
                               .string());
           },
       .before_rename =
           [&](const std::string&, const std::string& to) {
             calls.push_back("rename to " + to);
           },
       .before_unlinkat =
           [&](const std::string& name) { calls.push_back(name); }});
  QUIRE_ASSERT_OK(WriteTestArchive(path_, options, {Segment('c')}));
  const auto removed = std::ranges::find(calls, "JOURNAL");
  const auto synced = std::find(removed, calls.end(), "sync a");
  EXPECT_NE(std::find(synced, calls.end(), "rename to a"), calls.end());
}

TEST_F(ArchiveChangeTest, RemovesTheJournalOfAPublishedArchive) {
  WriteTestFile(path_ + "/JOURNAL", "of a killed writer");
  QUIRE_ASSERT_OK(Append(path_, 'c'));
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000001",
                          "segment-00000002"));
}

TEST_P(KilledChangeTest, AKillAtAnySystemCallLeavesTheOldOrTheNewArchive) {
  const bool joins = GetParam();
  std::string letters = "ab";
  int old_count = 0;
  int new_count = 0;
  for (int call = 0;; ++call) {
    const auto next = static_cast<char>('a' + letters.size() % 26);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const ScopedSystemCallHooks hooks(KillBefore(call));
      _exit(Append(path_, next, joins).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const std::string found = Letters();
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(found, letters + next);
      break;
    }
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (found != letters) {
      ASSERT_EQ(found, letters + next) << "call " << call;
      letters = found;
      ++new_count;
    } else {
      ++old_count;
    }
  }
  EXPECT_GT(old_count, 5);
  EXPECT_GT(new_count, 0);
  // The last writer removed what the killed ones had left.
  EXPECT_EQ(Names(directory_.path()), std::vector<std::string>{"a"});
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  uint64_t files_size_bytes = 0;
  for (const auto& entry : fs::directory_iterator(path_)) {
    files_size_bytes += entry.file_size();
  }
  EXPECT_EQ(files_size_bytes, archive->info().stored_size_bytes);
  if (joins) {
    EXPECT_LT(archive->info().segment_count, 8u);
  } else {
    EXPECT_EQ(archive->info().segment_count, letters.size() + 1);
  }
}

TEST_F(ArchiveChangeTest, SyncsFilesBeforeTheirNamesAndTheManifestLast) {
  std::vector<std::string> calls;
  {
    const ScopedSystemCallHooks hooks(
        {.before_fsync =
             [&](int fd) {
               const std::string file =
                   fs::read_symlink(absl::StrCat("/proc/self/fd/", fd));
               struct stat status;
               ASSERT_EQ(fstat(fd, &status), 0);
               calls.push_back(absl::StrCat(
                   "sync ", file.substr(directory_.path().size() + 1),
                   S_ISDIR(status.st_mode)
                       ? ""
                       : absl::StrCat(" of ", status.st_size)));
             },
         .before_rename =
             [&](const std::string& from, const std::string& to) {
               EXPECT_EQ(from, to);
               calls.push_back("rename " + to);
             }});
    QUIRE_ASSERT_OK(Append(path_, 'c'));
  }
  EXPECT_THAT(
      calls,
      ElementsAre(absl::StrCat("sync a.partial/segment-00000002 of ",
                               fs::file_size(path_ + "/segment-00000002")),
                  absl::StrCat("sync a.partial/MANIFEST of ",
                               fs::file_size(path_ + "/MANIFEST")),
                  "sync a.partial", "rename segment-00000002", "sync a",
                  "rename MANIFEST", "sync a"));
}

TEST_F(ArchiveChangeTest, ReplacedSegmentsMustHaveTheSameDocuments) {
  for (const int count : {0, 1, 2}) {
    SCOPED_TRACE(count);
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                               ArchiveChange::Begin(path_));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Replace(std::move(change), "test", 1, nullptr));
    TestSegment segment = Segment('b');
    segment[0].text.resize(count == 1 ? 8999 : 9000, 'b');
    if (count == 2) {
      segment.push_back({.id = "empty", .text = ""});
    }
    if (count > 0) {
      QUIRE_ASSERT_OK(
          WriteTestSegment(segment, kSmallBlockSizeBytes, nullptr, *writer));
    }
    const auto outcome = writer->Commit();
    EXPECT_THAT(outcome, HasCode(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(outcome.status().message(), HasSubstr("expected 2 of 18000"));
    EXPECT_EQ(Letters(), "ab");
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Replace(std::move(change), "test", 1, nullptr));
  QUIRE_ASSERT_OK(
      WriteTestSegment(Segment('b'), kSmallBlockSizeBytes, nullptr, *writer));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, writer->Commit());
  EXPECT_EQ(info.history.size(), 1u);
  EXPECT_EQ(Letters(), "ab");
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000002"));
}

TEST_F(ArchiveChangeTest, KeepsOtherWritersAway) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  EXPECT_THAT(ArchiveChange::Begin(path_),
              HasCode(absl::StatusCode::kFailedPrecondition));
  // The same archive by another name.
  const std::string link = directory_ / "link";
  fs::create_directory_symlink(path_, link);
  EXPECT_THAT(ArchiveChange::Begin(link),
              HasCode(absl::StatusCode::kFailedPrecondition));
  QUIRE_ASSERT_OK(Finish(std::move(change), 'c'));
  QUIRE_ASSERT_OK(Append(link, 'd'));
  EXPECT_EQ(Letters(), "abcd");
  EXPECT_THAT(Names(directory_.path()), UnorderedElementsAre("a", "link"));
}

TEST_F(ArchiveChangeTest, AnAbandonedChangeLeavesNothing) {
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                               ArchiveChange::Begin(path_));
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    QUIRE_ASSERT_OK(
        WriteTestSegment(Segment('c'), kSmallBlockSizeBytes, nullptr, *writer));
  }
  EXPECT_EQ(Letters(), "ab");
  EXPECT_THAT(Names(directory_.path()), ElementsAre("a"));
}

TEST_F(ArchiveChangeTest, WithoutNewSegmentsNothingChanges) {
  const std::string before = ReadTestFile(path_ + "/MANIFEST");
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  const auto writer = ArchiveWriter::Append(std::move(change), "test");
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, writer->Commit());
  EXPECT_EQ(info.document_count, 2u);
  EXPECT_EQ(ReadTestFile(path_ + "/MANIFEST"), before);
}

TEST_F(ArchiveChangeTest, RemovesWhatNoManifestNamesAndNothingElse) {
  WriteTestFile(path_ + "/segment-00000002", "left by a killed writer");
  WriteTestFile(path_ + "/dictionary-0123456789abcdef", "this too");
  WriteTestFile(path_ + "/parity.par2", "of the user");
  EXPECT_EQ(Letters(), "ab");
  QUIRE_ASSERT_OK(Append(path_, 'c'));
  EXPECT_EQ(Letters(), "abc");
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "parity.par2", "segment-00000000",
                          "segment-00000001", "segment-00000002"));
}

TEST_F(ArchiveChangeTest, CommitRemovesFilesThatTheNewManifestDoesNotName) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  Manifest manifest = change.manifest();
  manifest.segments.pop_back();
  const auto committed =
      change.Commit(std::move(manifest), EarlierStates::kDrop);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_TRUE(committed->manifest.history.empty());
  EXPECT_EQ(committed->manifest.next_segment_number, 2u);
  EXPECT_EQ(Letters(), "a");
  EXPECT_THAT(Names(path_), ElementsAre("MANIFEST", "segment-00000000"));
}

TEST_F(ArchiveChangeTest, SyncsTheRemovalOfOldFiles) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  Manifest manifest = change.manifest();
  manifest.segments.pop_back();
  std::vector<std::string> calls;
  const ScopedSystemCallHooks hooks(
      {.before_fsync = [&](int) { calls.push_back("sync"); },
       .before_unlinkat =
           [&](const std::string& name) { calls.push_back(name); }});
  const auto committed =
      change.Commit(std::move(manifest), EarlierStates::kDrop);
  ASSERT_TRUE(committed.ok()) << committed.status();
  QUIRE_EXPECT_OK(committed->old_files);
  const auto removed = std::ranges::find(calls, "segment-00000001");
  ASSERT_NE(removed, calls.end());
  EXPECT_NE(std::find(removed, calls.end(), "sync"), calls.end());
}

// Its MANIFEST must be durable before the files that the old one names go.
TEST_F(ArchiveChangeTest, SyncsWhatAKilledWriterRenamedBeforeItRemovesFiles) {
  WriteTestFile(path_ + "/segment-00000002", "of the manifest before");
  std::vector<std::string> calls;
  const ScopedSystemCallHooks hooks(
      {.before_fsync =
           [&](int fd) {
             calls.push_back(
                 "sync " + fs::read_symlink(absl::StrCat("/proc/self/fd/", fd))
                               .filename()
                               .string());
           },
       .before_unlinkat =
           [&](const std::string& name) { calls.push_back(name); }});
  const auto change = ArchiveChange::Begin(path_);
  QUIRE_ASSERT_OK(change);
  const auto removed = std::ranges::find(calls, "segment-00000002");
  ASSERT_NE(removed, calls.end());
  EXPECT_NE(std::find(calls.begin(), removed, "sync a"), removed);
  EXPECT_NE(std::find(removed, calls.end(), "sync a"), calls.end());
}

TEST_F(ArchiveChangeTest, ReportsOldFilesThatStay) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  // Cannot be removed like a file.
  fs::create_directory(path_ + "/segment-00000009");
  Manifest manifest = change.manifest();
  manifest.segments.pop_back();
  const auto committed =
      change.Commit(std::move(manifest), EarlierStates::kDrop);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_THAT(committed->old_files.message(), HasSubstr("segment-00000009"));
  EXPECT_EQ(Letters(), "a");
}

// A number is never used again.
TEST_F(ArchiveChangeTest, NumbersContinueAfterThoseOfRemovedSegments) {
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                               ArchiveChange::Begin(path_));
    Manifest manifest = change.manifest();
    manifest.segments.pop_back();
    QUIRE_ASSERT_OK(
        change.Commit(std::move(manifest), EarlierStates::kDrop).status());
  }
  QUIRE_ASSERT_OK(Append(path_, 'c'));
  EXPECT_EQ(Letters(), "ac");
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000002"));
}

TEST_F(ArchiveChangeTest, RefusesAnArchiveThatWasReplacedMeanwhile) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  const std::string manifest = ReadTestFile(path_ + "/MANIFEST");
  fs::remove(path_ + "/MANIFEST");
  WriteTestFile(path_ + "/MANIFEST", manifest);
  const auto outcome = Finish(std::move(change), 'c');
  EXPECT_THAT(outcome, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(outcome.status().message(), HasSubstr("was replaced"));
  EXPECT_EQ(Letters(), "ab");
  EXPECT_THAT(Names(path_),
              ElementsAre("MANIFEST", "segment-00000000", "segment-00000001"));
}

TEST_F(ArchiveChangeTest, NeverReplacesAFile) {
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  WriteTestFile(path_ + "/segment-00000002", "of somebody");
  EXPECT_THAT(Finish(std::move(change), 'c'),
              HasCode(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(Letters(), "ab");
  EXPECT_EQ(ReadTestFile(path_ + "/segment-00000002"), "of somebody");
}

TEST_F(ArchiveChangeTest, KeepsAnUnfinishedArchive) {
  fs::create_directory(path_ + ".partial");
  WriteTestFile(path_ + ".partial/PARTIAL", "");
  WriteTestFile(path_ + ".partial/JOURNAL", "quire journal 2\n");
  const auto outcome = ArchiveChange::Begin(path_);
  EXPECT_THAT(outcome, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(outcome.status().message(), HasSubstr("unfinished archive"));
  EXPECT_TRUE(fs::exists(path_ + ".partial/JOURNAL"));
}

TEST_F(ArchiveChangeTest, RefusesWhatIsNoArchive) {
  EXPECT_THAT(ArchiveChange::Begin(directory_ / "none"),
              HasCode(absl::StatusCode::kNotFound));
  fs::create_directory(directory_ / "empty");
  EXPECT_THAT(ArchiveChange::Begin(directory_ / "empty"),
              HasCode(absl::StatusCode::kNotFound));
  WriteTestFile(directory_ / "file", "text");
  EXPECT_THAT(ArchiveChange::Begin(directory_ / "file"),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(Names(directory_.path()),
              UnorderedElementsAre("a", "empty", "file"));
}

// Stands for a removal: the segments of equal size change their order.
TEST_F(ArchiveChangeTest, ARemovalMovesTheHistoryToTheRedactedStates) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo before, Append(path_, 'c'));
  ASSERT_EQ(before.history.size(), 1u);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                               ArchiveChange::Begin(path_));
    Manifest manifest = change.manifest();
    std::swap(manifest.segments[0], manifest.segments[1]);
    QUIRE_ASSERT_OK(
        change.Commit(std::move(manifest), EarlierStates::kRedact).status());
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto removed, Archive::Open(path_));
  EXPECT_TRUE(removed->info().history.empty());
  const std::vector<ArchiveState> states = {
      before.history[0],
      {before.uuid, before.size_bytes, before.document_count}};
  EXPECT_EQ(removed->info().redacted_states, states);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo after, Append(path_, 'd'));
  EXPECT_EQ(after.redacted_states, states);
  ASSERT_EQ(after.history.size(), 1u);
  EXPECT_EQ(after.history[0].uuid, removed->info().uuid);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto grown, Archive::Open(path_));
  for (const ArchiveState& state : states) {
    const auto view = grown->FindState(state.uuid);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(view->size_bytes, state.size_bytes);
    EXPECT_NE(view->removals_hash, 0u);
    // An append removes nothing.
    EXPECT_EQ(view->removals_hash,
              removed->FindState(state.uuid)->removals_hash);
  }
  EXPECT_EQ(grown->FindState(after.history[0].uuid)->removals_hash, 0u);
}

TEST_F(ArchiveChangeTest, AFullHistoryDropsItsOldestState) {
  QUIRE_ASSERT_OK(Append(path_, 'c'));
  const std::string bytes = ReadTestFile(path_ + "/MANIFEST");
  QUIRE_ASSERT_OK_AND_ASSIGN(Manifest manifest, ParseManifest(AsBytes(bytes)));
  ASSERT_EQ(manifest.history.size(), 1u);
  for (uint64_t i = 0; i < kHistoryCountMax; ++i) {
    manifest.history.push_back(manifest.history.back());
    manifest.history.back().uuid[0] = static_cast<uint8_t>(i);
    manifest.history.back().uuid[1] = static_cast<uint8_t>(i >> 8);
  }
  manifest.history.erase(manifest.history.begin());
  WriteTestFile(path_ + "/MANIFEST", EncodeManifest(manifest));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo info, Append(path_, 'd'));
  ASSERT_EQ(info.history.size(), kHistoryCountMax);
  EXPECT_TRUE(absl::StartsWith(info.history[0].uuid, "0100"));
  EXPECT_EQ(info.history.back().document_count, 3u);
  // Each is found.
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  for (const ArchiveState& state : info.history) {
    EXPECT_EQ(archive->FindState(state.uuid)->document_count,
              state.document_count);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change, ArchiveChange::Begin(path_));
  Manifest redacted = change.manifest();
  std::swap(redacted.segments[0], redacted.segments[1]);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ArchiveChange::Committed committed,
      change.Commit(std::move(redacted), EarlierStates::kRedact));
  ASSERT_EQ(committed.manifest.redacted_states.size(), kHistoryCountMax);
  EXPECT_EQ(committed.manifest.redacted_states.back().document_count, 4u);
}

}  // namespace
}  // namespace quire
