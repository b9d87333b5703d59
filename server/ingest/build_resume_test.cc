// SPDX-License-Identifier: GPL-3.0-or-later
//
// Builds that were stopped and are resumed: the archive of an uninterrupted
// build, and refusal of inputs that changed.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/resume_parameters.h"
#include "server/ingest/testing/build_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Files = std::map<std::string, std::string>;

BuildOptions ResumableOptions(absl::string_view codec) {
  return SmallBuildOptions(codec, 20000);
}

class BuildResumeTest : public ::testing::Test {
 protected:
  BuildResumeTest() {
    for (uint64_t i = 0; i < 8; ++i) {
      directory_.Write(absl::StrCat("docs/", i),
                       MakeTestText(3000 + 2500 * i, i / 2));
    }
    directory_.Write("docs/member.gz", Gzip(MakeTestText(5000, 77)));
    directory_.Write("one.txt", MakeTestText(7000, 5));
    directory_.Write("two.tar",
                     MakeTestArchive("gnutar", "gzip",
                                     {{"a", MakeTestText(9000, 6)},
                                      {"b", MakeTestText(4000, 7)}}));
  }

  absl::StatusOr<BuildSummary> Build(const std::string& out,
                                     const BuildOptions& options) const {
    std::vector<std::unique_ptr<Source>> sources;
    for (const std::string& name : inputs_) {
      auto source =
          OpenSource(directory_ / name, {.spool_directory = directory_.path()});
      if (!source.ok()) {
        return source.status();
      }
      sources.push_back(*std::move(source));
    }
    return BuildArchive(directory_ / out, sources, options);
  }

  absl::StatusOr<BuildSummary> Resume(BuildOptions options) const {
    options.resume.parameters = EncodingParameters(options);
    options.resume.describes_inputs = true;
    return Build("out", options);
  }

  // Stops a build as soon as `is_reached`.
  void Stop(BuildOptions options,
            const std::function<bool(const BuildProgress&)>& is_reached) const {
    std::atomic<bool> cancel = false;
    options.cancel = &cancel;
    options.on_progress = [&](const BuildProgress& progress) {
      cancel = cancel || is_reached(progress);
    };
    ASSERT_EQ(Resume(options).status().code(), absl::StatusCode::kCancelled);
    ASSERT_FALSE(fs::exists(directory_ / "out"));
  }

  void StopAtTheEnd(const BuildOptions& options) const {
    ASSERT_NO_FATAL_FAILURE(Stop(options, [](const BuildProgress& progress) {
      return progress.phase == BuildPhase::kFinish;
    }));
    ASSERT_TRUE(fs::exists(directory_ / "out.partial/JOURNAL"));
  }

  Files Whole(const BuildOptions& options) const {
    EXPECT_TRUE(Build("whole", options).ok());
    const std::string path = directory_ / "whole";
    Files files = FilesOf(path);
    fs::remove_all(path);
    return files;
  }

  const TemporaryDirectory directory_;
  std::vector<std::string> inputs_ = {"docs", "one.txt", "two.tar"};
};

TEST_F(BuildResumeTest, MakesTheArchiveOfAnUninterruptedBuild) {
  for (const absl::string_view codec :
       {"copy", "zstd:1", "rlz:2", "fsst", "auto", "auto/inflate",
        "rlz:1/parts"}) {
    for (const ReorderMode reorder :
         {ReorderMode::kOff, ReorderMode::kDuplicates, ReorderMode::kAuto}) {
      SCOPED_TRACE(absl::StrCat(codec, " ", ReorderModeName(reorder)));
      BuildOptions options = ResumableOptions(codec);
      options.reorder = reorder;
      const Files whole = Whole(options);
      ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
      options.threads = 2;
      QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary, Resume(options));
      EXPECT_GT(summary.kept_block_count, 8u);
      EXPECT_EQ(FilesOf(directory_ / "out"), whole);
      EXPECT_FALSE(fs::exists(directory_ / "out.partial"));
      fs::remove_all(directory_ / "out");
    }
  }
}

TEST_F(BuildResumeTest, StopsAtAnyPointGiveTheSameArchive) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const BuildOptions options = ResumableOptions("rlz:2");
  const Files whole = Whole(options);
  for (int stop = 0; stop < 12; ++stop) {
    uint64_t left = random() % 12;
    std::atomic<bool> cancel = false;
    BuildOptions stopped = options;
    stopped.cancel = &cancel;
    stopped.on_progress = [&](const BuildProgress&) {
      cancel = cancel || left-- == 0;
    };
    if (Resume(stopped).ok()) {
      EXPECT_EQ(FilesOf(directory_ / "out"), whole);
      fs::remove_all(directory_ / "out");
    }
  }
  QUIRE_ASSERT_OK(Resume(options));
  EXPECT_EQ(FilesOf(directory_ / "out"), whole);
}

