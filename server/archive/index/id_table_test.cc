// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_table.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/varint.h"
#include "server/archive/index/id_bucket.h"
#include "server/archive/index/id_section.h"
#include "testing/archive/sample_urls.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

IdTable Table(const std::vector<std::string>& sorted,
              std::vector<bool>* repeats = nullptr) {
  IdSectionBuilder builder;
  for (const std::string& id : sorted) {
    builder.Add(id);
  }
  const uint64_t id_size_bytes = builder.id_size_bytes();
  const std::string section = std::move(builder).Build();
  auto table =
      IdTable::Parse(AsBytes(section), sorted.size(), id_size_bytes, repeats);
  EXPECT_THAT(table, IsOk());
  return *std::move(table);
}

void ExpectLikeSortedVector(const std::vector<std::string>& sorted,
                            const std::vector<std::string>& keys) {
  std::vector<bool> repeats;
  const IdTable table = Table(sorted, &repeats);
  ASSERT_EQ(table.size(), sorted.size());
  ASSERT_EQ(repeats.size(), sorted.size());
  IdTable::Cursor cursor(table, 0);
  for (size_t rank = 0; rank < sorted.size(); ++rank, cursor.Next()) {
    ASSERT_EQ(table.Get(rank), sorted[rank]);
    ASSERT_EQ(cursor.id(), sorted[rank]);
    ASSERT_EQ(cursor.rank(), rank);
    EXPECT_EQ(repeats[rank], rank > 0 && sorted[rank] == sorted[rank - 1]);
  }
  EXPECT_TRUE(cursor.at_end());
  for (const std::string& key : keys) {
    const auto lower = std::lower_bound(sorted.begin(), sorted.end(), key);
    const auto upper = std::upper_bound(sorted.begin(), sorted.end(), key);
    EXPECT_EQ(table.LowerBound(key),
              static_cast<uint64_t>(lower - sorted.begin()));
    EXPECT_EQ(table.UpperBound(key),
              static_cast<uint64_t>(upper - sorted.begin()));
    const IdTable::Ranks ranks = table.Find(key);
    EXPECT_EQ(ranks.begin, table.LowerBound(key));
    EXPECT_EQ(ranks.end, table.UpperBound(key));
  }
}

TEST(IdTableTest, MayBeEmpty) {
  const IdTable table = Table({});
  EXPECT_EQ(table.LowerBound("a"), 0u);
  EXPECT_EQ(table.UpperBound(""), 0u);
  EXPECT_TRUE(IdTable::Cursor(table, 0).at_end());
}

TEST(IdTableTest, FindsOneIdManyTimes) {
  for (const size_t count :
       {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{300}}) {
    ExpectLikeSortedVector(std::vector<std::string>(count, "same"),
                           {"", "same", "samd", "samf", "same "});
    ExpectLikeSortedVector(std::vector<std::string>(count), {"", "a"});
  }
}

