// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts that are joined equal appends, byte for byte; joins that are killed at
// every system call; and what a join refuses.
#include "server/archive/archive_join.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kJoinedBlockSizeBytes = 4096;

std::vector<std::string> EntriesOf(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Files except MANIFEST, by name.
std::map<std::string, std::string> DataOf(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const std::string& name : EntriesOf(path)) {
    if (name != kManifestFileName) {
      files[name] = ReadTestFile(absl::StrCat(path, "/", name));
    }
  }
  return files;
}

class ArchiveJoinTest : public ::testing::Test {
 protected:
  // Makes the archive that parts are like, at like_.
  void MakeLike(absl::string_view codec) {
    fs::remove_all(like_);
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec(codec).value();
    options.block_size_bytes = kJoinedBlockSizeBytes;
    std::mt19937_64 random(1);
    std::string dictionary;
    for (const TestDocument& document : RandomTestSegment(20, 2000, random)) {
      dictionary += document.text;
    }
    context_ = std::make_shared<CodecContext>(CodecContext{dictionary, ""});
    QUIRE_ASSERT_OK(WriteTestArchive(like_, options, {}, context_).status());
    codec_ =
        MakePayloadCodec(options.codec, context_, CodecUse::kEncodeAndDecode)
            .value();
  }

  // Makes part `number`, with two segments from `number` * 10 on.
  std::string MakePart(uint32_t number) {
    const std::string path = directory_ / absl::StrCat("part-", number);
    const auto write = [&]() -> absl::Status {
      QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory from, OpenKnownArchive(like_));
      from.manifest = from.manifest.WithoutDocuments();
      from.manifest.next_segment_number = number * 10;
      QUIRE_ASSIGN_OR_RETURN(
          ArchiveChange change,
          ArchiveChange::BeginCopy(from, path, /*replace=*/true, nullptr));
      return WriteSegments(number, std::move(change));
    };
    QUIRE_EXPECT_OK(write());
    return path;
  }

  absl::Status WriteSegments(uint32_t number, ArchiveChange change) {
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    std::mt19937_64 random(number);
    for (int i = 0; i < 2; ++i) {
      QUIRE_RETURN_IF_ERROR(WriteTestSegment(RandomTestSegment(9, 9000, random),
                                             kJoinedBlockSizeBytes,
                                             codec_.get(), *writer));
    }
    std::vector<FoundMembers> found(1);
    found[0].count = number;
    writer->SetFoundMembers(std::move(found));
    writer->AddUnreadInputs(1, {absl::StrCat("unread ", number)});
    return writer->Commit().status();
  }

  // Fails unless the archive is whole.
  static void ExpectWhole(const std::string& path) {
    const auto report = VerifyArchive(
        path, {}, [](const ArchiveDamage& d) { ADD_FAILURE() << d.status; });
    EXPECT_TRUE(report.ok()) << report.status();
  }

  absl::StatusOr<JoinSummary> Join(const std::vector<std::string>& parts,
                                   bool replace = false) {
    return JoinArchives(joined_, parts, replace, nullptr);
  }

  // Fails unless the join is refused and leaves nothing.
  void ExpectRefused(const std::vector<std::string>& parts,
                     absl::StatusCode code, const std::string& message) {
    const auto before = EntriesOf(directory_.path());
    EXPECT_THAT(Join(parts).status(), FailsWith(code, HasSubstr(message)));
    EXPECT_EQ(EntriesOf(directory_.path()), before);
  }

  static Manifest ManifestOf(const std::string& path) {
    return ParseManifest(AsBytes(ReadTestFile(path + "/MANIFEST"))).value();
  }

  static void SetManifest(const std::string& path, Manifest manifest) {
    manifest.uuid = manifest.DeriveUuid();
    WriteTestFile(path + "/MANIFEST", EncodeManifest(manifest));
  }

  const TemporaryDirectory directory_;
  const std::string like_ = directory_ / "like";
  const std::string joined_ = directory_ / "joined";
  std::shared_ptr<const CodecContext> context_;
  std::unique_ptr<PayloadCodec> codec_;
};

