// SPDX-License-Identifier: GPL-3.0-or-later
//
// Packed structures compared with plain vectors.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/varint.h"
#include "server/archive/format/column.h"
#include "server/archive/index/document_index.h"
#include "server/archive/index/elias_fano.h"
#include "server/archive/index/id_section.h"
#include "server/archive/index/packed_vector.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

EliasFano BuildEliasFano(const std::vector<uint64_t>& values, uint64_t last) {
  EliasFano::Builder builder(values.size(), last);
  for (const uint64_t value : values) {
    builder.Add(value);
  }
  return std::move(builder).Build();
}

void ExpectEqual(const std::vector<uint64_t>& values, uint64_t last) {
  const EliasFano sequence = BuildEliasFano(values, last);
  ASSERT_EQ(sequence.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(sequence[i], values[i]) << i;
  }
}

TEST(EliasFanoTest, HoldsTheSmallestAndTheLargest) {
  ExpectEqual({0}, 0);
  ExpectEqual({0, 1, 2, 3}, 3);
  ExpectEqual({5}, uint64_t{1} << 61);
  ExpectEqual({0, (uint64_t{1} << 61) - 1}, (uint64_t{1} << 61) - 1);
}

TEST(EliasFanoTest, HoldsClusters) {
  // Thousands that share their upper bits, then one far away.
  std::vector<uint64_t> values(10000);
  std::iota(values.begin(), values.end(), uint64_t{1} << 40);
  values.push_back(uint64_t{1} << 50);
  ExpectEqual(values, uint64_t{1} << 50);
}

TEST(EliasFanoTest, AgreesWithAVectorInFewBits) {
  std::mt19937 seeds(TestSeed());
  for (const uint64_t gap_max : {1u, 2u, 1000u, 70000u, 1u << 30}) {
    const uint64_t seed = seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed, " gap ", gap_max));
    std::mt19937_64 random(seed);
    std::vector<uint64_t> values;
    uint64_t value = random() % gap_max;
    for (int i = 0; i < 20000; ++i) {
      values.push_back(value);
      value += 1 + random() % gap_max;
    }
    ExpectEqual(values, values.back());
    const EliasFano sequence = BuildEliasFano(values, values.back());
    EXPECT_GE(EliasFano::EstimateBytes(values.size(), values.back()),
              sequence.MemoryBytes());
    const uint64_t bits_per_value = sequence.MemoryBytes() * 8 / values.size();
    const uint64_t gap_bits = static_cast<uint64_t>(std::bit_width(gap_max));
    EXPECT_LE(bits_per_value, gap_bits + 4);
  }
}

TEST(InvertiblePermutationTest, InvertsEveryKindOfCycle) {
  std::mt19937 seeds(TestSeed());
  for (const uint64_t count : {uint64_t{1}, uint64_t{2}, uint64_t{9},
                               uint64_t{1000}, uint64_t{30000}}) {
    const uint64_t seed = seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed, " count ", count));
    std::mt19937_64 random(seed);
    std::vector<uint64_t> identity(count);
    std::iota(identity.begin(), identity.end(), uint64_t{0});
    std::vector<uint64_t> rotated = identity;
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    std::vector<uint64_t> shuffled = identity;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (const auto& values : {identity, rotated, shuffled}) {
      PackedVector packed(count, count - 1);
      for (uint64_t i = 0; i < count; ++i) {
        packed.Set(i, values[i]);
      }
      const InvertiblePermutation permutation(std::move(packed));
      for (uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(permutation[i], values[i]);
        ASSERT_EQ(permutation.IndexOf(values[i]), i);
      }
      EXPECT_LE(permutation.MemoryBytes(),
                InvertiblePermutation::EstimateBytes(count));
    }
  }
}

TEST(InvertiblePermutationTest, IsTheIdentityForNothing) {
  const InvertiblePermutation identity;
  EXPECT_EQ(identity[12345], 12345u);
  EXPECT_EQ(identity.IndexOf(12345), 12345u);
  EXPECT_EQ(identity.MemoryBytes(), 0u);
}

TEST(ColumnTest, RoundTripsAtEveryWidth) {
  for (int shift = 0; shift < 64; shift += 7) {
    const std::vector<uint64_t> values = {0, 1, ~uint64_t{0} >> shift, 7};
    std::string bytes;
    AppendColumn(values, bytes);
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const ColumnView column,
        ColumnView::Parse(AsBytes(bytes), values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(column[i], values[i]);
    }
    EXPECT_THAT(ColumnView::Parse(AsBytes(bytes), values.size() + 1),
                HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(ColumnView::Parse(AsBytes(bytes), ~uint64_t{0}),
                HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(ColumnView::Parse(AsBytes(bytes).first(bytes.size() - 1),
                                  values.size()),
                HasCode(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(ColumnView::Parse({}, 0), HasCode(absl::StatusCode::kDataLoss));
}

// A document's capture time counts units from the segment's first time on.
TEST(DocumentIndexTest, TakesCaptureTimesUpToTheLargestInAnyUnit) {
  const auto parse = [](uint64_t unit_ms, uint64_t value) {
    SegmentFooter footer;
    footer.document_count = 1;
    footer.id_size_bytes = 1;
    return DocumentIndex::Parse(
        footer,
        [&](SectionType type) -> absl::StatusOr<std::optional<std::string>> {
          std::string section;
          if (type == SectionType::kDocumentSizes) {
            AppendColumn(std::vector<uint64_t>{0}, section);
          } else if (type == SectionType::kDocumentIds) {
            IdSectionBuilder ids;
            ids.Add("a");
            section = std::move(ids).Build();
          } else if (type == SectionType::kCaptureTimes) {
            AppendVarint(ZigZag(0), section);
            AppendVarint(unit_ms, section);
            AppendColumn(std::vector<uint64_t>{value}, section);
          } else {
            return std::nullopt;
          }
          return section;
        });
  };
  for (const uint64_t unit_ms : {uint64_t{1}, uint64_t{1000}}) {
    const uint64_t largest = uint64_t{kCaptureTimeMsMax} / unit_ms;
    QUIRE_ASSERT_OK_AND_ASSIGN(const DocumentIndex index,
                               parse(unit_ms, largest + 1));
    EXPECT_EQ(index.CaptureTimeMs(0), static_cast<int64_t>(largest * unit_ms));
    EXPECT_THAT(parse(unit_ms, largest + 2),
                HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST(ColumnTest, TakesOneByteForZeros) {
  std::string bytes;
  AppendColumn(std::vector<uint64_t>(1000), bytes);
  EXPECT_EQ(bytes, std::string(1, '\0'));
}

}  // namespace
}  // namespace quire
