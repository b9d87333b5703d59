// SPDX-License-Identifier: Apache-2.0
#include "client/cli/document_filter.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/shown_text.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// 2021-01-01.
constexpr int64_t kFirstMs = 1'609'459'200'000;
constexpr int64_t kDayMs = 86'400'000;

// A document with the properties that filters look at.
struct Sample {
  std::string record_type;
  std::string media_type;
  std::optional<int64_t> time_ms;
  std::optional<int> status;
};

v1::Document DocumentOf(const Sample& sample) {
  v1::Document document;
  if (!sample.record_type.empty()) {
    document.set_record_type(sample.record_type);
  }
  if (!sample.media_type.empty()) {
    document.set_media_type(sample.media_type);
  }
  if (sample.time_ms.has_value()) {
    document.set_capture_time_ms(*sample.time_ms);
  }
  return document;
}

// The options as a user reads them: on texts, without parsing the values.
bool PassesByHand(const FilterSettings& settings, const Sample& sample) {
  const auto any = [](const std::vector<std::string>& lists, auto matches) {
    const std::vector<std::string> values =
        absl::StrSplit(absl::StrJoin(lists, ","), ',');
    return lists.empty() || std::any_of(values.begin(), values.end(), matches);
  };
  const std::string time =
      sample.time_ms.has_value() ? FormatTimeMs(*sample.time_ms) : "";
  // Prefixes of ISO 8601 are ordered as the times are.
  const auto compare = [&](const std::string& limit) {
    return time.substr(0, limit.size()).compare(limit);
  };
  return any(settings.record_types,
             [&](const std::string& type) {
               return absl::AsciiStrToLower(type) == sample.record_type;
             }) &&
         any(settings.media_types,
             [&](const std::string& type) {
               const std::string found =
                   absl::StrCat(absl::AsciiStrToLower(sample.media_type), ";");
               return type.back() == '*'
                          ? found.rfind(type.substr(0, type.size() - 1), 0) == 0
                          : found.rfind(type + ";", 0) == 0;
             }) &&
         any(settings.statuses,
             [&](const std::string& pattern) {
               const std::string found =
                   sample.status.has_value()
                       ? absl::StrFormat("%03d", *sample.status)
                       : "";
               bool matches = found.size() == pattern.size();
               for (size_t i = 0; matches && i < found.size(); ++i) {
                 matches = pattern[i] == 'x' || pattern[i] == found[i];
               }
               return matches;
             }) &&
         (!settings.from.has_value() ||
          (!time.empty() && compare(*settings.from) >= 0)) &&
         (!settings.to.has_value() ||
          (!time.empty() && compare(*settings.to) <= 0));
}

class RandomFilters {
 public:
  explicit RandomFilters(uint64_t seed) : random_(seed) {}

  Sample NextSample() {
    Sample sample;
    sample.record_type = Pick({"", "response", "revisit", "request"});
    sample.media_type =
        Pick({"", "text/html", "Text/HTML", "text/html;charset=utf-8",
              "text/html-extra", "image/png", "image/gif"});
    if (random_() % 4 != 0) {
      sample.time_ms =
          kFirstMs + static_cast<int64_t>(random_() % (800 * kDayMs));
    }
    if (random_() % 4 != 0) {
      const int statuses[] = {0, 99, 101, 200, 204, 301, 404, 500, 999};
      sample.status = statuses[random_() % std::size(statuses)];
    }
    return sample;
  }

  FilterSettings NextSettings() {
    FilterSettings settings;
    Fill(settings.record_types, {"response", "REVISIT", "response,request"});
    Fill(settings.media_types, {"text/html", "image/*", "image/png,text/html"});
    Fill(settings.statuses, {"200", "2xx", "x0x", "301,404", "xxx", "0xx"});
    if (random_() % 3 == 0) {
      settings.from = Pick({"2021", "2021-06", "2021-12-31T12", "2022-01-15"});
    }
    if (random_() % 3 == 0) {
      settings.to = Pick({"2022", "2022-06", "2022-02-01T00:30", "2023-01-01"});
    }
    return settings;
  }

 private:
  std::string Pick(const std::vector<std::string>& values) {
    return values[random_() % values.size()];
  }

  void Fill(std::vector<std::string>& lists,
            const std::vector<std::string>& values) {
    for (uint64_t count = random_() % 3; count > 0; --count) {
      lists.push_back(Pick(values));
    }
  }

  std::mt19937_64 random_;
};

