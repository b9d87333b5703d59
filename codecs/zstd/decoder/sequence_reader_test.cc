// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/sequence_reader.h"

#include <initializer_list>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/codecs/zstd_test_bits.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

// One sequence: the extra bits of one code per field.
struct Numbers {
  // 64 to 127.
  uint64_t literal_size = 64;
  // Numbered by the format: 1 to 7, or 1 << 20 and up with far.
  uint64_t distance = 4;
};

constexpr uint8_t kLiteralSizeCode = 25;  // 64 + 6 bits
constexpr uint8_t kNoLiteralsCode = 0;
constexpr uint8_t kFarCode = 20;
constexpr uint8_t kMatchSizeCode = 7;  // 10, without extra bits

class SequenceReaderTest : public ::testing::Test {
 protected:
  SequenceReaderTest() {
    reader_.Reset();
    space_ = {.dictionary = dictionary_, .output = output_};
  }

  // A section of RLE tables.
  static std::vector<uint8_t> Section(const std::vector<Numbers>& all,
                                      uint8_t literal_size_code,
                                      uint8_t distance_code) {
    TestBitWriter writer;
    for (size_t i = all.size(); i > 0; --i) {
      if (literal_size_code == kLiteralSizeCode) {
        writer.Write(all[i - 1].literal_size - 64, 6);
      }
      writer.Write(all[i - 1].distance - (uint64_t{1} << distance_code),
                   distance_code);
    }
    std::vector<uint8_t> section = {static_cast<uint8_t>(all.size()), 0x54,
                                    literal_size_code, distance_code,
                                    kMatchSizeCode};
    const std::vector<uint8_t> stream = writer.Stream();
    section.insert(section.end(), stream.begin(), stream.end());
    return section;
  }

  bool Open(const std::vector<uint8_t>& section) {
    stream_ = TestStream(section);
    return reader_.Open(stream_.view());
  }

  // Reads all in one batch.
  bool Read(const std::vector<Numbers>& all, uint8_t literal_size_code,
            uint8_t distance_code) {
    return Open(Section(all, literal_size_code, distance_code)) &&
           reader_.ReadBatch(space_, progress_);
  }

  // Distance of each match if all are in the output buffer.
  std::vector<size_t> Distances(size_t position) const {
    std::vector<size_t> distances;
    for (const CopySequence& sequence : reader_.batch()) {
      position += sequence.literal_size & ~CopySequence::kCarefully;
      distances.push_back(position -
                          static_cast<size_t>(sequence.match - output_.data()));
      position += sequence.match_size;
    }
    return distances;
  }

  std::vector<uint8_t> dictionary_ = std::vector<uint8_t>(1 << 21);
  std::vector<uint8_t> output_ = std::vector<uint8_t>(2000);
  CopySpace space_;
  SequenceProgress progress_ = {.position = 100,
                                .position_max = 2000,
                                .wanted_end = 2000,
                                .literal_count = 1000};
  SequenceReader reader_;
  TestStream stream_{{}};
};

TEST_F(SequenceReaderTest, ResolvesRecentDistances) {
  // 1, 4 and 8 are the recent distances at the start of a frame.
  ASSERT_TRUE(Read({{64, 2}, {64, 3}, {64, 3}, {64, 2}}, kLiteralSizeCode, 1));
  EXPECT_THAT(Distances(100), ElementsAre(4, 8, 1, 8));
  // Without literals each means the next; the last is the first less one.
  progress_.position = 100;
  ASSERT_TRUE(Read({{0, 3}, {0, 2}, {0, 2}, {0, 3}}, kNoLiteralsCode, 1));
  EXPECT_THAT(Distances(100), ElementsAre(7, 1, 8, 7));
  progress_.position = 100;
  ASSERT_TRUE(Read({{64, 7}, {64, 4}}, kLiteralSizeCode, 2));
  EXPECT_THAT(Distances(100), ElementsAre(4, 1));
  // One less than one is invalid.
  EXPECT_FALSE(Read({{0, 3}}, kNoLiteralsCode, 1));
}

