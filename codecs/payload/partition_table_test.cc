// SPDX-License-Identifier: Apache-2.0
#include "codecs/payload/partition_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/varint.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPartSize = kPartitionSizeBytesMin;

std::string Head(const std::vector<uint32_t>& sizes) {
  std::string head(PartitionTableSizeMax(sizes.size()), '?');
  head.resize(WritePartitionTable(sizes, AsMutableBytes(head)));
  return head;
}

absl::Status Parse(const std::string& stored, size_t raw_size,
                   PartitionTable& table) {
  return table.Parse(AsBytes(stored), PartitionCount(raw_size, kPartSize));
}

void ExpectRefused(const std::string& stored, size_t raw_size,
                   const char* message) {
  PartitionTable table;
  EXPECT_THAT(Parse(stored, raw_size, table),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
      << message;
}

TEST(PartitionTableTest, FindsWhatWasWritten) {
  const std::string stored =
      Head({3, 200, 1}) + "abc" + std::string(200, 'd') + "e";
  for (const size_t raw_size :
       {2 * size_t{kPartSize} + 1, 3 * size_t{kPartSize}}) {
    PartitionTable table;
    ASSERT_THAT(Parse(stored, raw_size, table), IsOk());
    ASSERT_EQ(table.count(), 3u);
    EXPECT_EQ(AsText(table.Stored(0)), "abc");
    EXPECT_EQ(table.Stored(1).size(), 200u);
    EXPECT_EQ(AsText(table.Stored(2)), "e");
  }
}

TEST(PartitionTableTest, OnePartitionTakesNoBytes) {
  EXPECT_EQ(Head({5}), "");
  // The table refers to it.
  const std::string stored = "hello";
  PartitionTable table;
  ASSERT_THAT(Parse(stored, 1, table), IsOk());
  EXPECT_EQ(AsText(table.Stored(0)), "hello");
}

TEST(PartitionTableTest, FitsTheSizeToTheCount) {
  EXPECT_EQ(FittedPartitionSize(1, 0), kBlockSizeBytesMax);
  EXPECT_EQ(FittedPartitionSize(kBlockSizeBytesMax, kPartSize), kPartSize);
  EXPECT_EQ(FittedPartitionSize(kBlockSizeBytesMax + 1, kPartSize),
            2 * kPartSize);
  EXPECT_EQ(FittedPartitionSize(6 * kBlockSizeBytesMax, kPartSize),
            8 * kPartSize);
  EXPECT_EQ(FittedPartitionSize(6 * kBlockSizeBytesMax, 0), kBlockSizeBytesMax);
}

TEST(PartitionTableTest, HasSpaceForTheLargestBlock) {
  constexpr size_t kCount = kBlockSizeBytesMax / kPartSize;
  std::string stored = Head(std::vector<uint32_t>(kCount, 5000));
  EXPECT_EQ(stored.size(), 2 * (kCount - 1));
  stored.append(kCount * 5000, 'x');
  PartitionTable table;
  ASSERT_THAT(Parse(stored, kBlockSizeBytesMax, table), IsOk());
  EXPECT_EQ(table.count(), kCount);
  EXPECT_EQ(table.Stored(kCount - 1).size(), 5000u);
}

TEST(PartitionTableTest, RefusesBadHeads) {
  // A size of 0, in either field.
  ExpectRefused(std::string("\0xyz", 4), 2 * kPartSize, "claims 0 stored");
  ExpectRefused(Head({2, 2}) + "xx", 2 * kPartSize, "expected more than 2");
  ExpectRefused("", kPartSize, "has 0 bytes of partitions");
  // More than `stored` has: in one partition, in two together, in the sum of
  // sizes in 64 bits.
  ExpectRefused(Head({9, 1}) + "xyz", 2 * kPartSize, "claims 9 stored");
  ExpectRefused(Head({3, 2, 1}) + "vwxyz", 3 * kPartSize,
                "expected more than 5");
  std::string huge;
  AppendVarint(3, huge);
  AppendVarint(~uint64_t{0} - 1, huge);
  ExpectRefused(huge + "vwxyz", 3 * kPartSize, "claims 18446744073709551614");
  // Too few sizes, and one that is not in its shortest form.
  ExpectRefused("\x01\x01\x81", 4 * kPartSize,
                "malformed variable-length integer");
  ExpectRefused(std::string("\x81\0xyz", 5), 2 * kPartSize,
                "malformed variable-length integer");
}

}  // namespace
}  // namespace quire
