// SPDX-License-Identifier: GPL-3.0-or-later
//
// Rules for parts of a crawl, and what refers to them: random crawls and rules,
// compared with a search through plain tables.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/filter/filter.h"
#include "codecs/filter/short_rule.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_writer.h"
#include "server/archive/filtered_documents.h"
#include "server/archive/kept_references.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHosts[] = {"news.test", "shop.news.test",
                                  "fakenews.test", "b.test"};
// Years from 2018 on.
constexpr int kYears = 4;
constexpr const char* kDigests[] = {"", "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                    "sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB",
                                    "sha256:0c"};

// A row of the plain table.
struct Record {
  // Empty: none.
  std::string host = {};
  // 0: none; otherwise a year.
  int year = 0;
  uint32_t status = 0;
  std::string digest = {};
  std::string type = {};
};

struct Rule {
  std::string text;
  std::function<bool(const Record& record)> matches;
};

bool IsOf(const Record& record, const std::string& domain) {
  const std::string end = "." + domain;
  return record.host == domain ||
         (record.host.size() > end.size() &&
          record.host.substr(record.host.size() - end.size()) == end);
}

class TakeDownTest : public ::testing::Test {
 protected:
  size_t Below(size_t limit) { return random_() % limit; }

  // A URL of the host, or a form of one that crawlers write.
  std::string RandomId(const std::string& host) {
    const std::string page = absl::StrCat(
        Below(2) == 0 ? "http://" : "https://", Below(2) == 0 ? "www." : "",
        host, Below(3) == 0 ? ":8080" : "", "/", Below(5));
    const char* const forms[] = {"",
                                 "",
                                 "",
                                 "urn:pageinfo:",
                                 "urn:view:",
                                 "screenshot:",
                                 "youtube-dl:00001:"};
    return forms[Below(std::size(forms))] + page;
  }

  TestDocument RandomDocument() {
    const char* const types[] = {"response",  "response", "revisit",
                                 "resource",  "request",  "metadata",
                                 "conversion"};
    Record record;
    const bool has_host = Below(8) > 0;
    // Other types are captures, which are all indexed.
    record.type = has_host        ? types[Below(std::size(types))]
                  : Below(2) == 0 ? "metadata"
                                  : "request";
    TestDocument document = {.text = "record", .record_type = record.type};
    record.host = has_host ? kHosts[Below(std::size(kHosts))] : "";
    document.id =
        has_host ? RandomId(record.host) : absl::StrCat("urn:uuid:", Below(9));
    record.year = 2018 + static_cast<int>(Below(kYears));
    document.capture_time_ms =
        ParseFieldTime(absl::StrCat(record.year, "-0", 1 + Below(9), "-15"))
            ->us /
        1000;
    if (record.type != "request" && record.type != "metadata" && has_host) {
      record.status =
          Below(4) == 0 ? 0 : 200 + 102 * static_cast<uint32_t>(Below(3));
      record.digest = kDigests[Below(std::size(kDigests))];
      document.capture = TestCapture{.key = SurtKey(document.id),
                                     .url = document.id,
                                     .status = record.status,
                                     .digest = record.digest};
    }
    records_.push_back(std::move(record));
    return document;
  }

  void Write() {
    records_.clear();
    std::vector<TestSegment> segments(1 + Below(3));
    for (TestSegment& segment : segments) {
      for (size_t count = 1 + Below(40); count > 0; --count) {
        segment.push_back(RandomDocument());
      }
    }
    Write(segments);
  }

