// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_filter.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/index/document_index_builder.h"
#include "server/archive/index/id_index.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr size_t kSegmentCount = 9;
constexpr size_t kDocumentCount = 2000;

std::string IdOf(size_t segment, size_t document) {
  // Ids of lines are computed, and some ids are in several segments.
  return segment % 2 == 0 ? absl::StrCat("log-", segment, ":", document + 1)
                          : absl::StrCat("page-", document * 7 + segment / 4);
}

TEST(IdFilterTest, AFilterOfNoIdsHasNone) {
  const IdFilter filter{IdIndex()};
  EXPECT_FALSE(filter.MayHave(IdFilter::Hash("")));
  EXPECT_EQ(filter.MemoryBytes(), IdFilter::EstimateBytes(0));
}

TEST(IdFilterTest, TakesTenBitsForEachId) {
  const uint64_t count = 1'000'000;
  EXPECT_NEAR(static_cast<double>(IdFilter::EstimateBytes(count)),
              static_cast<double>(count) * 10 / 8, 200.0);
}

// Every id is found in each of its segments, and nothing else.
TEST(IdFilterTest, ArchivesOfManySegmentsFindAllIds) {
  const TemporaryDirectory directory;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  std::vector<TestSegment> segments(kSegmentCount);
  for (size_t i = 0; i < kSegmentCount; ++i) {
    for (size_t n = 0; n < kDocumentCount; ++n) {
      segments[i].push_back({.id = IdOf(i, n), .text = "x"});
    }
  }
  const auto open = [&](size_t count) {
    const std::string path = directory / absl::StrCat(count);
    QUIRE_EXPECT_OK(WriteTestArchive(
        path, options,
        {segments.begin(), segments.begin() + static_cast<ptrdiff_t>(count)}));
    return Archive::Open(path).value();
  };
  const auto few = open(4);
  const auto many = open(kSegmentCount);
  for (size_t i = 0; i < kSegmentCount; ++i) {
    for (size_t n = 0; n < kDocumentCount; ++n) {
      const auto found = many->FindDocuments(IdOf(i, n));
      ASSERT_TRUE(found.ok()) << IdOf(i, n);
      const DocumentOrdinal expected = {i * kDocumentCount + n};
      EXPECT_TRUE(std::ranges::find(*found, expected) != found->end());
      EXPECT_EQ(many->FindDocument(IdOf(i, n), std::nullopt).count,
                found->size());
    }
  }
  for (size_t n = 0; n < kDocumentCount; ++n) {
    EXPECT_EQ(many->FindDocument(absl::StrCat("log-0:", 2001 + n), std::nullopt)
                  .count,
              0u);
  }
  EXPECT_LE(many->memory().total_bytes(), many->memory_bytes_max());
  EXPECT_EQ(many->memory().id_filters_bytes,
            kSegmentCount * IdFilter::EstimateBytes(kDocumentCount));
  EXPECT_EQ(few->memory().id_filters_bytes, 0u);
}

TEST(IdFilterTest, FewOtherIdsPass) {
  DocumentIndexBuilder builder;
  std::string section;
  uint64_t id_size_bytes = 0;
  for (size_t n = 0; n < 20000; ++n) {
    QUIRE_EXPECT_OK(
        builder.Add({.id = absl::StrCat("page-", n * 0x9E3779B97F4A7C15),
                     .size_bytes = 1}));
  }
  std::optional<std::string> order;
  QUIRE_EXPECT_OK(builder.Build(
      [&](SectionType type, std::string bytes) {
        if (type == SectionType::kDocumentIds) {
          section = std::move(bytes);
        } else if (type == SectionType::kDocumentOrder) {
          order = std::move(bytes);
        }
        return absl::OkStatus();
      },
      id_size_bytes));
  IdIndex::Sections sections;
  sections.ids = AsBytes(section);
  if (order.has_value()) {
    sections.order = AsBytes(*order);
  }
  std::vector<bool> repeats;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdIndex index,
      IdIndex::Parse(sections,
                     {.document_count = 20000, .id_size_bytes = id_size_bytes},
                     repeats));
  const IdFilter filter(index);
  int passed = 0;
  for (size_t n = 0; n < 20000; ++n) {
    EXPECT_TRUE(filter.MayHave(IdFilter::Hash(index.Get(n))));
    passed += filter.MayHave(IdFilter::Hash(absl::StrCat("other-", n))) ? 1 : 0;
  }
  EXPECT_LT(passed, 20000 * 3 / 100);
}

}  // namespace
}  // namespace quire