TEST_F(ArchiveJoinTest, EqualsAppendsByteForByte) {
  for (const absl::string_view codec : {"copy", "zstd:1", "rlz:3", "auto"}) {
    SCOPED_TRACE(codec);
    ASSERT_NO_FATAL_FAILURE(MakeLike(codec));
    const std::vector<std::string> parts = {MakePart(0), MakePart(1),
                                            MakePart(2)};
    const std::string series = directory_ / "series";
    fs::remove_all(series);
    fs::copy(like_, series);
    for (uint32_t number = 0; number < parts.size(); ++number) {
      Manifest manifest = ManifestOf(series);
      manifest.next_segment_number = number * 10;
      SetManifest(series, std::move(manifest));
      QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                                 ArchiveChange::Begin(series));
      QUIRE_ASSERT_OK(WriteSegments(number, std::move(change)));
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const JoinSummary summary,
                               Join(parts, /*replace=*/true));
    EXPECT_EQ(summary.out_of_order, "");
    ExpectWhole(joined_);
    EXPECT_EQ(DataOf(joined_), DataOf(series));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto joined, Archive::Open(joined_));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto appended, Archive::Open(series));
    EXPECT_EQ(joined->info().uuid, appended->info().uuid);
    EXPECT_EQ(joined->info().members, appended->info().members);
    EXPECT_EQ(joined->info().found_members, appended->info().found_members);
    EXPECT_EQ(joined->info().unread_input_count, 3u);
    EXPECT_EQ(joined->info().unread_inputs, appended->info().unread_inputs);
    EXPECT_EQ(ManifestOf(joined_).next_segment_number, 22u);
    // The states of the empty archive and of the first part.
    ASSERT_EQ(joined->info().history.size(), 2u);
    EXPECT_EQ(joined->info().history[1], appended->info().history[1]);
    // The parts are linked, and stay.
    for (const std::string& part : parts) {
      ExpectWhole(part);
    }
    EXPECT_EQ(fs::hard_link_count(joined_ + "/segment-00000010"), 2u);
  }
}

TEST_F(ArchiveJoinTest, TakesPartsInTheOrderGiven) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("copy"));
  const std::string first = MakePart(0);
  const std::string second = MakePart(1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const JoinSummary summary, Join({second, first}));
  EXPECT_EQ(summary.out_of_order, first);
  ExpectWhole(joined_);
  std::vector<uint32_t> numbers;
  for (const ManifestSegment& segment : ManifestOf(joined_).segments) {
    numbers.push_back(segment.number);
  }
  EXPECT_THAT(numbers, ElementsAre(10, 11, 0, 1));
}

TEST_F(ArchiveJoinTest, ReplacesItsFirstPart) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("copy"));
  const std::string part = MakePart(1);
  QUIRE_ASSERT_OK(Join({MakePart(0)}).status());
  const ArchiveInfo before = Archive::Open(joined_).value()->info();
  EXPECT_EQ(before.history.size(), 1u);
  QUIRE_ASSERT_OK_AND_ASSIGN(const JoinSummary summary,
                             Join({joined_, part}, /*replace=*/true));
  ExpectWhole(joined_);
  EXPECT_EQ(summary.info.segment_count, 4u);
  // Clients of the first part continue.
  EXPECT_EQ(
      summary.info.history.back(),
      (ArchiveState{before.uuid, before.size_bytes, before.document_count}));
}