TEST(IdTableTest, AgreesWithASortedVector) {
  std::mt19937 seeds(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const uint64_t seed = seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto random_id = [&random] {
      std::string id;
      for (size_t n = random() % 8; n > 0; --n) {
        id.push_back(
            static_cast<char>(random() % 3 == 0 ? 0xFF : random() % 3));
      }
      return id;
    };
    std::vector<std::string> sorted;
    for (size_t n = random() % 300; n > 0; --n) {
      sorted.push_back(random_id());
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> keys = sorted;
    for (int i = 0; i < 200; ++i) {
      keys.push_back(random_id());
    }
    ExpectLikeSortedVector(sorted, keys);
  }
}

// Sorts, then looks up all ids and near misses.
void ExpectFindsAll(std::vector<std::string> ids, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> keys = {"", std::string(300, '\xFF')};
  for (const std::string& id : ids) {
    keys.push_back(id);
    keys.push_back(id.substr(0, random() % (id.size() + 1)));
    keys.push_back(id + static_cast<char>(random() % 3));
    std::string other = id + 'x';
    other[random() % other.size()] += static_cast<char>(random() % 5);
    keys.push_back(other);
  }
  ExpectLikeSortedVector(ids, keys);
}

// Enough ids for FSST codes.
TEST(IdTableTest, FindsUrlsAmongCodes) {
  std::vector<std::string> ids;
  for (uint64_t i = 0; i < 2000; ++i) {
    ids.push_back(SampleUrl(i));
  }
  ExpectFindsAll(ids, 1);
}

TEST(IdTableTest, FindsRepeatsAmongCodes) {
  std::vector<std::string> ids;
  for (uint64_t i = 0; i < 1500; ++i) {
    ids.insert(ids.end(), i % 500 == 0 ? 700 : i % 3, SampleUrl(i));
  }
  ExpectFindsAll(ids, 2);
}

TEST(IdTableTest, FindsIdsOfAnyBytesAmongCodes) {
  std::mt19937 seeds(TestSeed());
  const uint64_t seed = seeds();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  std::vector<std::string> ids(3);
  while (ids.size() < 2500) {
    // Some compress, some grow; zeros at their ends resemble the padding of
    // codes.
    std::string id = SampleUrl(random() % 300).substr(0, random() % 60);
    const uint64_t kind = random() % 4;
    for (size_t n = kind == 0 ? random() % 40 : 0; n > 0; --n) {
      id.push_back(static_cast<char>(random()));
    }
    id.append(kind == 1 ? random() % 12 : 0, '\0');
    ids.push_back(id);
  }
  ExpectFindsAll(ids, seed);
}

TEST(IdTableTest, FindsNoiseWhichIsKeptAsItIs) {
  std::mt19937_64 random(3);
  std::vector<std::string> ids;
  while (ids.size() < 2500) {
    std::string id;
    for (int i = 0; i < 16; ++i) {
      id.push_back(static_cast<char>(random()));
    }
    ids.push_back(id);
  }
  ExpectFindsAll(ids, 4);
}

TEST(IdTableTest, FindsIdsOfAnyLength) {
  std::mt19937_64 random(5);
  // Sizes that need one, two and, as codes of random bytes, four bytes.
  for (const size_t size_max : {size_t{300}, size_t{3000}, size_t{65535}}) {
    std::vector<std::string> ids;
    std::string base;
    while (base.size() < size_max) {
      base.push_back(static_cast<char>(random()));
    }
    for (int i = 0; i < 70; ++i) {
      std::string id = base.substr(0, random() % size_max);
      id += SampleUrl(random());
      ids.push_back(id.substr(0, 65535));
    }
    ids.push_back(base);
    ExpectFindsAll(ids, 6);
  }
}

TEST(IdTableTest, FindsManyOfOneId) {
  std::vector<std::string> ids(200000, "http://example.org/robots.txt");
  ids.front() = "a";
  ids.back() = "z";
  const IdTable table = Table(ids);
  const IdTable::Ranks ranks = table.Find(ids[1]);
  EXPECT_EQ(ranks.begin, 1u);
  EXPECT_EQ(ranks.end, 199999u);
  // Little more than two sizes per id.
  EXPECT_LT(table.MemoryBytes(), 560000u);
}

TEST(IdTableTest, TakesLessThanItsSection) {
  std::vector<std::string> ids;
  for (uint64_t i = 0; i < 20000; ++i) {
    ids.push_back(SampleUrl(i));
  }
  std::sort(ids.begin(), ids.end());
  IdSectionBuilder builder;
  for (const std::string& id : ids) {
    builder.Add(id);
  }
  const uint64_t id_size_bytes = builder.id_size_bytes();
  const std::string section = std::move(builder).Build();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdTable table,
      IdTable::Parse(AsBytes(section), ids.size(), id_size_bytes, nullptr));
  // 27 bytes per id; 84 in full length and 52 front-coded.
  EXPECT_LT(table.MemoryBytes(), section.size() * 3 / 5);
  const uint64_t estimate =
      IdTable::EstimateBytes(ids.size(), section.size(), id_size_bytes);
  EXPECT_GE(estimate, table.MemoryBytes());
}

TEST(IdTableTest, EstimatesWhatIsKeptAsItIs) {
  for (const size_t count : {size_t{1}, size_t{100}, size_t{20000}}) {
    std::mt19937_64 random(7);
    std::vector<std::string> ids;
    while (ids.size() < count) {
      std::string id(8, '\0');
      for (char& c : id) {
        c = static_cast<char>(random());
      }
      ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    IdSectionBuilder builder;
    for (const std::string& id : ids) {
      builder.Add(id);
    }
    const uint64_t estimate = IdTable::EstimateBytes(
        count, std::move(builder).Build().size(), 8 * count);
    const uint64_t memory = Table(ids).MemoryBytes();
    EXPECT_GE(estimate, memory);
    EXPECT_LE(estimate, memory * 11 / 10 + 8192);
  }
}

TEST(IdTableTest, TakesLittleMoreThanItsSection) {
  std::vector<std::string> ids;
  for (int i = 100000; i < 110000; ++i) {
    ids.push_back(absl::StrCat("http://example.org/some/directory/", i));
  }
  IdSectionBuilder builder;
  for (const std::string& id : ids) {
    builder.Add(id);
  }
  const uint64_t id_size_bytes = builder.id_size_bytes();
  const std::string section = std::move(builder).Build();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdTable table,
      IdTable::Parse(AsBytes(section), ids.size(), id_size_bytes, nullptr));
  // An eighth of the ids' own size, as each differs from the last in one byte.
  EXPECT_LT(table.MemoryBytes(), id_size_bytes / 4);
  const uint64_t estimate =
      IdTable::EstimateBytes(ids.size(), section.size(), id_size_bytes);
  EXPECT_GE(estimate, table.MemoryBytes());
  EXPECT_LE(estimate, table.MemoryBytes() * 5 / 4 + 8192);
}

