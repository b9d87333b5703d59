// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/file_io.h"

#include <fcntl.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Retrying does not help: readers must not take it for a failure of the device.
TEST(ReadExactlyTest, ATruncatedFileIsDamage) {
  const std::string path = ::testing::TempDir() + "/file_io_test";
  std::ofstream(path, std::ios::binary) << "0123456789";
  const auto file = OpenReadableFile(AT_FDCWD, path, path);
  QUIRE_ASSERT_OK(file);
  std::string text(8, '?');
  QUIRE_EXPECT_OK(ReadExactly(file->fd.get(), 2, AsMutableBytes(text), path));
  EXPECT_EQ(text, "23456789");
  EXPECT_THAT(ReadExactly(file->fd.get(), 3, AsMutableBytes(text), path),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("ends at byte 10, expected 1 more")));
}

}  // namespace
}  // namespace quire
