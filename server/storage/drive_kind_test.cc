// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/drive_kind.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using Drive = BlockStoreOptions::Drive;

class DriveKindTest : public ::testing::Test {
 protected:
  DriveKindTest() {
    std::filesystem::create_directories(sysfs_ + "/dev/block");

    struct stat status {};

    EXPECT_EQ(stat(sysfs_.c_str(), &status), 0);
    link_ = absl::StrCat(sysfs_, "/dev/block/", major(status.st_dev), ":",
                         minor(status.st_dev));
  }

  ~DriveKindTest() override { std::filesystem::remove_all(sysfs_); }

  // A disk of sysfs with one partition.
  void MakeDisk(const std::string& rotational) {
    const std::string disk = sysfs_ + "/disk";
    std::filesystem::create_directories(disk + "/queue");
    std::filesystem::create_directories(disk + "/partition");
    std::ofstream(disk + "/queue/rotational") << rotational;
  }

  const std::string sysfs_ = absl::StrCat(
      ::testing::TempDir(), "drive_kind_",
      ::testing::UnitTest::GetInstance()->random_seed(), "_",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::string link_;
};

TEST_F(DriveKindTest, ReadsWhatTheDiskSays) {
  MakeDisk("1\n");
  std::filesystem::create_directory_symlink(sysfs_ + "/disk", link_);
  EXPECT_EQ(DetectDrive(sysfs_, sysfs_), Drive::kRotational);
  MakeDisk("0\n");
  EXPECT_EQ(DetectDrive(sysfs_, sysfs_), Drive::kSolidState);
}

TEST_F(DriveKindTest, APartitionIsWhatItsDiskIs) {
  MakeDisk("1\n");
  std::filesystem::create_directory_symlink(sysfs_ + "/disk/partition", link_);
  EXPECT_EQ(DetectDrive(sysfs_, sysfs_), Drive::kRotational);
}

TEST_F(DriveKindTest, WhatIsUnknownHasNoMovingParts) {
  EXPECT_EQ(DetectDrive(sysfs_, sysfs_), Drive::kSolidState);
  EXPECT_EQ(DetectDrive(sysfs_ + "/absent", sysfs_), Drive::kSolidState);
  MakeDisk("maybe\n");
  std::filesystem::create_directory_symlink(sysfs_ + "/disk", link_);
  EXPECT_EQ(DetectDrive(sysfs_, sysfs_), Drive::kSolidState);
}

}  // namespace
}  // namespace quire
