// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "server/archive/container/container_part.h"
#include "server/archive/fields/field_block.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/fields/fields_builder.h"
#include "server/archive/fields/segment_field_reader.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using Row = std::vector<FieldValue>;

const std::vector<FieldColumn> kColumns = {{"lang", FieldType::kString},
                                           {"size", FieldType::kInteger},
                                           {"score", FieldType::kFloat},
                                           {"good", FieldType::kBoolean},
                                           {"when", FieldType::kTime}};

Row RowAt(uint64_t i) {
  const auto n = static_cast<int64_t>(i);
  return {FieldValue(absl::StrCat("l", i % 7)), FieldValue(n * n - 5000),
          FieldValue(static_cast<double>(i) / 3), FieldValue(i % 3 == 0),
          FieldValue(FieldTime{1'700'000'000'000'000 + n})};
}

// With the data of a container.
class TestBuilder : public FieldsBuilder {
 public:
  absl::Status Add(std::span<const FieldValue> values) {
    return FieldsBuilder::Add(values, data);
  }

  ContainerData data;
};

// The fields of a segment as a reader sees them.
class Stored {
 public:
  static absl::StatusOr<std::unique_ptr<Stored>> Make(TestBuilder& builder,
                                                      uint64_t count) {
    auto stored = std::make_unique<Stored>();
    auto head = builder.Build(builder.data);
    if (!head.ok()) {
      return head.status();
    }
    stored->data = std::move(builder.data).Take();
    stored->head_ = *std::move(head);
    auto fields = SegmentFields::Parse(AsBytes(stored->head_), count,
                                       stored->data.size());
    if (!fields.ok()) {
      return fields.status();
    }
    stored->fields_ = *std::move(fields);
    return stored;
  }

  const SegmentFields& fields() const { return fields_; }

  SegmentFieldReader Reader(std::vector<size_t> columns) {
    return SegmentFieldReader(
        fields_, std::move(columns), 0, cache_,
        [this](const ContainerPart& part)
            -> absl::StatusOr<std::optional<PartBytes>> {
          if (--parts_at_hand < 0) {
            return std::nullopt;
          }
          auto raw = std::make_shared<std::vector<uint8_t>>(part.size_bytes);
          const absl::Status status = DecodePart(
              part, AsBytes(data).subspan(part.offset, part.stored_size_bytes),
              *raw);
          if (!status.ok()) {
            return status;
          }
          return PartBytes{.owner = raw, .bytes = *raw};
        });
  }

  int parts_at_hand = std::numeric_limits<int>::max();
  std::string data;

 private:
  std::string head_;
  SegmentFields fields_;
  FieldCache cache_;
};

TestBuilder BuilderOf(const std::vector<FieldColumn>& columns) {
  TestBuilder builder;
  for (const FieldColumn& column : columns) {
    QUIRE_EXPECT_OK(builder.AddColumn(column).status());
  }
  return builder;
}

TEST(Fields, KeepsValuesOfManyGroups) {
  constexpr uint64_t kCount = 3 * kFieldGroupSizeMax + 17;
  TestBuilder builder = BuilderOf(kColumns);
  for (uint64_t i = 0; i < kCount; ++i) {
    QUIRE_ASSERT_OK(builder.Add(RowAt(i)));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored, Stored::Make(builder, kCount));
  EXPECT_EQ(stored->fields().columns(), kColumns);
  SegmentFieldReader reader = stored->Reader({4, 0, 1, 2, 3});
  std::vector<FieldView> values;
  for (uint64_t i = 0; i < kCount; i += 5) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const bool is_read, reader.Read(i, values));
    ASSERT_TRUE(is_read);
    const Row row = RowAt(i);
    ASSERT_EQ(ValueOf(values[0]), row[4]);
    for (size_t column = 0; column < 4; ++column) {
      ASSERT_EQ(ValueOf(values[column + 1]), row[column]);
    }
  }
  FieldGroup group;
  QUIRE_ASSERT_OK_AND_ASSIGN(const bool is_read,
                             reader.ReadGroup(kFieldGroupSizeMax, group));
  ASSERT_TRUE(is_read);
  EXPECT_EQ(group.first_ordinal, kFieldGroupSizeMax);
  EXPECT_EQ(group.end_ordinal, 2 * kFieldGroupSizeMax);
  EXPECT_EQ(group.ranges[2].least, FieldView(int64_t{4096} * 4096 - 5000));
  EXPECT_EQ(group.ranges[2].greatest, FieldView(int64_t{8191} * 8191 - 5000));
  EXPECT_EQ(group.ranges[1].least, FieldView(absl::string_view("l0")));
  EXPECT_FALSE(group.ranges[1].may_have_nulls);
}

TEST(Fields, ExtremeValuesAndNulls) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();
  const std::vector<Row> rows = {
      {FieldValue(std::string()), FieldValue(kLeast), FieldValue(-0.0)},
      {},
      {FieldValue(std::string("a\0\xFF", 3)), FieldValue(kGreatest),
       FieldValue(std::numeric_limits<double>::infinity())},
      {FieldValue(std::string(kFieldValueSizeBytesMax, '\xFF')), FieldValue(),
       FieldValue(std::nan(""))}};
  TestBuilder builder = BuilderOf({kColumns.begin(), kColumns.begin() + 3});
  for (const Row& row : rows) {
    QUIRE_ASSERT_OK(builder.Add(row));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored,
                             Stored::Make(builder, rows.size()));
  SegmentFieldReader reader =
      stored->Reader({0, 1, 2, SegmentFieldReader::kNoColumn});
  std::vector<FieldView> values;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    QUIRE_ASSERT_OK(reader.Read(i, values).status());
    for (size_t column = 0; column < 4; ++column) {
      const FieldValue expected =
          column < rows[i].size() ? rows[i][column] : FieldValue();
      if (i == 3 && column == 2) {
        EXPECT_TRUE(std::isnan(std::get<double>(values[column])));
      } else {
        EXPECT_EQ(ValueOf(values[column]), expected) << i << " " << column;
      }
    }
  }
  FieldGroup group;
  QUIRE_ASSERT_OK(reader.ReadGroup(0, group).status());
  EXPECT_EQ(group.ranges[0].least, FieldView(absl::string_view()));
  // No short string is above the longest.
  EXPECT_EQ(group.ranges[0].greatest, FieldView());
  EXPECT_EQ(group.ranges[1].least, FieldView(kLeast));
  EXPECT_EQ(group.ranges[1].greatest, FieldView(kGreatest));
  EXPECT_EQ(group.ranges[2].greatest,
            FieldView(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(group.ranges[0].may_have_nulls);
  EXPECT_FALSE(group.ranges[3].may_have_values);
}

TEST(Fields, BoundsOfLongStringsAreShort) {
  TestBuilder builder = BuilderOf({kColumns[0]});
  const std::string least = std::string(100, 'b');
  QUIRE_ASSERT_OK(builder.Add(Row{FieldValue(least)}));
  QUIRE_ASSERT_OK(builder.Add(Row{FieldValue(std::string(100, 'y'))}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored, Stored::Make(builder, 2));
  SegmentFieldReader reader = stored->Reader({0});
  FieldGroup group;
  QUIRE_ASSERT_OK(reader.ReadGroup(0, group).status());
  EXPECT_EQ(ValueOf(group.ranges[0].least),
            FieldValue(least.substr(0, kFieldBoundSizeBytesMax)));
  EXPECT_EQ(ValueOf(group.ranges[0].greatest),
            FieldValue(std::string(kFieldBoundSizeBytesMax - 1, 'y') + "z"));
}

TEST(Fields, LongStringsEndGroups) {
  TestBuilder builder = BuilderOf({kColumns[0]});
  constexpr uint64_t kCount = 40;
  for (uint64_t i = 0; i < kCount; ++i) {
    QUIRE_ASSERT_OK(builder.Add(
        Row{FieldValue(absl::StrCat(std::string(30'000, 'x'), i))}));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored, Stored::Make(builder, kCount));
  SegmentFieldReader reader = stored->Reader({0});
  FieldGroup group;
  QUIRE_ASSERT_OK(reader.ReadGroup(0, group).status());
  EXPECT_EQ(group.end_ordinal, 9);
  std::vector<FieldView> values;
  QUIRE_ASSERT_OK(reader.Read(kCount - 1, values).status());
  EXPECT_EQ(std::get<absl::string_view>(values[0]).substr(30'000), "39");
}

// A column can begin after any number of documents.
TEST(Fields, LateColumns) {
  for (const uint64_t before : {0U, 1U, 4095U, 4096U, 10000U}) {
    TestBuilder builder;
    for (uint64_t i = 0; i < before; ++i) {
      QUIRE_ASSERT_OK(builder.Add({}));
    }
    QUIRE_ASSERT_OK(builder.AddColumn(kColumns[1]).status());
    QUIRE_ASSERT_OK(builder.Add(Row{FieldValue(int64_t{7})}));
    QUIRE_ASSERT_OK(builder.AddColumn(kColumns[3]).status());
    QUIRE_ASSERT_OK(builder.Add(Row{FieldValue(), FieldValue(true)}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored,
                               Stored::Make(builder, before + 2));
    SegmentFieldReader reader = stored->Reader({0, 1});
    std::vector<FieldView> values;
    for (uint64_t i = 0; i < before + 2; ++i) {
      QUIRE_ASSERT_OK(reader.Read(i, values).status());
      EXPECT_EQ(values[0], i == before ? FieldView(int64_t{7}) : FieldView());
      EXPECT_EQ(values[1], i == before + 1 ? FieldView(true) : FieldView());
    }
  }
}

TEST(Fields, RefusesOtherTypes) {
  TestBuilder builder = BuilderOf(kColumns);
  EXPECT_THAT(
      builder.AddColumn({"lang", FieldType::kTime}).status().message(),
      testing::AllOf(testing::HasSubstr("lang"), testing::HasSubstr("string"),
                     testing::HasSubstr("time")));
  EXPECT_EQ(*builder.AddColumn(kColumns[2]), 2);
  EXPECT_FALSE(builder.Add(Row{FieldValue(int64_t{1})}).ok());
  TestBuilder other = BuilderOf({kColumns[0]});
  EXPECT_FALSE(
      other.Add(Row{FieldValue(std::string(kFieldValueSizeBytesMax + 1, 'x'))})
          .ok());
}

// A reader that must not block asks for the index, then for all blocks at once.
TEST(Fields, AsksForPartsThatAreNotAtHand) {
  TestBuilder builder = BuilderOf(kColumns);
  QUIRE_ASSERT_OK(builder.Add(RowAt(1)));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored, Stored::Make(builder, 1));
  SegmentFieldReader reader = stored->Reader({0, 1, 2});
  std::vector<FieldView> values;
  stored->parts_at_hand = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(bool is_read, reader.Read(0, values));
  EXPECT_FALSE(is_read);
  EXPECT_EQ(stored->parts_at_hand, -1);
  stored->parts_at_hand = 1;
  QUIRE_ASSERT_OK_AND_ASSIGN(is_read, reader.Read(0, values));
  EXPECT_FALSE(is_read);
  EXPECT_EQ(stored->parts_at_hand, -3);
  stored->parts_at_hand = 3;
  QUIRE_ASSERT_OK_AND_ASSIGN(is_read, reader.Read(0, values));
  EXPECT_TRUE(is_read);
}

TEST(Fields, DamageIsFound) {
  TestBuilder builder = BuilderOf(kColumns);
  QUIRE_ASSERT_OK(builder.Add(RowAt(1)));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto stored, Stored::Make(builder, 1));
  stored->data.front() = static_cast<char>(stored->data.front() ^ 1);
  SegmentFieldReader reader = stored->Reader({0});
  std::vector<FieldView> values;
  EXPECT_TRUE(absl::IsDataLoss(reader.Read(0, values).status()));
  stored->data.front() = static_cast<char>(stored->data.front() ^ 1);
  stored->data.back() = static_cast<char>(stored->data.back() ^ 1);
  SegmentFieldReader other = stored->Reader({0});
  FieldGroup group;
  EXPECT_TRUE(absl::IsDataLoss(other.ReadGroup(0, group).status()) ||
              other.ReadGroup(0, group).ok());
}

}  // namespace
}  // namespace quire
