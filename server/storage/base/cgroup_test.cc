// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/cgroup.h"

#include <sched.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

class CgroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    root_.Write(path, text);
  }

  std::optional<uint32_t> Cores() { return CgroupCores(root_.path()); }

  const TemporaryDirectory root_;
};

TEST_F(CgroupTest, ListsAGroupAndItsAncestors) {
  EXPECT_THAT(CgroupDirectories("cpu", root_.path()), ElementsAre());
  Write("/proc/self/cgroup", "4:cpu,memory:/x/y/\n1:name=systemd:/z\n0::/a\n");
  EXPECT_THAT(CgroupDirectories("memory", root_.path()),
              ElementsAre("/sys/fs/cgroup/memory/x/y",
                          "/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory",
                          "/sys/fs/cgroup/a", "/sys/fs/cgroup"));
  Write("/proc/self/cgroup", "0::/\nnonsense\n");
  EXPECT_THAT(CgroupDirectories("cpu", root_.path()),
              ElementsAre("/sys/fs/cgroup"));
}

TEST_F(CgroupTest, TakesTheLowestQuotaOfTheGroupsAbove) {
  EXPECT_EQ(Cores(), std::nullopt);
  Write("/proc/self/cgroup", "0::/a/b/c\n");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(Cores(), std::nullopt);
  Write("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(Cores(), 8U);
  Write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(Cores(), 3U);
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(Cores(), 3U);
  Write("/sys/fs/cgroup/cpu.max", "900000 100000\n");
  EXPECT_EQ(Cores(), 3U);
  Write("/sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(Cores(), 1U);
}

TEST_F(CgroupTest, KnowsVersion1AndContainers) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/0123\n4:memory:/x\n");
  // The path is the machine's; only the root exists here.
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), std::nullopt);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(Cores(), 2U);
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/\n");
  EXPECT_EQ(Cores(), 2U);
}

TEST_F(CgroupTest, IgnoresMalformedQuotas) {
  Write("/proc/self/cgroup", "0::/\n");
  for (const char* const text :
       {"", "5", "100000 0", "-5 100000", "lots 1", "1 2 3"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Cores(), std::nullopt) << text;
  }
  Write("/sys/fs/cgroup/cpu.max", "18446744073709551615 1");
  EXPECT_EQ(Cores(), UINT32_MAX);
}

TEST(UsableCoresTest, ObeysTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(UsableCores(), 1U);
  EXPECT_LE(UsableCores(), static_cast<uint32_t>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCores(), 1U);
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace quire
