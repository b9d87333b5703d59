// SPDX-License-Identifier: GPL-3.0-or-later
//
// Filters over whole archives, compared with a search through all documents.
#include "server/archive/filtered_documents.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_writer.h"
#include "server/archive/field_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FilteredDocumentsTest : public ::testing::Test {
 protected:
  // Numbers ascend from 0, in three segments; documents of the second one have
  // none, and are of a crawl.
  void Write(uint64_t count) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = 4096;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Create(directory_ / "a", options, nullptr));
    for (uint64_t i = 0; i < 3; ++i) {
      QUIRE_ASSERT_OK(writer->SetFields(
          i == 1 ? std::vector<FieldColumn>{}
                 : std::vector<FieldColumn>{{"n", FieldType::kInteger}}));
      TestSegment segment;
      for (uint64_t k = i * count; k < (i + 1) * count; ++k) {
        segment.push_back({.id = absl::StrCat("id-", k % 10)});
        if (i == 1) {
          segment.back().record_type = "response";
          segment.back().media_type = k % 2 == 0 ? "text/html" : "bad\x01type";
          segment.back().capture_time_ms = static_cast<int64_t>(k);
        } else {
          segment.back().fields = {static_cast<int64_t>(k)};
        }
      }
      QUIRE_ASSERT_OK(WriteTestSegment(segment, 4096, nullptr, *writer));
    }
    QUIRE_ASSERT_OK(writer->Commit().status());
    QUIRE_ASSERT_OK_AND_ASSIGN(archive_, Archive::Open(directory_ / "a"));
  }

  absl::StatusOr<std::vector<uint64_t>> Find(
      const std::string& filter,
      const std::function<absl::Status()>& check = {}) {
    std::vector<uint64_t> found;
    load_count_ = 0;
    QUIRE_RETURN_IF_ERROR(VisitMatches(
        *archive_, Filter::Parse(filter).value(),
        [this](const ArchivePart& part) {
          ++load_count_;
          return BlockingPartLoader(*archive_)(part);
        },
        check,
        [&](DocumentOrdinal ordinal) { found.push_back(ordinal.value); }));
    return found;
  }

  const TemporaryDirectory directory_;
  std::shared_ptr<const Archive> archive_;
  int load_count_ = 0;
};

TEST_F(FilteredDocumentsTest, FindsDocumentsOfAllSegments) {
  ASSERT_NO_FATAL_FAILURE(Write(20));
  const std::pair<const char*, std::vector<uint64_t>> cases[] = {
      {"n in (3, 19, 20, 41)", {3, 19, 41}},
      {"n >= 58 or n < 1", {0, 58, 59}},
      {"n is null and ordinal < 22", {20, 21}},
      {"type = 'text/html' and time < 1970-01-01T00:00:00.024Z", {20, 22}},
      {"type is null and record_type is not null and id = 'id-3'", {23, 33}},
      {"id = 'id-7' and not (n = 7)", {17, 47, 57}},
      {"size > 0", {}}};
  for (const auto& [filter, expected] : cases) {
    EXPECT_EQ(Find(filter).value(), expected) << filter;
  }
}

// The values of groups whose bounds exclude a match are not read.
TEST_F(FilteredDocumentsTest, PassesGroupsByTheirBounds) {
  ASSERT_NO_FATAL_FAILURE(Write(10'000));
  EXPECT_THAT(Find("n = 5000").value(), ElementsAre(5000));
  // An index of each segment with fields, and one group.
  EXPECT_EQ(load_count_, 3);
  EXPECT_THAT(Find("n < 0").value(), IsEmpty());
  EXPECT_EQ(load_count_, 2);
  EXPECT_EQ(Find("size = 0").value().size(), 30'000u);
  EXPECT_EQ(load_count_, 0);
}

TEST_F(FilteredDocumentsTest, StopsAtErrors) {
  ASSERT_NO_FATAL_FAILURE(Write(10'000));
  EXPECT_THAT(Find("m = 1"), FailsWith(absl::StatusCode::kNotFound,
                                       HasSubstr("no field \"m\"")));
  EXPECT_THAT(Find("n prefix 'a'"),
              HasCode(absl::StatusCode::kInvalidArgument));
  int check_count = 0;
  EXPECT_THAT(Find("ordinal >= 0",
                   [&] {
                     return ++check_count == 3 ? absl::CancelledError("stop")
                                               : absl::OkStatus();
                   }),
              FailsWith(absl::StatusCode::kCancelled, HasSubstr("stop")));
  std::vector<uint64_t> found;
  EXPECT_THAT(
      VisitMatches(
          *archive_, Filter::Parse("n >= 0").value(),
          [&](const ArchivePart& part)
              -> absl::StatusOr<std::optional<PartBytes>> {
            if (part.segment_index == 2) {
              return absl::UnavailableError("no answer");
            }
            return BlockingPartLoader(*archive_)(part);
          },
          {}, [&](DocumentOrdinal ordinal) { found.push_back(ordinal.value); }),
      FailsWith(absl::StatusCode::kUnavailable,
                HasSubstr("segment-00000002: the fields of document 20000 "
                          "cannot be read: no answer")));
  EXPECT_EQ(found.size(), 10'000u);
}

}  // namespace
}  // namespace quire
