// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares the selection among documents of one id, by record type and time,
// with a model that examines all of them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using Types = std::vector<absl::string_view>;

constexpr absl::string_view kTypes[] = {"response", "request", "revisit", "",
                                        "resource"};

// A segment with ids that occur a few times, around the count from which they
// are sorted, and many times; equal times, types and absent times are frequent.
TestSegment RandomCaptures(std::mt19937_64& random, int64_t time_count) {
  TestSegment segment;
  for (const auto& [id, count] :
       {std::pair("few", random() % 5), std::pair("limit", 63 + random() % 3),
        std::pair("many", random() % 3000),
        std::pair("one type", 400 + random() % 2)}) {
    for (uint64_t i = 0; i < count; ++i) {
      TestDocument document{.id = id, .text = "x"};
      if (random() % 8 != 0) {
        document.capture_time_ms =
            static_cast<int64_t>(random() % static_cast<uint64_t>(time_count)) -
            time_count / 2;
      }
      document.record_type = std::string(
          id == std::string("one type") ? "response" : kTypes[random() % 5]);
      segment.push_back(document);
    }
  }
  std::shuffle(segment.begin(), segment.end(), random);
  return segment;
}

// The rule of archive.proto, as a combination of sort orders.
std::optional<uint64_t> Expected(const TestSegment& all, absl::string_view id,
                                 const Types& types, int64_t at_ms,
                                 const OrdinalPredicate& is_left_out) {
  // True if in time; distance in time; ordinal.
  std::optional<std::tuple<bool, int64_t, uint64_t>> best;
  for (uint64_t i = 0; i < all.size(); ++i) {
    if (all[i].id != id || is_left_out(i) ||
        std::find(types.begin(), types.end(), all[i].record_type) ==
            types.end()) {
      continue;
    }
    const int64_t time = all[i].capture_time_ms.value_or(INT64_MIN);
    const bool in_time = time <= at_ms;
    const std::tuple candidate(in_time, in_time ? time : -time, i);
    best = std::max(best.value_or(candidate), candidate);
  }
  return best.has_value() ? std::optional(std::get<2>(*best)) : std::nullopt;
}

void ExpectSame(const Archive& archive, const TestSegment& all,
                std::mt19937_64& random, int64_t time_count) {
  for (int i = 0; i < 400; ++i) {
    const char* const ids[] = {"few", "limit", "many", "one type", "none"};
    const absl::string_view id = ids[random() % 5];
    Types types;
    for (const absl::string_view type : kTypes) {
      if (random() % 2 == 0) {
        types.push_back(type);
      }
    }
    if (random() % 4 == 0) {
      types.push_back("no such type");
    }
    DocumentSelection selection{.record_types = types};
    if (random() % 4 != 0) {
      selection.at_time_ms = static_cast<int64_t>(random()) % time_count;
    } else if (random() % 8 == 0) {
      selection.at_time_ms = INT64_MIN;
    }
    // None, some, most of the documents, or those of some time.
    const uint64_t divisor = random() % 4;
    const OrdinalPredicate is_left_out = [&, divisor](uint64_t ordinal) {
      return divisor == 1   ? ordinal % 3 == 0
             : divisor == 2 ? ordinal % 50 != 0
             : divisor == 3 ? all[ordinal].capture_time_ms > 0
                            : false;
    };
    if (divisor > 0) {
      selection.is_left_out = &is_left_out;
    }
    const Archive::FoundDocument found = archive.FindCapture(id, selection);
    const std::optional<uint64_t> expected =
        Expected(all, id, types, selection.at_time_ms, is_left_out);
    ASSERT_EQ(found.ordinal.has_value(), expected.has_value()) << id;
    if (expected.has_value()) {
      ASSERT_EQ(found.ordinal->value, *expected)
          << id << " at " << selection.at_time_ms;
    }
    EXPECT_EQ(found.count,
              static_cast<uint64_t>(std::count_if(
                  all.begin(), all.end(),
                  [&](const TestDocument& d) { return d.id == id; })));
    std::vector<std::string> types_of;
    for (uint64_t k = 0; k < all.size(); ++k) {
      const std::string& type = all[k].record_type;
      if (all[k].id == id && !is_left_out(k) &&
          std::find(types_of.begin(), types_of.end(), type) == types_of.end()) {
        types_of.push_back(type);
      }
    }
    EXPECT_THAT(archive.RecordTypesOf(id, 16, Archive::kAllDocuments,
                                      selection.is_left_out),
                ::testing::UnorderedElementsAreArray(types_of));
    EXPECT_EQ(
        archive
            .RecordTypesOf(id, 2, Archive::kAllDocuments, selection.is_left_out)
            .size(),
        std::min<size_t>(types_of.size(), 2));
  }
}

TEST(ArchiveCaptureTest, FindsWhatTheModelFinds) {
  std::mt19937 seeds(TestSeed());
  for (int round = 0; round < (kIsSanitized ? 3 : 8); ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const int64_t time_count = round % 2 == 0 ? 10 : 100000;
    std::vector<TestSegment> segments;
    TestSegment all;
    for (int i = 0; i < 1 + round % 3; ++i) {
      segments.push_back(RandomCaptures(random, time_count));
      all.insert(all.end(), segments.back().begin(), segments.back().end());
    }
    const TemporaryDirectory directory;
    const std::string path = directory / "a.quire";
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    QUIRE_ASSERT_OK(WriteTestArchive(path, options, segments));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
    ExpectSame(*archive, all, random, time_count);
  }
}

TEST(ArchiveCaptureTest, CountsOccurrences) {
  std::mt19937_64 random(1);
  std::vector<TestSegment> segments;
  for (int i = 0; i < 3; ++i) {
    segments.push_back(RandomCaptures(random, 10));
  }
  const TemporaryDirectory directory;
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", options, segments));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  const uint64_t end = archive->info().document_count * 2 / 3;
  for (const uint64_t limit : {end, Archive::kAllDocuments}) {
    for (const char* const id : {"few", "limit", "many", "one type"}) {
      const uint64_t count =
          archive->FindDocument(id, std::nullopt, limit).count;
      for (uint64_t number = 0; number < count; ++number) {
        const DocumentOrdinal ordinal =
            *archive->FindDocument(id, number, limit).ordinal;
        const Archive::Occurrence found =
            archive->OccurrenceOf(ordinal, id, limit);
        EXPECT_EQ(found.number, number);
        EXPECT_EQ(found.count, count);
      }
    }
  }
}

// Without types and times the last document is selected, however many there
// are.
TEST(ArchiveCaptureTest, FindsTheLastOfPlainDocuments) {
  const TestSegment segment(1000, TestDocument{.id = "a", .text = "x"});
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  QUIRE_ASSERT_OK(WriteTestArchive(path, options, {segment, segment, {}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  const Types types = {"response", ""};
  EXPECT_EQ(archive->FindCapture("a", {.record_types = types}).ordinal->value,
            1999u);
  EXPECT_EQ(archive->FindCapture("a", {.record_types = {}}).ordinal,
            std::nullopt);
  EXPECT_EQ(archive->FindCapture("b", {.record_types = types}).count, 0u);
}

}  // namespace
}  // namespace quire
