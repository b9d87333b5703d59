// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_index.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/archive/index/document_index_builder.h"
#include "server/archive/index/id_runs.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Sections of documents with `ids`, of one byte each, and their index.
struct Built {
  std::string ids;
  std::optional<std::string> order;
  uint64_t id_size_bytes = 0;
  std::vector<IdRun> runs;
  uint32_t derived_id_count = 0;
  std::vector<bool> repeats;
  IdIndex index;
};

Built Build(const std::vector<std::string>& ids) {
  Built built;
  DocumentIndexBuilder builder;
  for (const std::string& id : ids) {
    QUIRE_EXPECT_OK(builder.Add({.id = id, .size_bytes = 1}));
  }
  QUIRE_EXPECT_OK(builder.Build(
      [&built](SectionType type, std::string section) {
        if (type == SectionType::kDocumentIds) {
          built.ids = std::move(section);
        } else if (type == SectionType::kDocumentOrder) {
          built.order = std::move(section);
        }
        return absl::OkStatus();
      },
      built.id_size_bytes));
  built.runs = builder.id_runs();
  built.derived_id_count = builder.derived_id_count();
  const std::string runs = EncodeIdRuns(built.runs);
  IdIndex::Sections sections;
  sections.ids = AsBytes(built.ids);
  if (built.order.has_value()) {
    sections.order = AsBytes(*built.order);
  }
  if (!built.runs.empty()) {
    sections.runs = AsBytes(runs);
  }
  auto index = IdIndex::Parse(sections,
                              {.document_count = ids.size(),
                               .derived_id_count = built.derived_id_count,
                               .id_size_bytes = built.id_size_bytes},
                              built.repeats);
  QUIRE_EXPECT_OK(index.status());
  built.index = *std::move(index);
  return built;
}

// Compares the index of `ids` with sorted pairs of id and ordinal; returns how
// many ids are computed.
uint32_t ExpectLikeSortedPairs(const std::vector<std::string>& ids) {
  const Built built = Build(ids);
  const IdIndex& index = built.index;
  std::vector<std::pair<std::string, uint64_t>> sorted;
  for (uint64_t ordinal = 0; ordinal < ids.size(); ++ordinal) {
    sorted.emplace_back(ids[ordinal], ordinal);
  }
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(index.size(), ids.size());
  std::vector<std::string> keys = {"", "\xFF"};
  IdIndex::Cursor cursor(index, 0);
  for (uint64_t rank = 0; rank < sorted.size(); ++rank, cursor.Next()) {
    const auto& [id, ordinal] = sorted[rank];
    EXPECT_FALSE(cursor.at_end());
    if (cursor.at_end() || cursor.id() != id || index.Get(rank) != id ||
        cursor.rank() != rank || index.OrdinalAt(rank) != ordinal ||
        index.RankOf(ordinal) != rank ||
        IdIndex::Cursor(index, rank).id() != id ||
        id.size() > index.id_size_bytes_max()) {
      ADD_FAILURE() << "rank " << rank << " is " << index.Get(rank)
                    << ", expected " << id;
      return 0;
    }
    for (const char* end : {"", "0", "x", "/", ":"}) {
      keys.push_back(id + end);
    }
    if (!id.empty()) {
      keys.push_back(id.substr(0, id.size() - 1));
    }
  }
  EXPECT_TRUE(cursor.at_end());
  for (const std::string& key : keys) {
    const auto below = [](const auto& one, const std::string& wanted) {
      return one.first < wanted;
    };
    const auto above = [](const std::string& wanted, const auto& one) {
      return wanted < one.first;
    };
    const auto begin = static_cast<uint64_t>(
        std::lower_bound(sorted.begin(), sorted.end(), key, below) -
        sorted.begin());
    const auto end = static_cast<uint64_t>(
        std::upper_bound(sorted.begin(), sorted.end(), key, above) -
        sorted.begin());
    const IdIndex::Ranks ranks = index.Find(key);
    if (ranks.begin != begin || ranks.end != end ||
        index.LowerBound(key) != begin || index.UpperBound(key) != end) {
      ADD_FAILURE() << "key " << key << " is at " << ranks.begin << " to "
                    << ranks.end << ", expected " << begin << " to " << end;
      return 0;
    }
  }
  return built.derived_id_count;
}

