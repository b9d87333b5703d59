// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/record_search.h"

#include <random>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using Outcome = RecordSearch::Outcome;

constexpr absl::string_view kHeader =
    "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\n";
constexpr absl::string_view kArcLine =
    "u:1 1.2.3.4 20050622190850 text/plain 5\n";

TEST(RecordSearchTest, FindsFaultlessHeaders) {
  for (const std::string& before :
       {std::string("\n"), std::string("text\r\n"),
        std::string("a WARC/1.0\r\nX: y\r\n\r\n"),
        // No length, no version, a faulty line.
        std::string("\nWARC/1.0\r\nWARC-Type: x\r\n\r\n"),
        std::string("\nWARC/3.0\r\nContent-Length: 5\r\n\r\n"),
        std::string("\nWARC/1.0\r\nno colon\r\nContent-Length: 5\r\n\r\n"),
        // Ones that another begins in.
        std::string("\nWARC/1.0\r\nWARC-Type: x\r\n"),
        std::string("\nWARC/1.0\r\nX: y\r\nContent-Length: 5"),
        std::string("\nWARC/1.0\r\nWARC-Ty"), std::string("\nWARC/1."),
        // No line end.
        std::string("text"), std::string(512, '\0'),
        absl::StrCat("\nWARC/1.0\r\nX: ", std::string(70'000, 'x'), "\r\n")}) {
    const RecordSearch found = FindRecordStart(
        RecordFormat::kWarc, absl::StrCat(before, kHeader, "block"),
        /*at_line_start=*/false, /*is_end=*/true);
    EXPECT_EQ(found.outcome, Outcome::kFound) << before.substr(0, 50);
    EXPECT_EQ(found.offset, before.size()) << before.substr(0, 50);
  }
  EXPECT_EQ(FindRecordStart(RecordFormat::kWarc, kHeader, true, true).outcome,
            Outcome::kFound);
  EXPECT_EQ(FindRecordStart(RecordFormat::kWarc,
                            absl::StrCat("x\n", absl::AsciiStrToLower(kHeader)),
                            false, true)
                .outcome,
            Outcome::kFound);
}

TEST(RecordSearchTest, FindsHeaderLinesOfArcs) {
  const std::string text =
      absl::StrCat("u:0 1.2.3.4 x\nhttp://e.org/\n", kArcLine, "block");
  const RecordSearch found =
      FindRecordStart(RecordFormat::kArc, text, true, true);
  EXPECT_EQ(found.outcome, Outcome::kFound);
  EXPECT_EQ(found.offset, text.find("u:1"));
}

// In pieces of any size the same records are found.
TEST(RecordSearchTest, PiecesMakeNoDifference) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const bool is_arc = random() % 2 == 0;
    const auto format = is_arc ? RecordFormat::kArc : RecordFormat::kWarc;
    std::string text;
    while (random() % 8 != 0) {
      const char* const parts[] = {"text",         "\r\n",     "\n",  "WARC/",
                                   "WARC/1.0\r\n", "X: y\r\n", "u:1 "};
      text += parts[random() % std::size(parts)];
    }
    text += is_arc ? "\nu:1 1.2.3.4 20050622190850 text/plain 5\nblock"
                   : "\nWARC/1.0\r\nContent-Length: 5\r\n\r\nblock";
    const RecordSearch whole = FindRecordStart(format, text, true, true);
    ASSERT_EQ(whole.outcome, Outcome::kFound);
    size_t start = 0;
    size_t end = 0;
    bool at_line_start = true;
    RecordSearch found;
    while (found.outcome != Outcome::kFound) {
      ASSERT_LT(end, text.size());
      end = std::min(text.size(), end + 1 + random() % 9);
      found = FindRecordStart(
          format, absl::string_view(text).substr(start, end - start),
          at_line_start, end == text.size());
      start += found.offset;
      at_line_start = found.outcome == Outcome::kNeedsMore;
    }
    EXPECT_EQ(start, whole.offset);
  }
}

// Starts of headers in each other, and lines without an end, cost no more than
// other text: a megabyte in a fraction of a second.
TEST(RecordSearchTest, TakesLinearTime) {
  for (const char* const part :
       {"\nWARC/1.0", "\nWARC/1.0\nX: y", "\nWARC/", "WARC/1.0",
        "WARC/1.0\nX: y", "u:1 ", "\nu:1 1.2.3.4 1"}) {
    std::string text;
    while (text.size() < (1 << 20)) {
      text += part;
    }
    for (const auto format : {RecordFormat::kWarc, RecordFormat::kArc}) {
      EXPECT_EQ(FindRecordStart(format, text, false, true).outcome,
                Outcome::kNone);
    }
  }
}

}  // namespace
}  // namespace quire
