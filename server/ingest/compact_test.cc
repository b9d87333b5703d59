// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives whose last segments are encoded again: the same documents at the
// same places, with every codec and order, killed and damaged.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/archive/archive_verifier.h"
#include "server/archive/files/archive_change.h"
#include "server/ingest/append.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Documents that repeat each other, and those of other seeds.
IdsAndContents Night(size_t count, uint64_t seed) {
  IdsAndContents documents;
  for (size_t i = 0; i < count; ++i) {
    documents.emplace_back(absl::StrCat("page-", (seed * 3 + i) % 17),
                           MakeTestText((i * 3779) % 12000 + seed, i / 2));
  }
  return documents;
}

class CompactTest : public ::testing::Test {
 protected:
  void Build(const IdsAndContents& documents, const BuildOptions& options) {
    fs::remove_all(path_);
    const auto summary = BuildArchive(path_, OneSource(documents), options);
    ASSERT_TRUE(summary.ok()) << summary.status();
    documents_ = documents;
  }

  // Without joining.
  void Append(const IdsAndContents& more, bool inflate = false,
              ReorderMode reorder = ReorderMode::kOff) {
    BuildOptions options;
    options.inflate = inflate;
    options.reorder = reorder;
    const auto summary = AppendToArchive(
        path_, OneSource(more), ExistingMode::kAdd, options, /*merge=*/false);
    ASSERT_TRUE(summary.ok()) << summary.status();
    documents_.insert(documents_.end(), more.begin(), more.end());
  }

  absl::StatusOr<CompactSummary> Compact(
      CompactedSegments compacted = CompactedSegments::kSuffix,
      const BuildOptions& options = {}) {
    return CompactArchive(path_, compacted, options);
  }

  // Fails unless the archive is whole and has the documents of all appends.
  void ExpectSame() {
    ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, documents_));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const ArchiveInfo& info = archive->info();
    if (info.codec.id == CodecId::kAuto) {
      uint64_t block_count = 0;
      for (const MemberBlocks& member : info.members) {
        block_count += member.block_count;
      }
      EXPECT_EQ(block_count, info.block_count);
    }
  }

  ArchiveInfo Info() const { return Archive::Open(path_).value()->info(); }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "x.quire";
  IdsAndContents documents_;
};

TEST_F(CompactTest, KeepsDocumentsAndHistoryWithEveryCodecAndOrder) {
  for (const absl::string_view codec :
       {"copy", "zstd:1", "rlz:2", "auto", "fsst", "rlz:1/parts",
        "auto/inflate"}) {
    for (const ReorderMode reorder :
         {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kDuplicates,
          ReorderMode::kFull}) {
      SCOPED_TRACE(absl::StrCat(codec, " ", ReorderModeName(reorder)));
      const bool inflates = absl::EndsWith(codec, "inflate");
      ASSERT_NO_FATAL_FAILURE(Build(Night(6, 1), SmallBuildOptions(codec)));
      for (uint64_t night = 2; night < 5; ++night) {
        IdsAndContents more = Night(6, night);
        more.emplace_back("gzip", Gzip(MakeTestText(3000, night)));
        ASSERT_NO_FATAL_FAILURE(Append(more, inflates));
      }
      const ArchiveInfo before = Info();
      BuildOptions options;
      options.reorder = reorder;
      options.inflate = inflates;
      QUIRE_ASSERT_OK_AND_ASSIGN(const CompactSummary summary,
                                 Compact(CompactedSegments::kAll, options));
      EXPECT_EQ(summary.replaced_segment_count, 4u);
      EXPECT_EQ(summary.build.appended.segment_count, 1u);
      ASSERT_NO_FATAL_FAILURE(ExpectSame());
      const ArchiveInfo after = Info();
      EXPECT_EQ(after.segment_count, 1u);
      EXPECT_EQ(after.document_count, before.document_count);
      EXPECT_EQ(after.dictionary_hash, before.dictionary_hash);
      EXPECT_EQ(after.symbol_table_hash, before.symbol_table_hash);
      EXPECT_EQ(after.choice, before.choice);
      ASSERT_EQ(after.history.size(), 4u);
      EXPECT_EQ(after.history.back(),
                (ArchiveState{before.uuid, before.size_bytes,
                              before.document_count}));
      if (reorder == ReorderMode::kDuplicates) {
        EXPECT_TRUE(after.has_layout);
        EXPECT_LT(after.stored_size_bytes, before.stored_size_bytes * 3 / 4);
      }
      if (inflates) {
        ASSERT_EQ(after.found_members.size(), before.found_members.size());
        EXPECT_EQ(after.found_members[0].count, before.found_members[0].count);
        EXPECT_EQ(after.found_members[0].inflated.count, 3u);
      }
    }
  }
}

