// SPDX-License-Identifier: GPL-3.0-or-later
//
// Captures in archives: found over segments, joined, verified, carried.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/capture_scan.h"
#include "server/archive/document_captures.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/segment_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kBlockSizeBytes = 4096;

TestDocument Response(const std::string& url, int64_t time_ms,
                      uint32_t status = 200) {
  return {.id = url,
          .text = absl::StrCat("record of ", url),
          .capture_time_ms = time_ms,
          .record_type = "response",
          .capture =
              TestCapture{.key = SurtKey(url), .url = url, .status = status}};
}

class ArchiveCapturesTest : public ::testing::Test {
 protected:
  static absl::Status Write(const std::string& path,
                            const std::vector<TestSegment>& segments) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = kBlockSizeBytes;
    return WriteTestArchive(path, options, segments).status();
  }

  // Appends a segment, and joins all segments.
  absl::Status Append(const TestSegment& segment, bool joins) {
    QUIRE_ASSIGN_OR_RETURN(ArchiveChange change, ArchiveChange::Begin(path_));
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    QUIRE_RETURN_IF_ERROR(
        WriteTestSegment(segment, kBlockSizeBytes, nullptr, *writer));
    if (joins) {
      const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(),
                                          nullptr, CodecUse::kEncodeAndDecode);
      QUIRE_RETURN_IF_ERROR(
          writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr).status());
    }
    return writer->Commit().status();
  }

  static std::vector<std::string> DamagesOf(const std::string& path) {
    std::vector<std::string> damages;
    QUIRE_EXPECT_OK(VerifyArchive(path, {}, [&](const ArchiveDamage& damage) {
                      damages.emplace_back(damage.status.message());
                    }).status());
    return damages;
  }

  // Times and ordinals of what a query finds: "5@2". Each page has one capture,
  // and the next one begins after it.
  static std::vector<std::string> Find(const Archive& archive,
                                       const CaptureQuery& query,
                                       uint64_t document_count,
                                       bool in_pages = false) {
    std::vector<std::string> found;
    std::optional<CapturePlace> after;
    auto scan = std::make_unique<CaptureScan>(
        archive, document_count, query, after, BlockingPartLoader(archive));
    while (true) {
      FoundCapture capture;
      const auto step = scan->Next(capture);
      if (!step.ok()) {
        found.push_back(step.status().ToString());
      }
      if (!step.ok() || *step == CaptureScan::Step::kEnd) {
        return found;
      }
      if (*step == CaptureScan::Step::kFound) {
        found.push_back(absl::StrCat(capture.place.time_ms, "@",
                                     capture.place.ordinal.value));
      }
      if (in_pages) {
        scan = std::make_unique<CaptureScan>(archive, document_count, query,
                                             capture.place,
                                             BlockingPartLoader(archive));
      }
    }
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
};

