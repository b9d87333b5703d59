// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bytes of copies and patches of a file; archive_repair_test has whole repairs.
#include "server/archive/repair/repair_plan.h"

#include <fcntl.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "codecs/base/checksum.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/noise.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

class RepairPlanTest : public ::testing::Test {
 protected:
  void Add(const std::string& bytes) {
    const std::string path = directory_.Write("copy", bytes);
    QUIRE_ASSERT_OK_AND_ASSIGN(ReadableFile file,
                               OpenReadableFile(AT_FDCWD, path, path));
    copies_.Add(std::move(file));
  }

  const TemporaryDirectory directory_;
  FileCopies copies_;
};

TEST_F(RepairPlanTest, ReadsOnlyWhatACopyHas) {
  Add("0123456789");
  copies_.Add(std::nullopt);
  std::string out(4, '?');
  EXPECT_TRUE(copies_.Read(0, 6, AsMutableBytes(out)));
  EXPECT_EQ(out, "6789");
  EXPECT_FALSE(copies_.Read(0, 7, AsMutableBytes(out)));
  EXPECT_FALSE(copies_.Read(0, std::numeric_limits<uint64_t>::max() - 1,
                            AsMutableBytes(out)));
  EXPECT_FALSE(copies_.Read(1, 0, AsMutableBytes(out)));
  EXPECT_EQ(copies_.ChecksumOf(1, 0, 1), std::nullopt);
  EXPECT_EQ(copies_.ChecksumOf(0, 4, 7), std::nullopt);
}

TEST_F(RepairPlanTest, ChecksumsDoNotDependOnPieces) {
  const std::string bytes = Noise(2 * kRepairPieceBytes + 10, 1);
  Add(bytes);
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, kRepairPieceBytes - 1, kRepairPieceBytes,
        kRepairPieceBytes + 1, 2 * kRepairPieceBytes}) {
    EXPECT_EQ(copies_.ChecksumOf(0, 7, size),
              Checksum64(AsBytes(bytes).subspan(7, size)))
        << size;
  }
}

TEST_F(RepairPlanTest, JoinsAdjacentPartsOfOneCopyAndCountsEach) {
  Add("0123456789");
  FilePlan plan("file", 10);
  EXPECT_TRUE(plan.IsWhole(copies_));
  plan.Require(0, "01", copies_);
  EXPECT_TRUE(plan.IsWhole(copies_)) << "the file has these bytes";
  plan.Replace(6, 2, 1);
  plan.Replace(8, 1, 1);
  plan.Replace(9, 1, 2);
  plan.Require(2, "xy", copies_);
  // After bytes that are known, not those of a copy.
  plan.Replace(4, 1, 0);
  plan.Sort();
  EXPECT_FALSE(plan.IsWhole(copies_));
  EXPECT_EQ(plan.file().replaced_count, 5u);
  EXPECT_EQ(plan.file().replaced_size_bytes, 7u);
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  for (const Patch& patch : plan.patches()) {
    parts.emplace_back(patch.offset, patch.size_bytes);
  }
  EXPECT_THAT(parts,
              testing::ElementsAre(testing::Pair(2, 2), testing::Pair(4, 1),
                                   testing::Pair(6, 3), testing::Pair(9, 1)));
}

TEST_F(RepairPlanTest, AFileOfAnotherSizeOrWithMissingPartsIsNotWhole) {
  Add("0123456789");
  EXPECT_FALSE(FilePlan("file", 9).IsWhole(copies_));
  EXPECT_FALSE(FilePlan("file", 11).IsWhole(copies_));
  FilePlan plan("file", 10);
  plan.AddMissing("block 3");
  EXPECT_FALSE(plan.IsWhole(copies_));
}

}  // namespace
}  // namespace quire