// The same order is taken as if the dictionary were part of no text.
TEST_F(CompactTest, AutoReordersWhereThatMakesTheArchiveSmaller) {
  for (const absl::string_view codec : {"zstd:1", "rlz:1", "fsst"}) {
    SCOPED_TRACE(codec);
    ASSERT_NO_FATAL_FAILURE(
        Build({{"first", MakeTestText(30000, 99)}}, SmallBuildOptions(codec)));
    const std::string text = MakeTestText(200000, 5);
    ASSERT_NO_FATAL_FAILURE(Append({{"a", text}}));
    ASSERT_NO_FATAL_FAILURE(Append({{"b", text}}));
    BuildOptions options;
    options.reorder = ReorderMode::kAuto;
    const uint64_t before_bytes = Info().stored_size_bytes;
    QUIRE_ASSERT_OK(Compact(CompactedSegments::kSuffix, options));
    ASSERT_NO_FATAL_FAILURE(ExpectSame());
    EXPECT_TRUE(Info().has_layout);
    EXPECT_LT(Info().stored_size_bytes, before_bytes * 3 / 4);
  }
}

// Duplicates that the archive's dictionary has cost nothing; the trial leaves
// it in place.
TEST_F(CompactTest, AutoLeavesDuplicatesToTheDictionary) {
  const std::string known = MakeTestText(8000, 99);
  ASSERT_NO_FATAL_FAILURE(
      Build({{"first", known}}, SmallBuildOptions("rlz:1")));
  ASSERT_NO_FATAL_FAILURE(Append({{"a", MakeTestText(100000, 5) + known}}));
  std::string text = MakeTestText(100000, 6);
  for (int i = 0; i < 16; ++i) {
    text += known;
  }
  ASSERT_NO_FATAL_FAILURE(Append({{"b", text}}));
  BuildOptions options;
  options.reorder = ReorderMode::kAuto;
  QUIRE_ASSERT_OK_AND_ASSIGN(const CompactSummary summary,
                             Compact(CompactedSegments::kSuffix, options));
  EXPECT_THAT(summary.build.choice.reason, HasSubstr("by a trial"));
  ASSERT_NO_FATAL_FAILURE(ExpectSame());
  EXPECT_FALSE(Info().has_layout);
}

TEST_F(CompactTest, TakesTheSuffixOfTheRuleOfJoining) {
  ASSERT_NO_FATAL_FAILURE(
      Build({{"a", MakeTestText(30000, 1)}}, SmallBuildOptions("zstd:1")));
  ASSERT_NO_FATAL_FAILURE(Append({{"b", MakeTestText(5000, 2)}}));
  ASSERT_NO_FATAL_FAILURE(Append({{"c", MakeTestText(4000, 3)}}));
  const std::string first = ReadTestFile(path_ + "/segment-00000000");
  QUIRE_ASSERT_OK_AND_ASSIGN(CompactSummary summary, Compact());
  EXPECT_EQ(summary.replaced_segment_count, 2u);
  ASSERT_NO_FATAL_FAILURE(ExpectSame());
  EXPECT_EQ(Info().segment_count, 2u);
  EXPECT_EQ(ReadTestFile(path_ + "/segment-00000000"), first);
  // Nothing is left to do, but for all.
  const auto files = FilesOf(path_);
  QUIRE_ASSERT_OK_AND_ASSIGN(summary, Compact());
  EXPECT_EQ(summary.replaced_segment_count, 0u);
  EXPECT_EQ(summary.build.info.segment_count, 2u);
  EXPECT_TRUE(FilesOf(path_) == files);
  BuildOptions options;
  options.segment_size_bytes = 30000;
  QUIRE_ASSERT_OK_AND_ASSIGN(summary,
                             Compact(CompactedSegments::kAll, options));
  EXPECT_EQ(summary.replaced_segment_count, 2u);
  ASSERT_NO_FATAL_FAILURE(ExpectSame());
  EXPECT_EQ(Info().segment_count, 2u);
  EXPECT_FALSE(FilesOf(path_) == files);
}

TEST_F(CompactTest, TakesInSegmentsWithALayout) {
  ASSERT_NO_FATAL_FAILURE(Build(Night(6, 1), SmallBuildOptions("zstd:1")));
  ASSERT_NO_FATAL_FAILURE(Append(Night(9, 2), false, ReorderMode::kDuplicates));
  ASSERT_NO_FATAL_FAILURE(Append(Night(6, 3)));
  ASSERT_TRUE(Info().has_layout);
  QUIRE_ASSERT_OK_AND_ASSIGN(const CompactSummary summary, Compact());
  EXPECT_EQ(summary.replaced_segment_count, 3u);
  ASSERT_NO_FATAL_FAILURE(ExpectSame());
  EXPECT_EQ(Info().segment_count, 1u);
  EXPECT_FALSE(Info().has_layout);
}