TEST_F(SequenceReaderTest, FindsMatchesInTheDictionary) {
  const size_t far = (size_t{1} << 20) + 12345;
  ASSERT_TRUE(Read({{70, far + 3}}, kLiteralSizeCode, kFarCode));
  const CopySequence& sequence = reader_.batch().front();
  EXPECT_EQ(sequence.match,
            dictionary_.data() + dictionary_.size() - (far - 170));
  EXPECT_EQ(sequence.literal_size, 70u);
  EXPECT_EQ(sequence.match_size, 10u);
  EXPECT_EQ(progress_.position, 180u);
  EXPECT_EQ(progress_.literal_count, 930u);
}

TEST_F(SequenceReaderTest, ReachesTheDictionarysFirstByteAndNoFurther) {
  // After 100 bytes of text and 64 literals.
  const size_t position = 164;
  const size_t far = (size_t{1} << 20) + 12345;
  const auto reads = [&](size_t dictionary_size) {
    progress_ = {.position = 100,
                 .position_max = 2000,
                 .wanted_end = 2000,
                 .literal_count = 1000};
    space_.dictionary = ByteView(dictionary_).last(dictionary_size);
    return Read({{64, far + 3}}, kLiteralSizeCode, kFarCode);
  };
  EXPECT_TRUE(reads(far - position + 1));
  EXPECT_EQ(reader_.batch().front().match, space_.dictionary.data() + 1);
  EXPECT_TRUE(reads(far - position));
  EXPECT_EQ(reader_.batch().front().match, space_.dictionary.data());
  EXPECT_FALSE(reads(far - position - 1));
}

TEST_F(SequenceReaderTest, ReachesTheTextsFirstByteWithoutDictionary) {
  space_.dictionary = {};
  const size_t position = 164;
  EXPECT_TRUE(Read({{64, position + 3}}, kLiteralSizeCode, 7));
  EXPECT_EQ(reader_.batch().front().match, output_.data());
  progress_.position = 100;
  EXPECT_FALSE(Read({{64, position + 1 + 3}}, kLiteralSizeCode, 7));
}

// Wide steps read up to kCopyExcess bytes after a match.
TEST_F(SequenceReaderTest, MarksMatchesNearTheDictionarysEnd) {
  const size_t position = 164;
  const size_t match_size = 10;
  for (size_t behind = 0; behind < 60; ++behind) {
    progress_.position = 100;
    progress_.literal_count = 1000;
    const size_t distance = position + match_size + behind;
    ASSERT_TRUE(Read({{64, distance + 3}}, kLiteralSizeCode, 7));
    const CopySequence& sequence = reader_.batch().front();
    EXPECT_EQ(sequence.match,
              dictionary_.data() + dictionary_.size() - match_size - behind);
    EXPECT_EQ((sequence.literal_size & CopySequence::kCarefully) != 0,
              behind < kCopyExcess)
        << behind;
  }
}

TEST_F(SequenceReaderTest, MarksMatchesThatWideStepsWouldSpoil) {
  ASSERT_TRUE(Read({{64, 15 + 3}, {64, 16 + 3}}, kLiteralSizeCode, 4));
  EXPECT_NE(reader_.batch()[0].literal_size & CopySequence::kCarefully, 0u);
  EXPECT_EQ(reader_.batch()[1].literal_size & CopySequence::kCarefully, 0u);
}

TEST_F(SequenceReaderTest, StopsWhereNoMoreIsWanted) {
  const std::vector<Numbers> all(5);
  // In the second sequence's match, at its start, and in its literals.
  for (const size_t cut : {size_t{4}, size_t{10}, size_t{30}}) {
    progress_ = {.position = 100,
                 .position_max = 2000,
                 .wanted_end = 100 + 2 * 74 - cut,
                 .literal_count = 1000};
    ASSERT_TRUE(Read(all, kLiteralSizeCode, 2));
    ASSERT_EQ(reader_.batch().size(), 2u);
    EXPECT_EQ(progress_.position, progress_.wanted_end);
    const CopySequence& last = reader_.batch()[1];
    const size_t literal_size = last.literal_size & ~CopySequence::kCarefully;
    EXPECT_EQ(literal_size + last.match_size, 74 - cut);
    EXPECT_EQ(last.match_size, cut < 10 ? 10 - cut : 0);
  }
}