TEST_F(ArchiveCapturesTest, AreFoundOverSegments) {
  QUIRE_ASSERT_OK(
      Write(path_, {{Response("http://example.com/", 30),
                     {.id = "no capture", .text = "x"},
                     Response("http://www.example.com:80/", 10, 404)},
                    {{.id = "none here", .text = "y"}},
                    {Response("http://example.com/a", 20),
                     Response("http://shop.example.com/", 5),
                     Response("http://example.com/", 20)}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_THAT(
      ReadTestCaptures(*archive),
      ElementsAre("com,example)/ 10 2 404  http://www.example.com:80/",
                  "com,example)/ 20 6 200  http://example.com/",
                  "com,example)/ 30 0 200  http://example.com/",
                  "com,example)/a 20 4 200  http://example.com/a",
                  "com,example,shop)/ 5 5 200  http://shop.example.com/"));
  const auto find = [&](SurtMatch match, const std::string& url) {
    return Find(*archive, {.range = SurtRangeOfUrl(url, match)}, 7);
  };
  EXPECT_THAT(find(SurtMatch::kExact, "example.com"),
              ElementsAre("10@2", "20@6", "30@0"));
  EXPECT_THAT(find(SurtMatch::kExact, "example.com/none"), IsEmpty());
  EXPECT_THAT(find(SurtMatch::kHost, "example.com"), SizeIs(4));
  EXPECT_THAT(find(SurtMatch::kDomain, "example.com"), SizeIs(5));
  EXPECT_THAT(Find(*archive,
                   {.range = SurtRangeOfUrl("com", SurtMatch::kDomain),
                    .from_ms = 10,
                    .until_ms = 20},
                   7),
              ElementsAre("10@2", "20@6", "20@4"));
  // A state before the last documents were appended.
  EXPECT_THAT(
      Find(*archive, {.range = SurtRangeOfUrl("com", SurtMatch::kDomain)}, 5),
      ElementsAre("10@2", "30@0", "20@4"));
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
  EXPECT_EQ(IndexingOf(*archive, 7).capture_count, 5);
  EXPECT_EQ(IndexingOf(*archive, 7).unindexed_document_count, 0);
  EXPECT_GT(StoredCapturesSizeBytes(*archive).value(), 0);
  EXPECT_LE(archive->memory().total_bytes(), archive->memory_bytes_max());
}

// All orders, against a simple model, whole and in pages of one.
TEST_F(ArchiveCapturesTest, OrdersAreThoseOfAModel) {
  std::mt19937_64 random(3);
  std::vector<TestSegment> segments(3);

  struct Place {
    int64_t time_ms = 0;
    uint64_t ordinal = 0;
  };

  std::vector<Place> places;
  for (TestSegment& segment : segments) {
    for (int i = 0; i < 60; ++i) {
      const auto time_ms = static_cast<int64_t>(random() % 40);
      segment.push_back(Response("http://example.com/", time_ms));
      places.push_back({.time_ms = time_ms, .ordinal = places.size()});
    }
    segment.push_back(Response("http://example.com/after", 1));
    places.push_back({.time_ms = -1});
  }
  QUIRE_ASSERT_OK(Write(path_, segments));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  std::erase_if(places, [](const Place& place) { return place.time_ms < 0; });
  for (const int64_t closest : {-5, 0, 13, 20, 39, 100}) {
    for (const auto order :
         {CaptureQuery::Order::kKey, CaptureQuery::Order::kNewestFirst,
          CaptureQuery::Order::kClosest}) {
      const CaptureQuery query = {
          .range = SurtRangeOfUrl("example.com", SurtMatch::kExact),
          .from_ms = 3,
          .until_ms = 35,
          .order = order,
          .closest_ms = closest};
      std::vector<Place> expected = places;
      std::erase_if(expected, [](const Place& place) {
        return place.time_ms < 3 || place.time_ms > 35;
      });
      std::ranges::sort(expected, [&](const Place& a, const Place& b) {
        const auto by_time = [](const Place& place) {
          return std::tuple(place.time_ms, place.ordinal);
        };
        if (order == CaptureQuery::Order::kKey) {
          return by_time(a) < by_time(b);
        }
        if (order == CaptureQuery::Order::kNewestFirst) {
          return by_time(b) < by_time(a);
        }
        const auto distance = [closest](const Place& place) {
          return std::max(place.time_ms - closest, closest - place.time_ms);
        };
        if (distance(a) != distance(b)) {
          return distance(a) < distance(b);
        }
        const bool is_past = a.time_ms < closest;
        return is_past == (b.time_ms < closest)
                   ? (is_past ? by_time(b) < by_time(a)
                              : by_time(a) < by_time(b))
                   : is_past;
      });
      std::vector<std::string> texts;
      for (const Place& place : expected) {
        texts.push_back(absl::StrCat(place.time_ms, "@", place.ordinal));
      }
      EXPECT_EQ(Find(*archive, query, 1000), texts);
      EXPECT_EQ(Find(*archive, query, 1000, /*in_pages=*/true), texts);
    }
  }
}

TEST_F(ArchiveCapturesTest, AreJoinedWithTheirSegments) {
  QUIRE_ASSERT_OK(Write(path_, {{Response("http://b.com/", 1),
                                 {.id = "none", .text = "x"},
                                 Response("http://a.com/", 2)}}));
  TestDocument renamed = Response("http://c.com/", 4);
  renamed.id = "renamed";
  renamed.capture->digest = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";
  QUIRE_ASSERT_OK(
      Append({Response("http://a.com/", 3), renamed}, /*joins=*/true));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(archive->info().segment_count, 1);
  EXPECT_THAT(
      ReadTestCaptures(*archive),
      ElementsAre("com,a)/ 2 2 200  http://a.com/",
                  "com,a)/ 3 3 200  http://a.com/",
                  "com,b)/ 1 0 200  http://b.com/",
                  "com,c)/ 4 4 200 sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A "
                  "http://c.com/"));
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
  DocumentCaptures captures(*archive);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto found, captures.Find({4}, "renamed"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->url, "http://c.com/");
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto none, captures.Find({1}, "none"));
  EXPECT_FALSE(none.has_value());
}

TEST_F(ArchiveCapturesTest, ArchivesWithoutThemHaveNoContainer) {
  QUIRE_ASSERT_OK(Write(path_, {{{.id = "a", .text = "A"}}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(
      archive->ReaderOf(0).footer().Find(SectionType::kContainerDirectory),
      nullptr);
  EXPECT_EQ(IndexingOf(*archive, 1).capture_count, 0);
  // As an earlier version wrote a crawl.
  QUIRE_ASSERT_OK(
      Append({{.id = "b", .text = "B", .record_type = "response"}}, false));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto grown, Archive::Open(path_));
  EXPECT_EQ(IndexingOf(*grown, 2).unindexed_document_count, 1);
  EXPECT_EQ(IndexingOf(*grown, 1).unindexed_document_count, 0);
}

TEST_F(ArchiveCapturesTest, VerifyComparesThemWithTheDocuments) {
  TestDocument other = Response("http://a.com/", 2);
  QUIRE_ASSERT_OK(Write(path_, {{other}}));
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
  // The writer takes the time for 0.
  other.capture_time_ms = std::nullopt;
  QUIRE_ASSERT_OK(Write(directory_ / "b", {{other}}));
  EXPECT_THAT(DamagesOf(directory_ / "b"),
              ElementsAre(HasSubstr("does not fit document 0")));
}

}  // namespace
}  // namespace quire