void AddLines(const std::string& prefix, uint64_t first, uint64_t count,
              std::vector<std::string>& ids) {
  for (uint64_t i = 0; i < count; ++i) {
    ids.push_back(absl::StrCat(prefix, first + i));
  }
}

TEST(IdIndexTest, ComputesTheIdsOfLines) {
  std::vector<std::string> ids;
  AddLines("b.log:", 1, 1234, ids);
  AddLines("a.log:", 1, 64, ids);
  ids.emplace_back("other");
  AddLines("c.log:", 17, 100, ids);
  AddLines("c.txt:", 0, 99, ids);
  EXPECT_EQ(ExpectLikeSortedPairs(ids), 1233u + 63 + 99 + 98);
}

TEST(IdIndexTest, StoresShortRuns) {
  std::vector<std::string> ids;
  AddLines("a:", 1, 63, ids);
  AddLines("b:", 5, 2, ids);
  EXPECT_EQ(ExpectLikeSortedPairs(ids), 0u);
  EXPECT_EQ(ExpectLikeSortedPairs({}), 0u);
}

TEST(IdIndexTest, StoresRunsThatOthersLieBetween) {
  for (const char* between : {"a:1", "a:100", "a:5x", "a:99", "a:10/"}) {
    std::vector<std::string> ids;
    AddLines("a:", 1, 100, ids);
    AddLines("b:", 1, 100, ids);
    ids.emplace_back(between);
    EXPECT_EQ(ExpectLikeSortedPairs(ids), 99u) << between;
  }
  for (const char* outside : {"a:", "a:00", "a:/", "a:9x", "a:999", "a::"}) {
    std::vector<std::string> ids = {outside};
    AddLines("a:", 1, 100, ids);
    EXPECT_EQ(ExpectLikeSortedPairs(ids), 99u) << outside;
  }
  std::vector<std::string> twice;
  AddLines("a:", 1, 100, twice);
  AddLines("a:", 1, 100, twice);
  EXPECT_EQ(ExpectLikeSortedPairs(twice), 0u);
  // One run inside another.
  std::vector<std::string> nested;
  AddLines("a", 1, 500, nested);
  AddLines("a30", 0, 90, nested);
  EXPECT_EQ(ExpectLikeSortedPairs(nested), 0u);
}

TEST(IdIndexTest, NumbersHaveNoLeadingZeros) {
  std::vector<std::string> ids;
  for (int i = 1; i < 300; ++i) {
    ids.push_back(absl::StrCat("a:", absl::Dec(i, absl::kZeroPad4)));
  }
  // From "a:0" and 100 to 299, of which 300 is missing; "a:00" and 10 to 99.
  EXPECT_EQ(ExpectLikeSortedPairs(ids), 89u + 199);
  std::vector<std::string> large;
  AddLines("", 999'999'999'999'999'900, 100, large);
  large.emplace_back("1000000000000000000");
  AddLines("1", 0, 70, large);
  EXPECT_GT(ExpectLikeSortedPairs(large), 0u);
}

TEST(IdIndexTest, RandomCollections) {
  constexpr uint32_t kSeed = 11;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 random(kSeed);
  uint64_t derived_count = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> ids;
    for (size_t i = random() % 8; i > 0; --i) {
      const std::string prefix = std::vector<std::string>{
          "", "a", "a:", "a:1", "b/c:", "b/c", "\xFFz:", "9"}[random() % 8];
      switch (random() % 3) {
        case 0:
          AddLines(prefix, random() % 1200, random() % 400, ids);
          break;
        case 1:
          ids.push_back(prefix);
          break;
        default:
          ids.push_back(absl::StrCat(prefix, random() % 500));
      }
    }
    derived_count += ExpectLikeSortedPairs(ids);
    if (HasFailure()) {
      FAIL() << "round " << round;
    }
  }
  EXPECT_GT(derived_count, 10'000u);
}

// Ids and starts of a document take 24 bits together.
TEST(IdIndexTest, TakesLittleMemory) {
  std::vector<std::string> ids;
  AddLines("logs/access.log:", 1, 100'000, ids);
  const Built built = Build(ids);
  EXPECT_EQ(built.derived_id_count, ids.size() - 1);
  EXPECT_LT(built.index.MemoryBytes(), 1000u);
}

}  // namespace
}  // namespace quire