TEST_F(SequenceReaderTest, RefusesTooMuch) {
  progress_.literal_count = 63;
  EXPECT_FALSE(Read({{64, 4}}, kLiteralSizeCode, 2));
  progress_.literal_count = 64;
  EXPECT_TRUE(Read({{64, 4}}, kLiteralSizeCode, 2));
  EXPECT_EQ(progress_.literal_count, 0u);
  EXPECT_FALSE(Read({{64, 4}}, kLiteralSizeCode, 2));
  progress_.literal_count = 1000;
  progress_.position = 100;
  progress_.position_max = 173;
  EXPECT_FALSE(Read({{64, 4}}, kLiteralSizeCode, 2));
  progress_.position_max = 174;
  EXPECT_TRUE(Read({{64, 4}}, kLiteralSizeCode, 2));
}

// A frame's first section has no earlier tables to repeat.
TEST_F(SequenceReaderTest, RepeatsNoTableOfTheFrameBefore) {
  for (size_t field = 0; field < 3; ++field) {
    std::vector<uint8_t> section = Section({Numbers()}, kLiteralSizeCode, 2);
    EXPECT_TRUE(Open(section)) << field;
    // Mode 3 instead of mode 1 and its code.
    section[1] = static_cast<uint8_t>(section[1] | 0x80 >> 2 * field);
    section.erase(section.begin() + 2 + static_cast<ptrdiff_t>(field));
    EXPECT_TRUE(Open(section)) << field;
    reader_.Reset();
    EXPECT_FALSE(Open(section)) << field;
  }
}

TEST_F(SequenceReaderTest, WantsTheSectionToEndWithItsLastSequence) {
  std::vector<uint8_t> section = Section({{}, {}, {}}, kLiteralSizeCode, 2);
  for (const uint8_t count : std::initializer_list<uint8_t>{2, 4, 100}) {
    section[0] = count;
    ASSERT_TRUE(Open(section));
    EXPECT_FALSE(reader_.ReadBatch(space_, progress_));
  }
  section[0] = 3;
  ASSERT_TRUE(Open(section));
  EXPECT_TRUE(reader_.ReadBatch(space_, progress_));
}

TEST_F(SequenceReaderTest, ReadsAllFormsOfTheCount) {
  const auto count_of = [&](std::vector<uint8_t> section) {
    section.insert(section.end(), {0, 0xFF, 0xFF, 0xFF, 0xFF});
    return Open(section) ? reader_.left() : 0;
  };
  EXPECT_EQ(count_of({127}), 127u);
  EXPECT_EQ(count_of({0x81, 0x23}), 0x123u);
  EXPECT_EQ(count_of({0xFE, 0xFF}), 0x7EFFu);
  EXPECT_EQ(count_of({0xFF, 0x34, 0x12}), 0x7F00u + 0x1234u);
  // None, with excess bytes, and none in two bytes.
  EXPECT_FALSE(Open({0, 0}));
  EXPECT_FALSE(Open({0x80, 0, 0, 0xFF, 0xFF, 0xFF}));
  EXPECT_TRUE(Open({0}));
  EXPECT_EQ(reader_.left(), 0u);
  // Truncated; reserved bits.
  EXPECT_FALSE(Open({}));
  EXPECT_FALSE(Open({0xFF, 1}));
  EXPECT_FALSE(Open({5}));
  EXPECT_FALSE(Open({5, 1, 0xFF, 0xFF, 0xFF}));
}

}  // namespace
}  // namespace quire