TEST_F(CompactTest, AnyMixOfAppendsAndCompactionsGivesTheSameDocuments) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const bool inflates = random() % 2 == 0;
  ASSERT_NO_FATAL_FAILURE(
      Build(Night(8, random() % 50),
            SmallBuildOptions(std::vector{"rlz:1", "auto", "zstd:1",
                                          "auto/inflate"}[random() % 4])));
  for (int i = 0; i < 8; ++i) {
    const ReorderMode reorder =
        std::vector{ReorderMode::kOff, ReorderMode::kAuto,
                    ReorderMode::kDuplicates, ReorderMode::kFull}[random() % 4];
    if (random() % 2 == 0) {
      IdsAndContents more = Night(random() % 5, random() % 50);
      if (random() % 3 == 0) {
        more.emplace_back("gzip", Gzip(MakeTestText(5000, random())));
      }
      if (random() % 3 == 0) {
        more.emplace_back("empty", "");
      }
      ASSERT_NO_FATAL_FAILURE(Append(more, inflates, reorder));
    } else {
      BuildOptions options;
      options.reorder = reorder;
      options.inflate = inflates;
      options.segment_size_bytes = 1 + random() % 90000;
      options.threads = 1 + static_cast<uint32_t>(random() % 2);
      QUIRE_ASSERT_OK(Compact(random() % 2 == 0 ? CompactedSegments::kSuffix
                                                : CompactedSegments::kAll,
                              options));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame());
  }
}

TEST_F(CompactTest, ThreadsDoNotChangeTheResult) {
  ASSERT_NO_FATAL_FAILURE(Build(Night(9, 1), SmallBuildOptions("rlz:2")));
  ASSERT_NO_FATAL_FAILURE(Append(Night(9, 2)));
  const std::string copy = directory_ / "copy.quire";
  fs::copy(path_, copy);
  BuildOptions options;
  options.reorder = ReorderMode::kAuto;
  QUIRE_ASSERT_OK(Compact(CompactedSegments::kSuffix, options));
  options.threads = 3;
  QUIRE_ASSERT_OK(CompactArchive(copy, CompactedSegments::kSuffix, options));
  EXPECT_TRUE(FilesOf(path_) == FilesOf(copy));
}

TEST_F(CompactTest, AKillAtAnySystemCallLeavesTheOldOrTheNewArchive) {
  ASSERT_NO_FATAL_FAILURE(Build(Night(4, 1), SmallBuildOptions("zstd:1")));
  ASSERT_NO_FATAL_FAILURE(Append(Night(4, 2)));
  std::string uuid = Info().uuid;
  int old_count = 0;
  int new_count = 0;
  bool has_ended = false;
  for (int call = 0; !has_ended; ++call) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const ScopedSystemCallHooks hooks(KillBefore(call));
      BuildOptions options;
      options.reorder = ReorderMode::kDuplicates;
      _exit(Compact(CompactedSegments::kAll, options).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    has_ended = WIFEXITED(status);
    ASSERT_TRUE(has_ended ? WEXITSTATUS(status) == 0
                          : WTERMSIG(status) == SIGKILL)
        << "call " << call;
    const auto report = VerifyArchive(
        path_, {}, [](const ArchiveDamage& d) { ADD_FAILURE() << d.status; });
    ASSERT_TRUE(report.ok()) << report.status();
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents found, ReadInput(path_));
    ASSERT_TRUE(found == documents_) << "call " << call;
    const ArchiveInfo info = Info();
    (info.uuid == uuid ? old_count : new_count) += 1;
    if (info.uuid != uuid) {
      EXPECT_EQ(info.history.back().uuid, uuid);
    }
    uuid = info.uuid;
  }
  EXPECT_GT(old_count, 5);
  EXPECT_GT(new_count, 1);
  // The last writer removed what the killed ones had left.
  ASSERT_NO_FATAL_FAILURE(ExpectSame());
  uint64_t files_size_bytes = 0;
  for (const auto& entry : fs::directory_iterator(path_)) {
    files_size_bytes += entry.file_size();
  }
  EXPECT_EQ(files_size_bytes, Info().stored_size_bytes);
}

TEST_F(CompactTest, FailuresLeaveTheArchiveUnchanged) {
  ASSERT_NO_FATAL_FAILURE(
      Build({{"a", MakeTestText(3000, 1)}}, SmallBuildOptions("auto")));
  ASSERT_NO_FATAL_FAILURE(Append({{"b", MakeTestText(3000, 2)}}));
  const auto whole = FilesOf(path_);
  const std::atomic<bool> cancelled = true;
  BuildOptions options;
  options.cancel = &cancelled;
  EXPECT_THAT(Compact(CompactedSegments::kAll, options),
              HasCode(absl::StatusCode::kCancelled));
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveChange change,
                               ArchiveChange::Begin(path_));
    const auto outcome = Compact();
    EXPECT_THAT(outcome, HasCode(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(outcome.status().message(),
                HasSubstr("another writer is at work"));
  }
  EXPECT_TRUE(FilesOf(path_) == whole);
  // A damaged block.
  const std::string file = path_ + "/segment-00000000";
  std::string bytes = ReadTestFile(file);
  bytes[60] = static_cast<char>(bytes[60] ^ 1);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  const auto damaged = FilesOf(path_);
  EXPECT_THAT(Compact(), HasCode(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(FilesOf(path_) == damaged);
  EXPECT_THAT(CompactArchive(directory_ / "none", CompactedSegments::kAll, {}),
              HasCode(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace quire
