// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string Content(size_t size) {
  std::string content(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    content[i] = static_cast<char>(i * 2654435761 >> 13);
  }
  return content;
}

TEST(DirectFileTest, OpensOrSaysWhyNot) {
  TemporaryDirectory directory;
  const std::string content = Content(10'000);
  WriteTestFile(directory / "file", content);
  const auto direct = OpenDirect(AT_FDCWD, directory / "file", "the file");
  if (!direct.ok()) {
    // The directory for temporary files may be in memory.
    EXPECT_THAT(direct, FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("the file: ")));
    return;
  }
  EXPECT_TRUE(std::has_single_bit(direct->alignment_bytes));
  EXPECT_LE(direct->alignment_bytes, kDirectAlignmentBytesMax);
  alignas(kDirectAlignmentBytesMax) static char pages[12'288];
  // From the second alignment unit to the end of the file.
  const size_t start = direct->alignment_bytes;
  const ssize_t size = pread(direct->fd.get(), pages, sizeof(pages) - start,
                             static_cast<off_t>(start));
  ASSERT_EQ(size, static_cast<ssize_t>(content.size() - start));
  EXPECT_TRUE(std::equal(pages, pages + size,
                         content.begin() + static_cast<ptrdiff_t>(start)));
}

TEST(DirectFileTest, NamesTheReasonWhereTheFileSystemRefuses) {
  // Files of /proc return EINVAL for O_DIRECT.
  EXPECT_THAT(OpenDirect(AT_FDCWD, "/proc/self/maps", "maps"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("maps: cannot be read past the page cache")));
  EXPECT_THAT(OpenDirect(AT_FDCWD, "/nowhere/at/all", "none"),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("none: ")));
}

ArchiveWriterOptions SmallBlocks() {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  return options;
}

class DirectArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(7);
    QUIRE_ASSERT_OK(WriteTestArchive(path_, SmallBlocks(),
                                     {RandomTestSegment(40, 3000, random),
                                      RandomTestSegment(9, 3000, random)}));
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "archive";
};

TEST_F(DirectArchiveTest, ExtentsNameBothFiles) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto plain, Archive::Open(path_));
  EXPECT_EQ(plain->BlockExtent({}).direct_fd, -1);
  EXPECT_EQ(plain->direct_io_note(), "");

  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto direct, Archive::Open(path_, {.direct_io = DirectIo::kAuto}));
  const Extent extent = direct->BlockExtent({.segment_index = 1});
  if (extent.direct_fd == -1) {
    EXPECT_THAT(direct->direct_io_note(), HasSubstr("segment-"));
    EXPECT_THAT(Archive::Open(path_, {.direct_io = DirectIo::kOn}),
                HasCode(absl::StatusCode::kFailedPrecondition));
    return;
  }
  EXPECT_EQ(direct->direct_io_note(), "");
  QUIRE_EXPECT_OK(Archive::Open(path_, {.direct_io = DirectIo::kOn}));
  EXPECT_NE(extent.direct_fd, extent.fd);
  EXPECT_EQ(fcntl(extent.fd, F_GETFL) & O_DIRECT, 0);
  EXPECT_EQ(fcntl(extent.direct_fd, F_GETFL) & O_DIRECT, O_DIRECT);
  const std::filesystem::path links = "/proc/self/fd";
  EXPECT_EQ(
      std::filesystem::read_symlink(links / std::to_string(extent.fd)),
      std::filesystem::read_symlink(links / std::to_string(extent.direct_fd)));
  // Offline reading still uses the page cache.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      ReadTestRange(*direct, {{}, direct->info().size_bytes}));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string same,
      ReadTestRange(*plain, {{}, plain->info().size_bytes}));
  EXPECT_EQ(text, same);
}

}  // namespace
}  // namespace quire