TEST_F(ArchiveJoinTest, CopiesWhereLinksCannotBeMade) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  const std::vector<std::string> parts = {MakePart(0), MakePart(1)};
  QUIRE_ASSERT_OK(Join(parts).status());
  const auto linked = DataOf(joined_);
  std::vector<std::string> refused;
  std::vector<std::string> synced;
  {
    const ScopedSystemCallHooks hooks(
        {.before_fsync =
             [&](int fd) {
               synced.push_back(
                   fs::read_symlink(absl::StrCat("/proc/self/fd/", fd))
                       .filename());
             },
         .fail_linkat =
             [&](const std::string& name) {
               refused.push_back(name);
               return EXDEV;
             }});
    QUIRE_ASSERT_OK(Join(parts, /*replace=*/true).status());
  }
  EXPECT_EQ(refused.size(), 5u);
  for (const std::string& name : refused) {
    EXPECT_EQ(std::ranges::count(synced, name), 1) << name;
    EXPECT_EQ(fs::hard_link_count(absl::StrCat(joined_, "/", name)), 1u);
  }
  EXPECT_EQ(DataOf(joined_), linked);
  ExpectWhole(joined_);
}

TEST_F(ArchiveJoinTest, SyncsLinkedFiles) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  const std::vector<std::string> parts = {MakePart(0), MakePart(1)};
  std::vector<std::string> synced;
  {
    const ScopedSystemCallHooks hooks({.before_fsync = [&](int fd) {
      synced.push_back(
          fs::read_symlink(absl::StrCat("/proc/self/fd/", fd)).filename());
    }});
    QUIRE_ASSERT_OK(Join(parts).status());
  }
  for (const auto& [name, bytes] : DataOf(joined_)) {
    EXPECT_EQ(std::ranges::count(synced, name), 1) << name;
  }
}

TEST_F(ArchiveJoinTest, JoinsEmptyParts) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  QUIRE_ASSERT_OK(Join({like_, MakePart(3), like_}).status());
  ExpectWhole(joined_);
  EXPECT_EQ(ManifestOf(joined_).segments.size(), 2u);
}

TEST_F(ArchiveJoinTest, RefusesPartsThatDoNotFit) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz:2"));
  const std::string first = MakePart(0);
  const std::string other = MakePart(1);
  const Manifest manifest = ManifestOf(other);

  struct Case {
    std::string message;
    std::function<void(Manifest&)> change;
  };

  const std::vector<Case> cases = {
      {"part-1: the codec is rlz:3, expected rlz:2 as in ",
       [](Manifest& m) { m.segments.back().codec_level = 3; }},
      {"the block size is 8KiB, expected 4KiB",
       [](Manifest& m) {
         m.block_size_bytes = 8192;
         m.block_size_bytes_max = 8192;
       }},
      {"the partition size is 4KiB, expected 0B",
       [](Manifest& m) { m.codec.partition_size_bytes = 4096; }},
      {"join first, then redact", [](Manifest& m) { ++m.dictionary->hash; }},
      {"the symbol table is ",
       [](Manifest& m) { m.symbol_table = {.hash = 1, .size_bytes = 17}; }},
      {"has segment 0, and so has ",
       [](Manifest& m) { m.segments.back().number = 0; }}};
  for (const Case& wrong : cases) {
    SCOPED_TRACE(wrong.message);
    Manifest changed = manifest;
    wrong.change(changed);
    SetManifest(other, changed);
    ExpectRefused({first, other}, absl::StatusCode::kFailedPrecondition,
                  wrong.message);
  }
  SetManifest(other, manifest);
  ExpectRefused({first, first}, absl::StatusCode::kFailedPrecondition,
                "in one part only");
  ExpectRefused({first, directory_ / "none"}, absl::StatusCode::kNotFound,
                "none");
  QUIRE_ASSERT_OK(Join({first, other}).status());
  ExpectRefused({first, other}, absl::StatusCode::kAlreadyExists,
                "an archive is there already");
}

TEST_F(ArchiveJoinTest, RefusesAPartThatItWouldNotKeepWhole) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("copy"));
  const std::string first = MakePart(0);
  const std::string other = MakePart(1);
  Manifest manifest = ManifestOf(other);
  manifest.segments.back().sections.push_back({.type = 200});
  SetManifest(other, manifest);
  ExpectRefused({first, other}, absl::StatusCode::kFailedPrecondition,
                "that this program does not know and would drop");
}