TEST_F(BuildResumeTest, RefusesInputsThatChangedAndNamesThem) {
  const BuildOptions options = ResumableOptions("zstd:1");
  const Files whole = Whole(options);
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
  // Fails unless the build is refused until `undo`, and names only `name`.
  const auto expect_refused = [&](absl::string_view name,
                                  const std::function<void()>& undo) {
    SCOPED_TRACE(name);
    const absl::Status status = Resume(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    for (const absl::string_view input : {"docs", "one.txt", "two.tar"}) {
      const auto named = HasSubstr(absl::StrCat("/", input, "\" of "));
      if (input == name) {
        EXPECT_THAT(status.message(), AllOf(named, HasSubstr("--restart")));
      } else {
        EXPECT_THAT(status.message(), Not(named));
      }
    }
    undo();
  };
  const auto time_of = [&](const std::string& name) {
    return fs::last_write_time(directory_ / name);
  };
  const auto set_time = [&](const std::string& name, fs::file_time_type time) {
    fs::last_write_time(directory_ / name, time);
  };
  // Text of the same size, in files of the same times.
  for (const std::string name : {"docs/3", "one.txt", "two.tar"}) {
    const fs::file_time_type time = time_of(name);
    const std::string text = ReadTestFile(directory_ / name);
    std::string other = text;
    other.back() ^= 1;
    directory_.Write(name, name == "two.tar"
                               ? MakeTestArchive("gnutar", "gzip",
                                                 {{"a", MakeTestText(9000, 6)},
                                                  {"b", MakeTestText(4000, 8)}})
                               : other);
    set_time(name, time);
    expect_refused(name.substr(0, name.find('/')), [&] {
      directory_.Write(name, text);
      set_time(name, time);
    });
  }
  // A longer file with the old time, another time, and a new name.
  const std::string text = ReadTestFile(directory_ / "docs/2");
  const fs::file_time_type time = time_of("docs/2");
  set_time("docs/2", time + std::chrono::seconds(1));
  expect_refused("docs", [&] { set_time("docs/2", time); });
  directory_.Write("docs/2", text + "x");
  set_time("docs/2", time);
  expect_refused("docs", [&] {
    directory_.Write("docs/2", text);
    set_time("docs/2", time);
  });
  fs::rename(directory_ / "docs/2", directory_ / "docs/2b");
  expect_refused("docs", [&] {
    fs::rename(directory_ / "docs/2b", directory_ / "docs/2");
  });
  inputs_.pop_back();
  expect_refused("two.tar", [&] { inputs_.emplace_back("two.tar"); });
  std::swap(inputs_[0], inputs_[1]);
  EXPECT_THAT(Resume(options).status().message(),
              HasSubstr("begun with its inputs in another order"));
  std::swap(inputs_[0], inputs_[1]);
  // The documents of a tar do not have its time.
  set_time("two.tar", time_of("two.tar") + std::chrono::hours(1));
  QUIRE_ASSERT_OK(Resume(options));
  EXPECT_EQ(FilesOf(directory_ / "out"), whole);
}

TEST_F(BuildResumeTest, FinishesAfterARefusal) {
  BuildOptions options = ResumableOptions("zstd:1");
  const Files whole = Whole(options);
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
  BuildOptions other = options;
  other.archive.codec = ParseCodecSpec("zstd:3").value();
  EXPECT_THAT(Resume(other).status().message(),
              HasSubstr("was begun with codec zstd:1, not with codec zstd:3"));
  QUIRE_ASSERT_OK_AND_ASSIGN(BuildSummary summary, Resume(options));
  EXPECT_GT(summary.kept_block_count, 8u);
  EXPECT_EQ(FilesOf(directory_ / "out"), whole);
  fs::remove_all(directory_ / "out");
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
  other.resume.restart = true;
  QUIRE_ASSERT_OK_AND_ASSIGN(summary, Resume(other));
  EXPECT_EQ(summary.kept_block_count, 0u);
}

// A device that fails once must not cost the blocks.
TEST_F(BuildResumeTest, KeepsTheBlocksOfAJournalThatCannotBeRead) {
  const BuildOptions options = ResumableOptions("zstd:1");
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
  const std::string journal = directory_ / "out.partial/JOURNAL";
  fs::rename(journal, directory_ / "journal");
  fs::create_symlink("JOURNAL", journal);
  EXPECT_THAT(Resume(options).status().message(),
              HasSubstr("out.partial/JOURNAL: cannot open"));
  fs::rename(directory_ / "journal", journal);
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary, Resume(options));
  EXPECT_GT(summary.kept_block_count, 8u);
}

// A line per input, that stays the same while the input does.
TEST_F(BuildResumeTest, ManyInputsAreDescribedAndTheDifferencesBounded) {
  inputs_.clear();
  for (uint64_t i = 0; i < 300; ++i) {
    directory_.Write(absl::StrCat("many/", i), MakeTestText(300, i));
    inputs_.push_back(absl::StrCat("many/", i));
  }
  const BuildOptions options = ResumableOptions("zstd:1");
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(options));
  for (uint64_t i = 0; i < 300; ++i) {
    directory_.Write(absl::StrCat("many/", i), MakeTestText(301, i));
  }
  const absl::Status status = Resume(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(" and 292 more"));
  EXPECT_LT(status.message().size(), 5000u);
}

TEST_F(BuildResumeTest, LeavesOutTheSameUnreadableInputs) {
  // Cut off in its second member.
  const std::string cut = MakeTestArchive(
      "gnutar", "none",
      {{"a", MakeTestText(9000, 1)}, {"b", MakeTestText(9000, 2)}});
  directory_.Write("cut.tar", absl::string_view(cut).substr(0, 14000));
  inputs_.emplace_back("cut.tar");
  const auto with_failures = [&](InputFailures& failures) {
    BuildOptions options = ResumableOptions("rlz:1");
    options.failures = &failures;
    return options;
  };
  InputFailures failures;
  const Files whole = Whole(with_failures(failures));
  InputFailures stopped;
  ASSERT_NO_FATAL_FAILURE(StopAtTheEnd(with_failures(stopped)));
  InputFailures resumed;
  QUIRE_ASSERT_OK(Resume(with_failures(resumed)));
  EXPECT_EQ(resumed.count(), 1u);
  EXPECT_EQ(FilesOf(directory_ / "out"), whole);
}

}  // namespace
}  // namespace quire
