// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks, by its system calls, the order in which a writer syncs, renames and
// removes, and that it locks the file that its name refers to.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/build_journal.h"
#include "server/archive/files/file_io.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint32_t kDurableBlockSize = 4096;

ArchiveWriterOptions OptionsFor(const char* codec, bool replace) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec(codec).value();
  options.block_size_bytes = kDurableBlockSize;
  options.replace = replace;
  return options;
}

std::vector<TestSegment> TwoDocuments(char letter) {
  const TestSegment segment = {
      {.id = "document", .text = std::string(9000, letter)}};
  return {segment, segment};
}

void ExpectTwoDocuments(const std::string& path, char letter) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      ReadTestRange(*archive, {{0}, archive->info().size_bytes}));
  EXPECT_EQ(text, std::string(size_t{2} * 9000, letter));
}

// System calls of a writer, in order.
class CallLog {
 public:
  explicit CallLog(const std::string& directory)
      : prefix_(directory + "/"),
        hooks_({.before_fsync = [this](int fd) { AddSync(fd); },
                .before_rename =
                    [this](const std::string& from, const std::string& to) {
                      Add(absl::StrCat("rename ", from, " to ", to));
                    },
                .before_unlinkat =
                    [this](const std::string& name) {
                      Add(absl::StrCat("remove ", name));
                    }}) {}

  // Returns the index of the only such call; fails the test if there is none.
  size_t Find(const std::string& call) const {
    EXPECT_EQ(std::ranges::count(calls_, call), 1)
        << call << " in " << ::testing::PrintToString(calls_);
    return static_cast<size_t>(std::ranges::find(calls_, call) -
                               calls_.begin());
  }

  const std::vector<std::string>& calls() const { return calls_; }

 private:
  void Add(std::string call) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  // With the size: a file that is written to afterwards counts as not synced.
  void AddSync(int fd) {
    const std::string path =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd));
    struct stat status;
    ASSERT_EQ(fstat(fd, &status), 0);
    std::string call = "sync ";
    if (!absl::StartsWith(path, prefix_)) {
      Add(call + "parent");
    } else if (S_ISDIR(status.st_mode)) {
      Add(call + path.substr(prefix_.size()));
    } else {
      Add(absl::StrCat(call, path.substr(prefix_.size()), " of ",
                       status.st_size));
    }
  }

  const std::string prefix_;
  // A separate thread writes the dictionary.
  std::mutex mutex_;
  std::vector<std::string> calls_;
  const ScopedSystemCallHooks hooks_;
};

class ArchiveDurabilityTest : public ::testing::Test {
 protected:
  void Write(char letter, bool replace) const {
    const auto context = std::make_shared<CodecContext>(
        CodecContext{std::string(500, letter), CraftedSymbolTable()});
    QUIRE_ASSERT_OK(WriteTestArchive(path_, OptionsFor("rlz", replace),
                                     TwoDocuments(letter), context));
  }

  // Expects that all files of the archive were synced in their present state,
  // then their directory, before the rename, and the parent after it. Returns
  // the index of the last sync.
  size_t ExpectSyncedInOrder(const CallLog& log) const {
    const size_t directory = log.Find("sync a.partial");
    size_t file_count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      ++file_count;
      EXPECT_LT(log.Find(absl::StrCat("sync a.partial/",
                                      entry.path().filename().string(), " of ",
                                      entry.file_size())),
                directory);
    }
    // Manifest, dictionary, symbol table and two segments.
    EXPECT_EQ(file_count, 5u);
    const size_t rename = log.Find("rename a.partial to a");
    const size_t parent = log.Find("sync parent");
    EXPECT_LT(directory, rename);
    EXPECT_LT(rename, log.Find("remove PARTIAL"));
    EXPECT_LT(rename, parent);
    return parent;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
};

TEST_F(ArchiveDurabilityTest,
       SyncsFilesThenDirectoryThenRenamesThenSyncsParent) {
  const CallLog log(directory_.path());
  Write('x', /*replace=*/false);
  ExpectSyncedInOrder(log);
}

