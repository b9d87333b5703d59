// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/drive_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

class DriveKindTest : public ::testing::Test {
 protected:
  DriveKindTest() : sysfs_(MakeDirectory()) {
    std::filesystem::create_directories(sysfs_ + "/dev/block");
    fd_ = open(sysfs_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_GE(fd_, 0);

    struct stat status {};

    EXPECT_EQ(fstat(fd_, &status), 0);
    number_ = absl::StrCat(major(status.st_dev), ":", minor(status.st_dev));
    link_ = sysfs_ + "/dev/block/" + number_;
  }

  ~DriveKindTest() override {
    close(fd_);
    std::filesystem::remove_all(sysfs_);
  }

  void Write(const std::string& file, const std::string& content) {
    const std::filesystem::path path = sysfs_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  // The device of the current directory.
  void LinkTo(const std::string& directory) {
    std::filesystem::create_directory_symlink(sysfs_ + "/" + directory, link_);
  }

  DrivePlace Detect() { return DetectDrive(fd_, sysfs_); }

  // A unique name: tests of another build may run at the same time.
  static std::string MakeDirectory() {
    std::string path =
        absl::StrCat(::testing::TempDir(), "drive_kind_test_XXXXXX");
    EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
    return path;
  }

  const std::string sysfs_;
  int fd_ = -1;
  std::string number_;
  std::string link_;
};

TEST_F(DriveKindTest, ReadsWhatTheDiskSays) {
  Write("sdx/queue/rotational", "1\n");
  LinkTo("sdx");
  const DrivePlace place = Detect();
  EXPECT_EQ(place.drive.name, "sdx");
  EXPECT_EQ(place.drive.kind, DriveKind::kRotational);
  EXPECT_FALSE(place.drive.has_priorities);
  EXPECT_EQ(place.partition_start_bytes, 0);
  Write("sdx/queue/rotational", "0\n");
  EXPECT_EQ(Detect().drive.kind, DriveKind::kSolidState);
  EXPECT_STREQ(DriveKindName(DriveKind::kRotational), "rotational");
  EXPECT_STREQ(DriveKindName(DriveKind::kSolidState), "solid-state");
}

TEST_F(DriveKindTest, AVirtualDiskDoesNotKnow) {
  Write("devices/virtio1/block/vda/queue/rotational", "1\n");
  LinkTo("devices/virtio1/block/vda");
  EXPECT_EQ(Detect().drive.name, "vda");
  EXPECT_EQ(Detect().drive.kind, DriveKind::kSolidState);
}

TEST_F(DriveKindTest, APartitionIsAPartOfItsDisk) {
  Write("sdx/queue/rotational", "1\n");
  Write("sdx/sdx2/start", "2048\n");
  LinkTo("sdx/sdx2");
  const DrivePlace place = Detect();
  EXPECT_EQ(place.drive.name, "sdx");
  EXPECT_EQ(place.drive.kind, DriveKind::kRotational);
  EXPECT_EQ(place.partition_start_bytes, 1 << 20);
}

TEST_F(DriveKindTest, PrioritiesMustBeThereAndOn) {
  Write("sdx/queue/rotational", "1\n");
  LinkTo("sdx");
  Write("sdx/device/ncq_prio_supported", "1\n");
  EXPECT_FALSE(Detect().drive.has_priorities);
  Write("sdx/device/ncq_prio_enable", "0\n");
  EXPECT_FALSE(Detect().drive.has_priorities);
  Write("sdx/device/ncq_prio_enable", "1\n");
  EXPECT_TRUE(Detect().drive.has_priorities);
  Write("sdx/device/ncq_prio_supported", "0\n");
  EXPECT_FALSE(Detect().drive.has_priorities);
}

TEST_F(DriveKindTest, WhatIsUnknownHasANumberAndNoMovingParts) {
  EXPECT_EQ(Detect().drive.name, number_);
  EXPECT_EQ(Detect().drive.kind, DriveKind::kSolidState);
  EXPECT_EQ(DetectDrive(-1, sysfs_).drive.name, "");
  Write("sdx/queue/rotational", "maybe\n");
  LinkTo("sdx");
  EXPECT_EQ(Detect().drive.name, "sdx");
  EXPECT_EQ(Detect().drive.kind, DriveKind::kSolidState);
}

}  // namespace
}  // namespace quire
