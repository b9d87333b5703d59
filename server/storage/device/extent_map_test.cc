// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/extent_map.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Extents that the kernel reports for any file, if set.
const std::vector<fiemap_extent>* injected_extents = nullptr;

}  // namespace
}  // namespace quire

// The linker prefers it to that of the C library.
// NOLINTNEXTLINE(google-runtime-int)
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (quire::injected_extents == nullptr || request != FS_IOC_FIEMAP) {
    return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  }
  fiemap header{};
  std::memcpy(&header, argument, sizeof(header));
  header.fm_mapped_extents = 0;
  char* out = static_cast<char*>(argument) + sizeof(header);
  for (const fiemap_extent& extent : *quire::injected_extents) {
    if (extent.fe_logical >= header.fm_start &&
        header.fm_mapped_extents < header.fm_extent_count) {
      std::memcpy(out, &extent, sizeof(extent));
      out += sizeof(extent);
      ++header.fm_mapped_extents;
    }
  }
  std::memcpy(argument, &header, sizeof(header));
  return 0;
}

namespace quire {
namespace {

TEST(ExtentMapTest, ExtentsWithoutAPlaceOfTheirOwnHaveNone) {
  for (const int flag :
       {FIEMAP_EXTENT_UNKNOWN, FIEMAP_EXTENT_DELALLOC, FIEMAP_EXTENT_ENCODED,
        FIEMAP_EXTENT_DATA_ENCRYPTED | FIEMAP_EXTENT_ENCODED,
        FIEMAP_EXTENT_NOT_ALIGNED, FIEMAP_EXTENT_DATA_INLINE,
        FIEMAP_EXTENT_DATA_TAIL, FIEMAP_EXTENT_UNWRITTEN}) {
    SCOPED_TRACE(flag);
    std::vector<fiemap_extent> extents(3);
    for (size_t i = 0; i < 3; ++i) {
      extents[i].fe_logical = i * 4096;
      extents[i].fe_length = 4096;
      extents[i].fe_physical = 1'000'000 + i * 4096;
    }
    extents[1].fe_flags = static_cast<uint32_t>(flag);
    extents[2].fe_flags = FIEMAP_EXTENT_LAST;
    injected_extents = &extents;
    const absl::StatusOr<ExtentMap> map = ExtentMap::Read(0);
    injected_extents = nullptr;
    QUIRE_ASSERT_OK(map);
    EXPECT_EQ(map->run_count(), 2);
    EXPECT_EQ(map->Find(FileOffset{4095}).physical, 1'004'095);
    EXPECT_EQ(map->Find(FileOffset{4096}).physical, std::nullopt);
    EXPECT_EQ(map->Find(FileOffset{4096}).end.value, 8192);
    EXPECT_EQ(map->Find(FileOffset{8192}).physical, 1'008'192);
  }
}

// Shared, merged or encrypted data is at its reported position.
TEST(ExtentMapTest, OtherFlagsDoNotMatter) {
  std::vector<fiemap_extent> extents(1);
  extents[0].fe_length = 4096;
  extents[0].fe_physical = 8192;
  extents[0].fe_flags =
      FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_MERGED | FIEMAP_EXTENT_LAST;
  injected_extents = &extents;
  const absl::StatusOr<ExtentMap> map = ExtentMap::Read(0);
  injected_extents = nullptr;
  QUIRE_ASSERT_OK(map);
  EXPECT_EQ(map->Find(FileOffset{1}).physical, 8193);
}

TEST(ExtentMapTest, FindsPlacesAndWhereRunsEnd) {
  const ExtentMap map({{{0}, 100, 5'000},
                       {{100}, 50, 1'000},
                       {{200}, 10, 1'150},
                       {{210}, 10, 1'160}});
  EXPECT_EQ(map.run_count(), 3);

  const struct {
    uint64_t offset;
    std::optional<uint64_t> physical;
    uint64_t end;
  } cases[] = {
      {0, 5'000, 100},          {99, 5'099, 100},         {100, 1'000, 150},
      {149, 1'049, 150},        {200, 1'150, 220},        {215, 1'165, 220},
      {150, std::nullopt, 200}, {199, std::nullopt, 200},
  };

  for (const auto& expected : cases) {
    const ExtentMap::Place place = map.Find(FileOffset{expected.offset});
    EXPECT_EQ(place.physical, expected.physical) << expected.offset;
    EXPECT_EQ(place.end.value, expected.end) << expected.offset;
  }
  EXPECT_EQ(map.Find(FileOffset{220}).physical, std::nullopt);
  EXPECT_GT(map.Find(FileOffset{220}).end.value, uint64_t{1} << 62);
}

TEST(ExtentMapTest, AHoleAtTheBeginningHasNoPlace) {
  const ExtentMap map({{{4'096}, 4'096, 0}});
  EXPECT_EQ(map.Find(FileOffset{0}).physical, std::nullopt);
  EXPECT_EQ(map.Find(FileOffset{0}).end.value, 4'096);
  EXPECT_EQ(map.Find(FileOffset{5'000}).physical, 904);
}

TEST(ExtentMapTest, NothingIsKnownWithoutRuns) {
  const ExtentMap map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.Find(FileOffset{7}).physical, std::nullopt);
}

// A synced file with a hole, in the current directory.
class RealFile {
 public:
  static constexpr uint64_t kHoleStart = 1 << 20;
  static constexpr uint64_t kHoleEnd = 3 << 20;
  static constexpr uint64_t kSizeBytes = 4 << 20;

  RealFile() {
    std::string path = "extent_map_test_XXXXXX";
    fd_ = mkstemp(path.data());
    EXPECT_GE(fd_, 0);
    unlink(path.c_str());
    const std::vector<char> data(1 << 20, 'x');
    for (const uint64_t start : {uint64_t{0}, kHoleEnd}) {
      EXPECT_EQ(
          pwrite(fd_, data.data(), data.size(), static_cast<off_t>(start)),
          static_cast<ssize_t>(data.size()));
    }
    EXPECT_EQ(fsync(fd_), 0);
  }

  ~RealFile() { close(fd_); }

  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

TEST(ExtentMapTest, ReadsWhatTheFileSystemSays) {
  const RealFile file;
  const absl::StatusOr<ExtentMap> map = ExtentMap::Read(file.fd());
  if (absl::IsUnimplemented(map.status())) {
    GTEST_SKIP() << map.status();
  }
  QUIRE_ASSERT_OK(map);
  uint64_t known_bytes = 0;
  uint64_t offset = 0;
  while (offset < RealFile::kSizeBytes) {
    const ExtentMap::Place place = map->Find(FileOffset{offset});
    ASSERT_GT(place.end.value, offset);
    const uint64_t end = std::min(place.end.value, RealFile::kSizeBytes);
    if (place.physical.has_value()) {
      EXPECT_TRUE(end <= RealFile::kHoleStart || offset >= RealFile::kHoleEnd)
          << offset << " to " << end;
      known_bytes += end - offset;
    }
    offset = end;
  }
  // A file system that compresses reports nothing, others all.
  EXPECT_TRUE(known_bytes == 0 || known_bytes == 2 << 20) << known_bytes;
}

TEST(ExtentMapTest, AFileInTooManyPiecesHasNoMap) {
  const RealFile file;
  const absl::StatusOr<ExtentMap> all = ExtentMap::Read(file.fd());
  if (!all.ok() || all->run_count() < 2) {
    GTEST_SKIP() << "this file system tells nothing of two pieces";
  }
  EXPECT_THAT(ExtentMap::Read(file.fd(), 1),
              HasCode(absl::StatusCode::kResourceExhausted));
}

TEST(ExtentMapTest, WhatIsNoFileHasNoMap) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(ExtentMap::Read(ends[0]).ok());
  EXPECT_FALSE(ExtentMap::Read(-1).ok());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace quire