TEST(DocumentFilterTest, RemovedDocumentsPassOnlyIfTheirTypeIsSelected) {
  v1::Document document;
  document.set_record_type("withdrawn");
  EXPECT_FALSE(DocumentFilter().Passes(document));
  EXPECT_FALSE(DocumentFilter().is_set());
  for (const char* const type : {"withdrawn", "response"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const DocumentFilter filter,
                               DocumentFilter::Make({.record_types = {type}}));
    EXPECT_EQ(filter.Passes(document), type == std::string("withdrawn"));
  }
}

TEST(DocumentFilterTest, PassesWhatAReaderOfTheOptionsExpects) {
  constexpr uint64_t kSeed = 11;
  RandomFilters random(kSeed);
  int passed_count = 0;
  for (int i = 0; i < 2'000; ++i) {
    const FilterSettings settings = random.NextSettings();
    QUIRE_ASSERT_OK_AND_ASSIGN(const DocumentFilter filter,
                               DocumentFilter::Make(settings));
    EXPECT_EQ(filter.needs_status(), !settings.statuses.empty());
    EXPECT_EQ(filter.is_set(),
              !settings.record_types.empty() || !settings.statuses.empty() ||
                  !settings.media_types.empty() || settings.from.has_value() ||
                  settings.to.has_value());
    for (int j = 0; j < 20; ++j) {
      const Sample sample = random.NextSample();
      const bool passes = filter.Passes(DocumentOf(sample)) &&
                          filter.PassesStatus(sample.status);
      EXPECT_EQ(passes, PassesByHand(settings, sample))
          << "seed " << kSeed << ", filter " << i << ", sample " << j;
      passed_count += passes ? 1 : 0;
    }
  }
  EXPECT_GT(passed_count, 1'000);
  EXPECT_LT(passed_count, 39'000);
}

TEST(DocumentFilterTest, TakesTheDigitsOfWebArchives) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const DocumentFilter filter,
      DocumentFilter::Make({.from = "20210101", .to = "20210102000000"}));
  Sample sample;
  sample.time_ms = kFirstMs;
  EXPECT_TRUE(filter.Passes(DocumentOf(sample)));
  sample.time_ms = kFirstMs + kDayMs + 999;
  EXPECT_TRUE(filter.Passes(DocumentOf(sample)));
  sample.time_ms = kFirstMs + kDayMs + 1000;
  EXPECT_FALSE(filter.Passes(DocumentOf(sample)));
  sample.time_ms = kFirstMs - 1;
  EXPECT_FALSE(filter.Passes(DocumentOf(sample)));
}

TEST(DocumentFilterTest, SelectsForIdsAlone) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const DocumentFilter filter,
      DocumentFilter::Make({.record_types = {"Response", ""}, .to = "2020"}));
  DocumentKey key = DocumentKey::Id("a");
  filter.Select(key);
  EXPECT_THAT(key.record_types, ::testing::ElementsAre("response", ""));
  EXPECT_EQ(key.at_time_ms, kFirstMs - 1);
  for (DocumentKey other :
       {DocumentKey{.name = "a", .occurrence = 1}, DocumentKey::Ordinal(1)}) {
    filter.Select(other);
    EXPECT_TRUE(other.record_types.empty());
    EXPECT_FALSE(other.at_time_ms.has_value());
  }
}

TEST(DocumentFilterTest, RefusesMistakes) {
  const auto expect = [](const FilterSettings& settings, const char* message) {
    EXPECT_THAT(
        DocumentFilter::Make(settings),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  for (const char* bad :
       {"", "20", "2000", "2x", "abc", "20-", "200,", "-20", "ok", "2**"}) {
    expect({.statuses = {bad}}, "--status must be three digits");
  }
  for (const char* bad : {"", "html", "text/", "/html", "*/*", "text/h*",
                          "text/html,", "a/b/c"}) {
    expect({.media_types = {bad}}, "--media-type must be TYPE/SUBTYPE");
  }
  expect({.record_types = {"response,"}}, "--record-type must be");
  expect({.from = "June"}, "--from: ");
  expect({.to = "2022-13"}, "--to: ");
  expect({.from = "2022-06", .to = "2022-05"},
         "--from must not be later than --to, got \"2022-06\" and");
  QUIRE_EXPECT_OK(
      DocumentFilter::Make({.from = "2022-06", .to = "2022-06"}).status());
}

}  // namespace
}  // namespace quire
