// SPDX-License-Identifier: Apache-2.0
#include "client/cli/answer_spool.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/scoped_tmpdir.h"
#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPageSizeBytes = 4096;

std::string TextOf(size_t size_bytes) {
  return std::string(size_bytes, static_cast<char>('a' + size_bytes % 26));
}

// Each test has a temporary directory of its own.
class AnswerSpoolTest : public ::testing::Test {
 protected:
  AnswerSpoolTest() { MakeDirectory(::testing::TempDir()); }

  ~AnswerSpoolTest() override { std::filesystem::remove_all(directory_); }

  void MakeDirectory(const std::string& parent) {
    // Without symbolic links, as the system names open files.
    directory_ =
        (std::filesystem::canonical(parent) / "answer_spool_test_XXXXXX")
            .string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr) << directory_;
    tmpdir_.Set(directory_);
  }

  std::unique_ptr<AnswerSpool> Open() {
    auto spool = AnswerSpool::Open();
    QUIRE_EXPECT_OK(spool);
    return spool.ok() ? *std::move(spool) : nullptr;
  }

  AnswerSpool::Place Put(AnswerSpool& spool, const std::string& text) {
    const auto place = spool.Put({text.data(), text.size()});
    QUIRE_EXPECT_OK(place);
    return place.value_or(AnswerSpool::Place());
  }

  // Another descriptor of the file that has no name, as a debugger gets it; -1
  // if there is none.
  int OpenFile() const {
    for (const auto& link :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target =
          std::filesystem::read_symlink(link.path(), gone).string();
      if (target.starts_with(directory_ + "/")) {
        return open(link.path().c_str(), O_RDWR | O_CLOEXEC);
      }
    }
    return -1;
  }

  ScopedTmpdir tmpdir_{::testing::TempDir()};
  std::string directory_;
};

TEST_F(AnswerSpoolTest, GivesEachAnswerBackInAnyOrder) {
  const auto spool = Open();
  std::vector<std::pair<AnswerSpool::Place, size_t>> places;
  for (int round = 0; round < 3; ++round) {
    for (const size_t size : std::initializer_list<size_t>{
             0, 1, 4095, 4096, 4097, 20'000, 300'000}) {
      places.emplace_back(Put(*spool, TextOf(size)), size);
    }
  }
  std::shuffle(places.begin(), places.end(), std::mt19937_64(5));
  for (const auto& [place, size] : places) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text, spool->Take(place));
    EXPECT_TRUE(text == TextOf(size)) << size;
  }
  EXPECT_EQ(spool->held_size_bytes(), 0u);
}

TEST_F(AnswerSpoolTest, HoldsWholePagesUntilTheyAreTaken) {
  const auto spool = Open();
  const AnswerSpool::Place small = Put(*spool, "x");
  EXPECT_EQ(spool->held_size_bytes(), kPageSizeBytes);
  const AnswerSpool::Place empty = Put(*spool, "");
  EXPECT_EQ(spool->held_size_bytes(), kPageSizeBytes);
  const AnswerSpool::Place large = Put(*spool, TextOf(kPageSizeBytes + 1));
  EXPECT_EQ(spool->held_size_bytes(), 3 * kPageSizeBytes);
  QUIRE_EXPECT_OK(spool->Take(small));
  EXPECT_EQ(spool->held_size_bytes(), 2 * kPageSizeBytes);
  QUIRE_EXPECT_OK(spool->Take(large));
  QUIRE_EXPECT_OK(spool->Take(empty));
  EXPECT_EQ(spool->held_size_bytes(), 0u);
}

TEST_F(AnswerSpoolTest, BeginsAnewOnceAllIsTaken) {
  const auto spool = Open();
  const int file = OpenFile();
  ASSERT_GE(file, 0);
  for (int round = 0; round < 3; ++round) {
    const AnswerSpool::Place place = Put(*spool, TextOf(50'000));
    EXPECT_EQ(place.offset, 0u);
    QUIRE_EXPECT_OK(spool->Take(place));
    EXPECT_EQ(lseek(file, 0, SEEK_END), 0);
  }
  close(file);
}

TEST_F(AnswerSpoolTest, MakesAHoleOfWhatIsTaken) {
  struct statfs system = {};
  if (statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC ||
      access("/dev/shm", W_OK) != 0) {
    GTEST_SKIP() << "other file systems may count later, or know no holes";
  }
  std::filesystem::remove_all(directory_);
  MakeDirectory("/dev/shm");
  const auto spool = Open();
  const int file = OpenFile();
  ASSERT_GE(file, 0);
  const std::string text = TextOf(64 * kPageSizeBytes);
  std::vector<AnswerSpool::Place> places;
  for (int i = 0; i < 4; ++i) {
    places.push_back(Put(*spool, text));
  }
  for (size_t left = 3; left > 0; --left) {
    QUIRE_EXPECT_OK(spool->Take(places[left]));
    struct stat status = {};
    EXPECT_EQ(fstat(file, &status), 0);
    EXPECT_EQ(static_cast<uint64_t>(status.st_blocks) * 512,
              left * text.size());
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string first, spool->Take(places[0]));
  EXPECT_TRUE(first == text);
  close(file);
}

TEST_F(AnswerSpoolTest, HasNoNameThatACrashWouldLeave) {
  const auto spool = Open();
  Put(*spool, "text");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(AnswerSpoolTest, SaysThatItWasCutShort) {
  const auto spool = Open();
  const AnswerSpool::Place first = Put(*spool, TextOf(5'000));
  const AnswerSpool::Place second = Put(*spool, TextOf(10'000));
  const int file = OpenFile();
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(second.offset + 100)), 0);
  close(file);
  // Of something else, long ago.
  errno = EACCES;
  EXPECT_THAT(spool->Take(second),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        AllOf(HasSubstr(directory_), HasSubstr("are gone"),
                              Not(HasSubstr("denied")))));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text, spool->Take(first));
  EXPECT_TRUE(text == TextOf(5'000));
}

TEST_F(AnswerSpoolTest, KeepsWhatItHasWhenThereIsNoMoreRoom) {
  const auto spool = Open();
  const AnswerSpool::Place kept = Put(*spool, TextOf(5'000));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 10'000;
  const auto old_action = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string much = TextOf(20'000);
  EXPECT_THAT(spool->Put({much.data(), much.size()}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        AllOf(HasSubstr(directory_), HasSubstr("too large"))));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_action);
  EXPECT_EQ(spool->held_size_bytes(), 2 * kPageSizeBytes);
  const AnswerSpool::Place next = Put(*spool, much);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text, spool->Take(kept));
  EXPECT_TRUE(text == TextOf(5'000));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string more, spool->Take(next));
  EXPECT_TRUE(more == much);
}

TEST_F(AnswerSpoolTest, NamesADirectoryThatIsNone) {
  tmpdir_.Set("/proc/nowhere");
  EXPECT_THAT(AnswerSpool::Open(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("\"/proc/nowhere\": No such file")));
}

}  // namespace
}  // namespace quire
