// SPDX-License-Identifier: Apache-2.0
//
// Order in which output files are synced and renamed, observed in the system
// calls of this process.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/cli_run.h"
#include "client/cli/cli_settings.h"
#include "client/cli/output_file.h"
#include "client/cli/subcommands.h"
#include "client/quire/testing/fake_server.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace {

// System calls of this process, in order.
class CallLog {
 public:
  void Add(std::string call) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  std::vector<std::string> Take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> calls_;
};

CallLog& Log() {
  static CallLog log;
  return log;
}

// Names a file by its size: a file that grows after its sync is detected.
std::string NameOf(int fd) {
  struct stat info = {};
  fstat(fd, &info);
  std::error_code error;
  return S_ISDIR(info.st_mode)
             ? "directory " + std::filesystem::read_symlink(
                                  "/proc/self/fd/" + std::to_string(fd), error)
                                  .filename()
                                  .string()
             : "file of " + std::to_string(info.st_size);
}

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int fd) {
  Log().Add("sync " + NameOf(fd));
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int syncfs(int fd) noexcept {
  Log().Add("sync file system of " + NameOf(fd));
  return static_cast<int>(syscall(SYS_syncfs, fd));
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int rename(const char* from, const char* to) noexcept {
  Log().Add("put in place " + std::filesystem::path(to).filename().string());
  return static_cast<int>(
      syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace quire {
namespace {

using ::testing::ElementsAre;

class OutputDurabilityTest : public ::testing::Test {
 protected:
  OutputDurabilityTest() { Log().Take(); }

  std::string name() const {
    return std::filesystem::path(directory_).filename();
  }

  const TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(OutputDurabilityTest, SyncsFileThenDirectory) {
  const std::string path = directory_ + "/out";
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto file, OutputFile::Open(path));
    QUIRE_ASSERT_OK(file->Write("12345"));
    QUIRE_ASSERT_OK(file->Commit());
  }
  EXPECT_THAT(Log().Take(), ElementsAre("sync file of 5", "put in place out",
                                        "sync directory " + name()));
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto file, OutputFile::Open(path));
    QUIRE_ASSERT_OK(file->Write("1234567"));
    QUIRE_ASSERT_OK(file->CommitPartial().status());
  }
  EXPECT_THAT(Log().Take(),
              ElementsAre("sync file of 7", "put in place out.partial",
                          "sync directory " + name()));
}

// Once for all files, after the last one.
TEST_F(OutputDurabilityTest, SyncsTheFilesOfABatch) {
  std::map<std::string, FakeArchive> archives;
  for (int i = 0; i < 5; ++i) {
    archives["web"].documents.push_back({absl::StrCat(i), "text", {}, {}, {}});
  }
  const std::unique_ptr<FakeServer> server = FakeServer::Start({}, archives);
  std::ofstream(directory_ + "/items") << "0\n1\n2\n3\n4\n";
  CliSettings settings;
  settings.server = server->address();
  settings.archive = "web";
  settings.quiet = true;
  settings.output_dir = directory_ + "/pages";
  settings.items_file = directory_ + "/items";
  settings.cache_directory = "";
  QUIRE_ASSERT_OK_AND_ASSIGN(ClientOptions options,
                             MakeClientOptions(settings));
  QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Client> client,
                             Client::Connect(std::move(options)));
  QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<OutputFile> output,
                             OutputFile::Open("-"));
  CliRun run(settings, std::move(client), std::move(output));
  QUIRE_ASSERT_OK(RunBatch(run));
  std::vector<std::string> calls = Log().Take();
  ASSERT_EQ(calls.size(), 6u) << ::testing::PrintToString(calls);
  EXPECT_EQ(calls.back(), "sync file system of directory pages");
  calls.pop_back();
  std::sort(calls.begin(), calls.end());
  EXPECT_THAT(calls,
              ElementsAre("put in place 0", "put in place 1", "put in place 2",
                          "put in place 3", "put in place 4"));
}

}  // namespace
}  // namespace quire