// Sizes of a bucket at the limit of one byte.
TEST(IdTableTest, KeepsSizesOnBothSidesOfAByte) {
  for (const size_t size : {size_t{255}, size_t{256}, size_t{257}}) {
    SCOPED_TRACE(size);
    // Longest text not shared with the previous id, and longest shared text.
    const std::string text = std::string(size - 1, 'x');
    ExpectFindsAll({"a", "b" + text, "c", "d"}, size);
    const std::string front = text + 'y';
    ExpectFindsAll({front, front + "a", front + "b", "z"}, size);
  }
}

TEST(IdTableTest, KeepsCodesLongerThanAnyId) {
  std::mt19937_64 random(8);
  // One id grows when encoded, all together shrink.
  std::vector<std::string> ids = {std::string(60'000, 'z')};
  for (char& c : ids[0]) {
    c = static_cast<char>(random());
  }
  for (char first = 'A'; first < 'o'; ++first) {
    std::string id(1, first);
    while (id.size() < 10'000) {
      id += "and so on, and ";
    }
    ids.push_back(id);
  }
  ExpectFindsAll(ids, 9);
}

// Codes of an id can have more bytes than an id.
TEST(IdBucketTest, KeepsSizesOnBothSidesOfTwoBytes) {
  for (const size_t size : {size_t{65'535}, size_t{65'536}, size_t{65'537}}) {
    SCOPED_TRACE(size);
    const std::string text(size, 'x');
    const std::vector<uint32_t> shared_sizes = {0, 0, 0};
    const std::vector<ByteView> texts = {AsBytes("a"), AsBytes(text),
                                         AsBytes("z")};
    std::string head;
    std::string body;
    IdBucket::Append(shared_sizes, texts, /*are_codes=*/false, head, body);
    const IdBucket bucket(nullptr, AsBytes(head), AsBytes(body).data(), 3);
    IdBuffer id;
    bucket.Read(1, id);
    EXPECT_TRUE(id.view() == text);
    bucket.Read(2, id);
    EXPECT_EQ(id.view(), "z");
  }
}

TEST(IdTableTest, RefusesMalformedSections) {
  const auto parse = [](const std::vector<uint64_t>& sizes,
                        const std::string& suffixes, uint64_t count,
                        uint64_t id_size_bytes) {
    std::string section;
    for (const uint64_t size : sizes) {
      AppendVarint(size, section);
    }
    section += suffixes;
    return IdTable::Parse(AsBytes(section), count, id_size_bytes, nullptr);
  };
  QUIRE_EXPECT_OK(parse({0, 1, 1, 1}, "ab", 2, 3));
  const auto refuses = [](absl::string_view message) {
    return FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message));
  };
  EXPECT_THAT(parse({0, 1, 1}, "", 2, 3), refuses("malformed"));
  EXPECT_THAT(parse({0, 1, 1, 1}, "a", 2, 3), refuses("1 stored, expected 2"));
  EXPECT_THAT(parse({0, 1, 1, 1}, "abc", 2, 3), refuses("3 stored"));
  EXPECT_THAT(parse({0, 1, 1, 1}, "ab", 2, 4), refuses("ids have 3 bytes"));
  EXPECT_THAT(parse({1, 1, 1, 1}, "ab", 2, 3), refuses("rank 0 shares more"));
  EXPECT_THAT(parse({0, 2, 1, 1}, "ab", 2, 3), refuses("rank 1 shares more"));
  EXPECT_THAT(parse({0, 0, 1, 1}, "ba", 2, 2), refuses("is not above"));
  EXPECT_THAT(parse({0, 0, 1, 0}, "b", 2, 1), refuses("is not above"));
  // "ab" and "ac" share a byte, and must state that.
  EXPECT_THAT(parse({0, 0, 2, 2}, "abac", 2, 4), refuses("is not above"));
  EXPECT_THAT(parse({0, 65536}, std::string(65536, 'x'), 1, 65536),
              refuses("longer than 65535"));
  EXPECT_THAT(parse({0, ~uint64_t{0}}, "x", 1, 1), refuses("longer than"));
  EXPECT_THAT(parse({}, "x", 0, 0), refuses("without documents"));
  EXPECT_THAT(parse({}, "", 0, 1), refuses("without documents"));
}

}  // namespace
}  // namespace quire