TEST_F(ArchiveJoinTest, RefusesMoreSegmentsThanAnArchiveCanHave) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("copy"));
  std::vector<std::string> parts;
  for (const uint32_t number : {0u, 1u}) {
    parts.push_back(MakePart(number));
    Manifest manifest = ManifestOf(parts.back());
    const ManifestSegment segment = manifest.segments.back();
    while (manifest.segments.size() <= kSegmentCountMax / 2) {
      manifest.segments.push_back(segment);
      manifest.segments.back().number =
          (number + 1) * 100'000 +
          static_cast<uint32_t>(manifest.segments.size());
    }
    manifest.next_segment_number = 300'000;
    SetManifest(parts.back(), std::move(manifest));
  }
  ExpectRefused(parts, absl::StatusCode::kInvalidArgument,
                "the parts have 65538 segments, and an archive at most 65536");
}

// Before anything is published.
TEST_F(ArchiveJoinTest, RefusesADamagedPart) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  const std::string first = MakePart(0);
  const std::string other = MakePart(1);
  for (const std::string& name : EntriesOf(other)) {
    SCOPED_TRACE(name);
    const std::string file = absl::StrCat(other, "/", name);
    const std::string good = ReadTestFile(file);
    // Not through the link.
    fs::remove(file);
    ExpectRefused({first, other}, absl::StatusCode::kDataLoss, name);
    std::string bad = good;
    bad[bad.size() - 20] ^= 1;
    WriteTestFile(file, bad);
    ExpectRefused({first, other}, absl::StatusCode::kDataLoss, name);
    WriteTestFile(file, good);
  }
  QUIRE_ASSERT_OK(Join({first, other}).status());
}

TEST_F(ArchiveJoinTest, IsCancelled) {
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  const std::vector<std::string> parts = {MakePart(0)};
  const std::atomic<bool> cancel = true;
  const ScopedSystemCallHooks hooks(
      {.fail_linkat = [](const std::string&) { return EPERM; }});
  EXPECT_THAT(JoinArchives(joined_, parts, false, &cancel),
              HasCode(absl::StatusCode::kCancelled));
  EXPECT_FALSE(fs::exists(joined_ + ".partial"));
}

// In a child process, so that the kernel drops the lock.
class KilledJoinTest : public ArchiveJoinTest,
                       public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(NewAndReplacing, KilledJoinTest, ::testing::Bool());

TEST_P(KilledJoinTest, AKillAtAnySystemCallLeavesTheOldOrTheNewArchive) {
  const bool replaces = GetParam();
  ASSERT_NO_FATAL_FAILURE(MakeLike("rlz"));
  const std::vector<std::string> parts = {MakePart(0), MakePart(1)};
  int old_count = 0;
  int new_count = 0;
  for (int call = 0;; ++call) {
    SCOPED_TRACE(call);
    fs::remove_all(joined_);
    if (replaces) {
      fs::copy(parts[1], joined_);
    }
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Every other one copies.
      const ScopedSystemCallHooks hooks(
          KillBefore(call, call % 2 == 0 ? 0 : EXDEV));
      _exit(Join(parts, replaces).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    for (const std::string& part : parts) {
      ExpectWhole(part);
    }
    const size_t segment_count =
        fs::exists(joined_) ? ManifestOf(joined_).segments.size() : 0;
    if (segment_count > 0) {
      ExpectWhole(joined_);
    }
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(segment_count, 4u);
      break;
    }
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (segment_count == 4) {
      ++new_count;
    } else {
      ASSERT_EQ(segment_count, replaces ? 2u : 0u);
      ++old_count;
    }
  }
  EXPECT_GT(old_count, 10);
  EXPECT_GT(new_count, 0);
  // The last writer removed what the killed ones had left.
  EXPECT_THAT(EntriesOf(directory_.path()),
              ElementsAre("joined", "like", "part-0", "part-1"));
}

}  // namespace
}  // namespace quire
