// SPDX-License-Identifier: GPL-3.0-or-later
//
// Listings with delimiters, against a brute-force model, and their cost.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/bytes.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// A document's id and ordinal, or a common prefix.
using Entry = std::pair<std::string, std::optional<uint64_t>>;

std::shared_ptr<const Archive> MakeArchive(
    const std::vector<TestSegment>& segments) {
  const TemporaryDirectory directory;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  QUIRE_EXPECT_OK(WriteTestArchive(directory / "a.quire", options, segments));
  auto archive = Archive::Open(directory / "a.quire");
  QUIRE_EXPECT_OK(archive);
  return *archive;
}

std::vector<Entry> List(const Archive& archive, const std::string& prefix,
                        const std::string& delimiter,
                        const std::optional<Archive::IdCursor>& after = {},
                        size_t count_max = SIZE_MAX,
                        Archive::ListingCost* cost = nullptr) {
  std::vector<Entry> entries;
  const auto has_room = [&] { return entries.size() < count_max; };
  const Archive::ListingCost found = archive.VisitListing(
      {.prefix = prefix,
       .delimiter = delimiter,
       .after = after.has_value() ? &*after : nullptr},
      [&](const Document& document) {
        if (has_room()) {
          entries.emplace_back(document.id, document.ordinal.value);
          return true;
        }
        return false;
      },
      [&](absl::string_view common) {
        if (has_room()) {
          entries.emplace_back(std::string(common), std::nullopt);
          return true;
        }
        return false;
      });
  if (cost != nullptr) {
    *cost = found;
  }
  return entries;
}

