// SPDX-License-Identifier: Apache-2.0
#include "client/http/bodies/file_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

// The value; an error gives an empty one and fails the test.
std::string ValueOf(const absl::StatusOr<std::string>& value) {
  QUIRE_EXPECT_OK(value);
  return value.value_or("");
}

class FileDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(path_ / "directory");
    Write("file", "0123456789");
    absl::StatusOr<std::unique_ptr<FileDirectory>> opened =
        FileDirectory::Open(path_.string());
    QUIRE_ASSERT_OK(opened.status());
    files_ = *std::move(opened);
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }

  const TemporaryDirectory scratch_;
  const std::filesystem::path path_ = scratch_.path();
  std::unique_ptr<FileDirectory> files_;
};

TEST(FileNames, StayInTheDirectory) {
  for (const char* name : {"a", "web.wacz", "a b", "...", "..a", "\xff"}) {
    EXPECT_TRUE(IsFileName(name)) << name;
  }
  for (const absl::string_view name :
       {absl::string_view(""), absl::string_view("."), absl::string_view(".."),
        absl::string_view("a/b"), absl::string_view("/a"),
        absl::string_view("a\0b", 3)}) {
    EXPECT_FALSE(IsFileName(name)) << name;
    EXPECT_FALSE(IsServedName(name)) << name;
  }
  EXPECT_FALSE(IsFileName(std::string(256, 'a')));
  EXPECT_TRUE(IsServedName("web.wacz"));
  EXPECT_FALSE(IsServedName(".web.wacz.head"));
  EXPECT_FALSE(IsServedName("web.wacz.pieces.json"));
}

TEST_F(FileDirectoryTest, ReadsParts) {
  const absl::StatusOr<FileVersion> version = files_->Find("file");
  QUIRE_ASSERT_OK(version.status());
  EXPECT_EQ(version->size_bytes, 10U);
  EXPECT_EQ(ValueOf(files_->Read("file", *version, 0, 100)), "0123456789");
  EXPECT_EQ(ValueOf(files_->Read("file", *version, 3, 4)), "3456");
  FileBytes bytes(files_.get(), "file", *version);
  EXPECT_EQ(ValueOf(bytes.Read(9, 1)), "9");
}

TEST_F(FileDirectoryTest, ServesRegularFilesOnly) {
  ASSERT_EQ(mkfifo((path_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("file", path_ / "link");
  std::filesystem::create_symlink("nowhere", path_ / "dangling");
  for (const char* name : {"none", "directory", "pipe", "link", "dangling"}) {
    EXPECT_EQ(files_->Find(name).status().code(), absl::StatusCode::kNotFound)
        << name;
  }
  EXPECT_EQ(FileDirectory::Open((path_ / "file").string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FileDirectory::Open((path_ / "none").string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(FileDirectoryTest, DoesNotMixVersions) {
  const absl::StatusOr<FileVersion> version = files_->Find("file");
  QUIRE_ASSERT_OK(version.status());
  Write("new", "9876543210");
  std::filesystem::rename(path_ / "new", path_ / "file");
  EXPECT_EQ(files_->Read("file", *version, 0, 4).status().code(),
            absl::StatusCode::kDataLoss);
  const absl::StatusOr<FileVersion> replaced = files_->Find("file");
  QUIRE_ASSERT_OK(replaced.status());
  EXPECT_NE(*replaced, *version);
  EXPECT_EQ(ValueOf(files_->Read("file", *replaced, 0, 4)), "9876");
  std::filesystem::remove(path_ / "file");
  EXPECT_EQ(files_->Read("file", *replaced, 0, 4).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace quire
