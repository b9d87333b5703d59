// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/available_memory.h"

#include <string>

#include "codecs/base/byte_size.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() {
    Write("/proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree: 1 kB\n"
          "MemAvailable:    8388608 kB\n");
  }

  void Write(const std::string& path, const std::string& text) {
    directory_.Write(path, text);
  }

  // Returns the cgroup limit that the result is derived from.
  uint64_t LimitFound() {
    const auto found = FindAvailableMemory(directory_.path());
    EXPECT_TRUE(found.ok()) << found.status();
    source_ = found.ok() ? found->source : "";
    return found.ok() ? found->size_bytes / 7 * 8 : 0;
  }

  const TemporaryDirectory directory_;
  std::string source_;
};

TEST_F(AvailableMemoryTest, TakesTheLowestOfTheGroupsAbove) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/memory.max", "2147483648\n");
  EXPECT_EQ(LimitFound(), 2 * kGiB);
  EXPECT_THAT(source_, HasSubstr("7/8 of 2 GiB, the limit in "
                                 "/sys/fs/cgroup/a/memory.max"));
  Write("/sys/fs/cgroup/a/b/memory.high", "1073741824\n");
  EXPECT_EQ(LimitFound(), 1 * kGiB);
}

TEST_F(AvailableMemoryTest, KnowsVersion1AndContainers) {
  Write("/proc/self/cgroup",
        "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n1:name=systemd:/x\n");
  // The path is the machine's; only the root exists here.
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(LimitFound(), 512 * kMiB);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(LimitFound(), 1 * kGiB);
}

TEST_F(AvailableMemoryTest, WithoutALimitTakesHalfOfWhatIsAvailable) {
  const auto expect_half = [this] {
    QUIRE_ASSERT_OK_AND_ASSIGN(const AvailableMemory found,
                               FindAvailableMemory(directory_.path()));
    EXPECT_EQ(found.size_bytes, 4 * kGiB);
    EXPECT_THAT(found.source, HasSubstr("half of 8 GiB"));
  };
  expect_half();
  // Version 1's value for "no limit".
  Write("/proc/self/cgroup", "4:memory:/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  expect_half();
  for (const char* text : {"max\n", "", "-1\n", "lots"}) {
    Write("/proc/self/cgroup", "0::/a/\n");
    Write("/sys/fs/cgroup/a/memory.max", text);
    expect_half();
  }
}

TEST_F(AvailableMemoryTest, SaysWhenNothingIsKnown) {
  Write("/proc/meminfo", "MemTotal: what\n");
  EXPECT_THAT(FindAvailableMemory(directory_.path()).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("give a size")));
}

}  // namespace
}  // namespace quire