std::vector<Entry> ExpectedEntries(const std::vector<TestSegment>& segments,
                                   const std::string& prefix,
                                   const std::string& delimiter) {
  std::vector<Entry> entries;
  uint64_t ordinal = 0;
  for (const TestSegment& segment : segments) {
    for (const TestDocument& document : segment) {
      if (absl::StartsWith(document.id, prefix)) {
        const size_t found = delimiter.empty()
                                 ? std::string::npos
                                 : document.id.find(delimiter, prefix.size());
        if (found == std::string::npos) {
          entries.emplace_back(document.id, ordinal);
        } else {
          entries.emplace_back(document.id.substr(0, found + delimiter.size()),
                               std::nullopt);
        }
      }
      ++ordinal;
    }
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

TEST(ArchiveListingTest, ListsOneLevel) {
  const auto archive = MakeArchive(
      {{{.id = "a/x"}, {.id = "b"}, {.id = "a/"}, {.id = "a/y/z"}},
       {{.id = "a/x"}, {.id = ""}, {.id = "/"}, {.id = "c/d"}, {.id = "b"}}});
  EXPECT_THAT(List(*archive, "", "/"),
              ElementsAre(Pair("", 5), Pair("/", std::nullopt),
                          Pair("a/", std::nullopt), Pair("b", 1), Pair("b", 8),
                          Pair("c/", std::nullopt)));
  // The prefix itself is a document, and its delimiter does not count.
  EXPECT_THAT(List(*archive, "a/", "/"),
              ElementsAre(Pair("a/", 2), Pair("a/x", 0), Pair("a/x", 4),
                          Pair("a/y/", std::nullopt)));
  EXPECT_THAT(List(*archive, "a", "/"), ElementsAre(Pair("a/", std::nullopt)));
  EXPECT_THAT(List(*archive, "d", "/"), ElementsAre());
}

// The id after all that start with such a prefix is not one byte higher.
TEST(ArchiveListingTest, PassesPrefixesOfTheHighestBytes) {
  const auto archive = MakeArchive({{{.id = "a\xFF\xFF"},
                                     {.id = "a\xFF\xFF\xFF"},
                                     {.id = "b"},
                                     {.id = "\xFF\xFF"},
                                     {.id = "\xFF\xFFz"}}});
  EXPECT_THAT(List(*archive, "", "\xFF\xFF"),
              ElementsAre(Pair("a\xFF\xFF", std::nullopt), Pair("b", 2),
                          Pair("\xFF\xFF", std::nullopt)));
  EXPECT_THAT(List(*archive, "\xFF", "\xFF"),
              ElementsAre(Pair("\xFF\xFF", std::nullopt)));
  EXPECT_THAT(List(*archive, "", "\xFF",
                   Archive::IdCursor{.id = "\xFF", .is_common_prefix = true}),
              ElementsAre());
}

// Adds a segment without documents to the archive, before the one at `index`.
void InsertEmptySegment(const std::string& path, size_t index) {
  const std::string manifest_path = absl::StrCat(path, "/", kManifestFileName);
  Manifest manifest =
      ParseManifest(AsBytes(ReadTestFile(manifest_path))).value();
  const uint32_t number = manifest.next_segment_number++;
  SegmentFooter footer{.sections = {}, .blocks_end = kSegmentHeaderSizeBytes};
  const std::string segment =
      EncodeSegmentHeader(
          {.number = number,
           .block_size_bytes = manifest.block_size_bytes,
           .codec_id = static_cast<uint32_t>(manifest.codec.id)}) +
      EncodeSegmentFooter(footer, number);
  WriteTestFile(absl::StrCat(path, "/", SegmentFileName(number)), segment);
  manifest.segments.insert(
      manifest.segments.begin() + static_cast<ptrdiff_t>(index),
      {.number = number,
       .file_size_bytes = segment.size(),
       .footer_checksum = footer.checksum,
       .sections = {},
       .codec_level = manifest.codec.level});
  manifest.uuid = manifest.DeriveUuid();
  WriteTestFile(manifest_path, EncodeManifest(manifest));
}

// The format allows them (FORMAT.md, section 6).
TEST(ArchiveListingTest, PassesSegmentsWithoutDocuments) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  QUIRE_ASSERT_OK(WriteTestArchive(
      path, options, {{{.id = "b", .text = "x"}}, {{.id = "a"}, {.id = "b"}}}));
  for (const size_t index : {0u, 2u, 2u, 5u}) {
    InsertEmptySegment(path, index);
  }
  const auto archive = Archive::Open(path);
  QUIRE_ASSERT_OK(archive);
  ASSERT_EQ((*archive)->info().segment_count, 6);
  EXPECT_THAT(List(**archive, "", ""),
              ElementsAre(Pair("a", 1), Pair("b", 0), Pair("b", 2)));
  EXPECT_THAT(
      List(**archive, "", "", Archive::IdCursor{.id = "b", .ordinal = 0}),
      ElementsAre(Pair("b", 2)));
}

TEST(ArchiveListingTest, AnswersAsTheModelDoes) {
  std::mt19937 seeds(TestSeed());
  for (int round = 0; round < 30; ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const std::string letters("ab/\0\xFF", 5);
    const auto random_text = [&](size_t size_max) {
      std::string text;
      for (size_t size = random() % (size_max + 1); size > 0; --size) {
        text += letters[random() % letters.size()];
      }
      return text;
    };
    std::vector<TestSegment> segments(random() % 4);
    for (TestSegment& segment : segments) {
      for (size_t count = random() % 300; count > 0; --count) {
        segment.push_back({.id = random_text(8)});
      }
    }
    const auto archive = MakeArchive(segments);
    for (int i = 0; i < 30; ++i) {
      const std::string prefix = random_text(2);
      const std::string delimiter = random_text(2);
      SCOPED_TRACE(absl::StrFormat("prefix %s, delimiter %s",
                                   testing::PrintToString(prefix),
                                   testing::PrintToString(delimiter)));
      const std::vector<Entry> expected =
          ExpectedEntries(segments, prefix, delimiter);
      ASSERT_EQ(List(*archive, prefix, delimiter), expected);
      // Pages, each from the last entry of the one before.
      const size_t page_size = 1 + random() % 5;
      std::vector<Entry> paged;
      std::optional<Archive::IdCursor> after;
      for (;;) {
        const std::vector<Entry> page =
            List(*archive, prefix, delimiter, after, page_size);
        if (page.empty()) {
          break;
        }
        paged.insert(paged.end(), page.begin(), page.end());
        after = {.id = page.back().first,
                 .ordinal = page.back().second.value_or(0),
                 .is_common_prefix = !page.back().second.has_value()};
      }
      ASSERT_EQ(paged, expected);
    }
  }
}

// A page costs as many searches and ids as it has entries, for any number of
// documents in them.
TEST(ArchiveListingTest, CostsAPageOfSiblings) {
  constexpr uint64_t kSiblingCount = 40;
  constexpr uint64_t kSegmentCount = 3;
  constexpr uint64_t kPageSize = 10;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> costs;
  for (const uint64_t count : {1u, 100u, 3000u}) {
    std::vector<TestSegment> segments(kSegmentCount);
    for (TestSegment& segment : segments) {
      for (uint64_t i = 0; i < kSiblingCount * count; ++i) {
        segment.push_back(
            {.id = absl::StrFormat("x/%02d/%06d", i % kSiblingCount, i)});
      }
    }
    const auto archive = MakeArchive(segments);
    Archive::ListingCost cost;
    EXPECT_EQ(List(*archive, "", "/", {}, kPageSize, &cost).size(), 1u);
    EXPECT_LE(cost.search_count, 2 * kSegmentCount);
    EXPECT_LE(cost.id_count, kSegmentCount);
    std::optional<Archive::IdCursor> after;
    for (uint64_t first = 0; first < kSiblingCount; first += kPageSize) {
      const std::vector<Entry> page =
          List(*archive, "x/", "/", after, kPageSize, &cost);
      ASSERT_EQ(page.size(), kPageSize);
      EXPECT_EQ(page[0].first, absl::StrFormat("x/%02d/", first));
      EXPECT_LE(cost.search_count, (kPageSize + 2) * kSegmentCount);
      EXPECT_LE(cost.id_count, (kPageSize + 1) * kSegmentCount);
      after = {.id = page.back().first, .is_common_prefix = true};
    }
    costs[count] = {cost.search_count, cost.id_count};
  }
  EXPECT_EQ(costs[1], costs[3000]);
  EXPECT_EQ(costs[100], costs[3000]);
}

}  // namespace
}  // namespace quire
