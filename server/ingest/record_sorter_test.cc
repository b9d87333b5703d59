// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/record_sorter.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

TEST(RecordSorterTest, SortsAnyNumberWithinAnyMemory) {
  for (const size_t count : {0u, 1u, 2u, 7u, 1000u, 20'000u}) {
    for (const size_t memory_records : {0u, 1u, 7u, 300u, 1000u, 30'000u}) {
      // Few of them equal, or many.
      for (const uint64_t key_count : {uint64_t{3}, UINT64_MAX}) {
        SCOPED_TRACE(testing::Message() << count << " " << memory_records);
        if (memory_records < 300 && count > 1000) {
          continue;
        }
        std::mt19937_64 random(count + memory_records);
        RecordSorter sorter(::testing::TempDir(), "records",
                            memory_records * sizeof(SortRecord));
        std::vector<SortRecord> expected;
        for (size_t i = 0; i < count; ++i) {
          expected.push_back({random() % key_count, random() % key_count});
          QUIRE_ASSERT_OK(sorter.Add(expected.back()));
        }
        std::ranges::sort(expected);
        QUIRE_ASSERT_OK(sorter.EndAdding());
        const size_t held_count = std::max<size_t>(1, memory_records);
        EXPECT_EQ(
            sorter.spilled_run_count(),
            count <= held_count ? 0 : (count + held_count - 1) / held_count);
        for (const SortRecord& record : expected) {
          QUIRE_ASSERT_OK_AND_ASSIGN(const auto next, sorter.Next());
          ASSERT_EQ(next, record);
        }
        QUIRE_ASSERT_OK_AND_ASSIGN(const auto end, sorter.Next());
        EXPECT_FALSE(end.has_value());
      }
    }
  }
}

TEST(RecordSorterTest, NamesADirectoryThatCannotHoldTheFile) {
  RecordSorter sorter("/nowhere", "records", sizeof(SortRecord));
  QUIRE_EXPECT_OK(sorter.Add({1, 2}));
  const absl::Status status = sorter.Add({1, 2});
  EXPECT_EQ(status.message().substr(0, 8), "/nowhere") << status;
}

}  // namespace
}  // namespace quire
