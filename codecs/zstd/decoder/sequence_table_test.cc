// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_table.h"

#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

enum Mode : unsigned { kPredefined, kOneCode, kCompressed, kRepeated };

void ExpectCell(const SequenceCell& cell, uint32_t base, unsigned extra_bits,
                unsigned next_base, unsigned bit_count) {
  EXPECT_EQ(cell.base, base);
  EXPECT_EQ(cell.extra_bits, extra_bits);
  EXPECT_EQ(cell.next_base, next_base);
  EXPECT_EQ(cell.bit_count, bit_count);
}

// Rows of RFC 8878, appendix A.
TEST(SequenceTableTest, KnowsThePredefinedTables) {
  SequenceTable literal_size(SequenceField::kLiteralSize);
  ASSERT_EQ(literal_size.Read(kPredefined, {}), 0u);
  ASSERT_EQ(literal_size.log(), 6u);
  ExpectCell(literal_size.cells()[0], 0, 0, 0, 4);
  ExpectCell(literal_size.cells()[2], 1, 0, 32, 5);
  ExpectCell(literal_size.cells()[63], 8192, 13, 0, 6);
  SequenceTable match_size(SequenceField::kMatchSize);
  ASSERT_EQ(match_size.Read(kPredefined, {}), 0u);
  ASSERT_EQ(match_size.log(), 6u);
  ExpectCell(match_size.cells()[0], 3, 0, 0, 6);
  ExpectCell(match_size.cells()[63], 1027, 10, 0, 6);
  SequenceTable distance(SequenceField::kDistance);
  ASSERT_EQ(distance.Read(kPredefined, {}), 0u);
  ASSERT_EQ(distance.log(), 5u);
  ExpectCell(distance.cells()[0], 1, 0, 0, 5);
  ExpectCell(distance.cells()[31], 1 << 24, 24, 0, 5);
}

TEST(SequenceTableTest, TakesOneCodeAndKeepsItForRepetition) {
  SequenceTable table(SequenceField::kLiteralSize);
  EXPECT_EQ(table.Read(kRepeated, {}), std::nullopt);
  EXPECT_EQ(table.Read(kOneCode, {}), std::nullopt);
  const std::vector<uint8_t> too_high = {36};
  EXPECT_EQ(table.Read(kOneCode, too_high), std::nullopt);
  const std::vector<uint8_t> highest = {35, 99};
  EXPECT_EQ(table.Read(kOneCode, highest), 1u);
  EXPECT_EQ(table.Read(kRepeated, highest), 0u);
  EXPECT_EQ(table.log(), 0u);
  ExpectCell(table.cells()[0], 65536, 16, 0, 0);
  table.Reset();
  EXPECT_EQ(table.Read(kRepeated, highest), std::nullopt);
}

TEST(SequenceTableTest, BuildsWhatIsDescribedWithinTheFieldsLimit) {
  // A log of 9 is too large for distances.
  const std::vector<uint8_t> zeros(60, 0x04);
  SequenceTable distance(SequenceField::kDistance);
  EXPECT_EQ(distance.Read(kCompressed, zeros), std::nullopt);
  // A log of 5, and one code with all 32 states: its count + 1 + 30, in 6 bits.
  const std::vector<uint8_t> one = {0xF0, 0x03};
  for (const SequenceField field :
       {SequenceField::kLiteralSize, SequenceField::kDistance,
        SequenceField::kMatchSize}) {
    SequenceTable table(field);
    ASSERT_EQ(table.Read(kCompressed, one), 2u);
    EXPECT_EQ(table.log(), 5u);
    for (unsigned state = 0; state < 32; ++state) {
      EXPECT_EQ(table.cells()[state].bit_count, 0u);
    }
  }
}

}  // namespace
}  // namespace quire