  void Write(const std::vector<TestSegment>& segments) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = 4096;
    const std::string path = directory_ / absl::StrCat(++archive_count_);
    QUIRE_ASSERT_OK(WriteTestArchive(path, options, segments));
    QUIRE_ASSERT_OK_AND_ASSIGN(archive_, Archive::Open(path));
  }

  Rule RandomRule() {
    std::vector<Rule> terms;
    if (Below(3) > 0) {
      const std::string host = kHosts[Below(std::size(kHosts))];
      const bool is_host = Below(3) == 0;
      terms.push_back({absl::StrCat(is_host ? "host " : "domain ", host),
                       [host, is_host](const Record& record) {
                         return is_host ? record.host == host
                                        : IsOf(record, host);
                       }});
    }
    if (Below(4) == 0) {
      const uint32_t code = 200 + 102 * static_cast<uint32_t>(Below(3));
      terms.push_back(
          {absl::StrCat("status ", code),
           [code](const Record& record) { return record.status == code; }});
    } else if (Below(4) == 0) {
      terms.push_back({"status 4xx", [](const Record& record) {
                         return record.status / 100 == 4;
                       }});
    }
    if (Below(4) == 0) {
      const std::string digest = kDigests[1 + Below(std::size(kDigests) - 1)];
      terms.push_back(
          {absl::StrCat("digest ", digest),
           [digest](const Record& record) { return record.digest == digest; }});
    }
    if (terms.empty() || Below(2) == 0) {
      const int from = 2018 + static_cast<int>(Below(kYears));
      const int to = from + static_cast<int>(Below(kYears));
      terms.push_back({absl::StrCat("time ", from, "..", to),
                       [from, to](const Record& record) {
                         return record.year >= from && record.year <= to;
                       }});
    }
    std::shuffle(terms.begin(), terms.end(), random_);
    Rule rule;
    for (const Rule& term : terms) {
      absl::StrAppend(&rule.text, rule.text.empty() ? "" : " ", term.text);
    }
    rule.matches = [terms](const Record& record) {
      return std::all_of(terms.begin(), terms.end(), [&](const Rule& term) {
        return term.matches(record);
      });
    };
    return rule;
  }

  absl::StatusOr<std::set<uint64_t>> Find(const std::string& filter) {
    std::set<uint64_t> found;
    const absl::Status status = VisitMatches(
        *archive_, Filter::Parse(filter).value(), BlockingPartLoader(*archive_),
        {}, [&](DocumentOrdinal ordinal) { found.insert(ordinal.value); });
    return status.ok() ? absl::StatusOr<std::set<uint64_t>>(found) : status;
  }

  absl::StatusOr<KeptReferences> FindReferences(
      const std::set<uint64_t>& removed) {
    return FindKeptReferences(*archive_,
                              {.is_removed =
                                   [&](DocumentOrdinal ordinal) {
                                     return removed.contains(ordinal.value);
                                   },
                               .with_unlocated = true,
                               .load = BlockingPartLoader(*archive_)});
  }

  void ExpectReferences(const std::set<uint64_t>& removed) {
    std::set<std::string> gone;
    std::set<std::string> kept;
    uint64_t unlocated_count = 0;
    for (uint64_t i = 0; i < records_.size(); ++i) {
      const Record& record = records_[i];
      if (record.type != "revisit" && !record.digest.empty()) {
        (removed.contains(i) ? gone : kept).insert(record.digest);
      }
      unlocated_count +=
          !removed.contains(i) && record.host.empty() &&
                  (record.type == "metadata" || record.type == "conversion")
              ? 1
              : 0;
    }
    uint64_t revisit_count = 0;
    uint64_t without_payload_count = 0;
    for (uint64_t i = 0; i < records_.size(); ++i) {
      const Record& record = records_[i];
      if (record.type == "revisit" && !removed.contains(i) &&
          gone.contains(record.digest)) {
        ++revisit_count;
        without_payload_count += kept.contains(record.digest) ? 0 : 1;
      }
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const KeptReferences references,
                               FindReferences(removed));
    EXPECT_EQ(references.revisit_count, revisit_count);
    EXPECT_EQ(references.without_payload_count, without_payload_count);
    EXPECT_THAT(references.revisits,
                SizeIs(std::min<uint64_t>(revisit_count, 10)));
    EXPECT_EQ(references.unlocated_count, unlocated_count);
    reference_count_ += revisit_count;
  }

  std::mt19937_64 random_;
  std::vector<Record> records_;
  const TemporaryDirectory directory_;
  int archive_count_ = 0;
  std::shared_ptr<const Archive> archive_;
  uint64_t reference_count_ = 0;
};

