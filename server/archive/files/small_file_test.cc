// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/small_file.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/small_file_test." + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(ReadSmallFileTest, ReadsAllOfAFile) {
  EXPECT_EQ(*ReadSmallFile(WriteFile("empty", ""), 10), "");
  const std::string text = std::string(99'999, 'x') + '\0';
  EXPECT_EQ(*ReadSmallFile(WriteFile("full", text), text.size()), text);
}

TEST(ReadSmallFileTest, SaysWhatIsWrong) {
  const std::string path = WriteFile("large", std::string(1025, 'x'));
  EXPECT_THAT(ReadSmallFile(path, 1024),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        path + ": must have at most 1 KiB, and is larger"));
  EXPECT_THAT(
      ReadSmallFile(::testing::TempDir() + "/small_file_test.absent", 1),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                HasSubstr("absent: cannot be read: No such file")));
  EXPECT_THAT(ReadSmallFile(::testing::TempDir(), 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("cannot be read: Is a directory")));
  // An endless device.
  EXPECT_THAT(ReadSmallFile("/dev/zero", 1024),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        AllOf(HasSubstr("/dev/zero"), HasSubstr("larger"))));
}

}  // namespace
}  // namespace quire