// A journal must be durable before the blocks that it describes.
TEST_F(ArchiveDurabilityTest, SyncsAJournalThenItsDirectory) {
  std::filesystem::create_directory(path_);
  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const JournalContents journal = {.parameters = "codec zstd\n"};
  const std::string sync_file =
      absl::StrCat("sync a/JOURNAL of ", EncodeJournal(journal).size());
  for (const bool is_replaced : {false, true}) {
    const CallLog log(directory_.path());
    QUIRE_ASSERT_OK(WriteJournal(fd.get(), path_, journal));
    EXPECT_LT(log.Find(sync_file), log.Find("sync a"));
    if (is_replaced) {
      EXPECT_LT(log.Find("remove JOURNAL"), log.Find(sync_file));
    }
  }
}

TEST_F(ArchiveDurabilityTest, RemovesTheOldArchiveOnceTheNewOneIsDurable) {
  Write('x', /*replace=*/false);
  std::vector<std::string> old_files;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    old_files.push_back(entry.path().filename().string());
  }
  const CallLog log(directory_.path());
  Write('y', /*replace=*/true);
  size_t parent = 0;
  for (size_t i = 0; i < log.calls().size(); ++i) {
    parent = log.calls()[i] == "sync parent" ? i : parent;
  }
  EXPECT_LT(log.Find("rename a.partial to a"), parent);
  EXPECT_LT(log.Find("sync a.partial"), log.Find("rename a.partial to a"));
  for (const std::string& file : old_files) {
    EXPECT_LT(parent, log.Find("remove " + file));
  }
  ExpectTwoDocuments(path_, 'y');
}

TEST_F(ArchiveDurabilityTest, ALockOnWhatWasPublishedMeanwhileIsNone) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto first,
      ArchiveWriter::Create(path_, OptionsFor("copy", false), nullptr));
  for (const TestSegment& segment : TwoDocuments('x')) {
    QUIRE_ASSERT_OK(
        WriteTestSegment(segment, kDurableBlockSize, nullptr, *first));
  }
  // The second writer has opened the first one's mark and is about to lock it.
  int lock_count = 0;
  const ScopedSystemCallHooks hooks({.before_flock = [&] {
    if (lock_count++ == 0) {
      QUIRE_EXPECT_OK(first->Commit());
    }
  }});
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto second,
      ArchiveWriter::Create(path_, OptionsFor("copy", true), nullptr));
  EXPECT_EQ(lock_count, 2);
  ExpectTwoDocuments(path_, 'x');
  for (const TestSegment& segment : TwoDocuments('y')) {
    QUIRE_ASSERT_OK(
        WriteTestSegment(segment, kDurableBlockSize, nullptr, *second));
  }
  QUIRE_ASSERT_OK(second->Commit());
  ExpectTwoDocuments(path_, 'y');
}

// The name exists again, but refers to the directory of a third writer.
TEST_F(ArchiveDurabilityTest, ALockOnWhatAnotherFileReplacedIsNone) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto first,
      ArchiveWriter::Create(path_, OptionsFor("copy", false), nullptr));
  for (const TestSegment& segment : TwoDocuments('x')) {
    QUIRE_ASSERT_OK(
        WriteTestSegment(segment, kDurableBlockSize, nullptr, *first));
  }
  std::unique_ptr<ArchiveWriter> third;
  const ScopedSystemCallHooks hooks({.before_flock = [&] {
    if (third == nullptr) {
      QUIRE_EXPECT_OK(first->Commit());
      third = ArchiveWriter::Create(path_, OptionsFor("copy", true), nullptr)
                  .value();
    }
  }});
  EXPECT_THAT(ArchiveWriter::Create(path_, OptionsFor("copy", true), nullptr),
              HasCode(absl::StatusCode::kFailedPrecondition));
  ExpectTwoDocuments(path_, 'x');
  ASSERT_NE(third, nullptr);
  for (const TestSegment& segment : TwoDocuments('y')) {
    QUIRE_ASSERT_OK(
        WriteTestSegment(segment, kDurableBlockSize, nullptr, *third));
  }
  QUIRE_ASSERT_OK(third->Commit());
  ExpectTwoDocuments(path_, 'y');
}

}  // namespace
}  // namespace quire