TEST_F(TakeDownTest, RulesFindWhatASearchThroughTablesFinds) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  random_.seed(seed);
  uint64_t match_count = 0;
  for (int round = 0; round < TestRounds(12, 150); ++round) {
    ASSERT_NO_FATAL_FAILURE(Write());
    for (int i = 0; i < 10; ++i) {
      const Rule rule = RandomRule();
      SCOPED_TRACE(rule.text);
      std::set<uint64_t> expected;
      for (uint64_t k = 0; k < records_.size(); ++k) {
        if (rule.matches(records_[k])) {
          expected.insert(k);
        }
      }
      QUIRE_ASSERT_OK_AND_ASSIGN(const std::string filter,
                                 FilterOfShortRule(rule.text));
      const absl::StatusOr<std::set<uint64_t>> found = Find(filter);
      if (absl::IsNotFound(found.status())) {
        // No document of this crawl is a capture.
        ASSERT_TRUE(std::ranges::all_of(records_, [](const Record& record) {
          return record.status == 0 && record.digest.empty();
        })) << found.status();
        continue;
      }
      QUIRE_ASSERT_OK(found);
      ASSERT_EQ(*found, expected);
      match_count += expected.size();
      ASSERT_NO_FATAL_FAILURE(ExpectReferences(expected));
    }
  }
  EXPECT_GT(match_count, 300u);
  EXPECT_GT(reference_count_, 30u);
}

TestDocument Capture(const std::string& url, const std::string& type,
                     const std::string& digest) {
  return {
      .id = url,
      .text = "text",
      .capture_time_ms = 0,
      .record_type = type,
      .capture = TestCapture{
          .key = SurtKey(url), .url = url, .status = 200, .digest = digest}};
}

TEST_F(TakeDownTest, NamesWhatStaysAndRefersToIt) {
  ASSERT_NO_FATAL_FAILURE(
      Write({{Capture("http://a.test/", "response", kDigests[1]),
              Capture("http://b.test/", "revisit", kDigests[1])},
             {Capture("http://c.test/", "revisit", kDigests[1]),
              Capture("http://d.test/", "response", kDigests[2]),
              {.id = "urn:uuid:1", .text = "x", .record_type = "metadata"}}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const KeptReferences references,
                             FindReferences({0}));
  EXPECT_THAT(references.revisits,
              ElementsAre("http://b.test/", "http://c.test/"));
  EXPECT_EQ(references.without_payload_count, 2u);
  EXPECT_THAT(
      DescribeReferences(references),
      ElementsAre("2 revisits stay that have the digest of a document that "
                  "goes, 2 of them without another document that has the "
                  "payload: \"http://b.test/\", \"http://c.test/\"",
                  "1 record stays of the type metadata or conversion whose id "
                  "has no host, and may refer to a document that goes: "
                  "\"urn:uuid:1\""));
  // Their target stays.
  QUIRE_ASSERT_OK_AND_ASSIGN(const KeptReferences none,
                             FindReferences({1, 3, 4}));
  EXPECT_THAT(DescribeReferences(none), IsEmpty());
}

TEST_F(TakeDownTest, NeedsAnIndexOfAllCaptures) {
  const TestDocument page = {.id = "http://a.test/", .text = "x"};
  ASSERT_NO_FATAL_FAILURE(Write({{page}}));
  EXPECT_THAT(Find("status = 200"),
              FailsWith(absl::StatusCode::kNotFound,
                        AllOf(HasSubstr("column 1: no field \"status\""),
                              HasSubstr("an index of captures"))));
  EXPECT_EQ(Find("domain 'a.test'").value(), std::set<uint64_t>{0});
  TestDocument unindexed = page;
  unindexed.record_type = "response";
  ASSERT_NO_FATAL_FAILURE(
      Write({{Capture("http://a.test/", "response", "")}, {unindexed}}));
  EXPECT_THAT(Find("status = 200"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("not known of 1 documents")));
  EXPECT_EQ(Find("domain 'a.test'").value(), (std::set<uint64_t>{0, 1}));
}

TEST_F(TakeDownTest, StopsWhileItReadsCaptures) {
  TestSegment segment;
  for (int i = 0; i < 5000; ++i) {
    segment.push_back(
        Capture(absl::StrCat("http://a.test/", i), "response", ""));
  }
  ASSERT_NO_FATAL_FAILURE(Write({segment}));
  int check_count = 0;
  EXPECT_THAT(VisitMatches(
                  *archive_, Filter::Parse("status = 200").value(),
                  BlockingPartLoader(*archive_),
                  [&] {
                    return ++check_count == 2 ? absl::CancelledError("stop")
                                              : absl::OkStatus();
                  },
                  [](DocumentOrdinal) { ADD_FAILURE() << "found"; }),
              FailsWith(absl::StatusCode::kCancelled, HasSubstr("stop")));
}

}  // namespace
}  // namespace quire
