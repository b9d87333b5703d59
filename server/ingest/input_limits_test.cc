// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/input_limits.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kTiB = uint64_t{1} << 40;

struct Built {
  absl::StatusOr<BuildSummary> summary = absl::UnknownError("not built");
  // Phases that the build reached.
  std::vector<BuildPhase> phases;
};

// Builds directory/x from `path`.
Built BuildFrom(const TemporaryDirectory& directory, const std::string& path,
                std::optional<uint64_t> limit = std::nullopt) {
  Built built;
  absl::StatusOr<std::unique_ptr<Source>> source = OpenSource(
      path,
      {.spool_directory = directory.path(), .input_size_bytes_max = limit});
  if (!source.ok()) {
    built.summary = source.status();
    return built;
  }
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("zstd");
  options.archive.block_size_bytes = 4096;
  options.archive.replace = true;
  options.input_size_bytes_max = limit;
  options.on_progress = [&built](const BuildProgress& progress) {
    if (built.phases.empty() || built.phases.back() != progress.phase) {
      built.phases.push_back(progress.phase);
    }
  };
  built.summary =
      BuildArchive(directory / "x", Sources(*std::move(source)), options);
  return built;
}

TEST(InputLimitsTest, TheDefaultGrowsWithTheInput) {
  EXPECT_EQ(InputSizeBytesMax(std::nullopt, 0), 64 * kGiB);
  EXPECT_EQ(InputSizeBytesMax(std::nullopt, kGiB), kTiB);
  EXPECT_EQ(InputSizeBytesMax(std::nullopt, UINT64_MAX), 16 * kTiB);
  EXPECT_EQ(InputSizeBytesMax(100 * kTiB, 1), 100 * kTiB);
}

TEST(InputLimitsTest, AnIdThatIsTooLongIsFoundInTheFirstPass) {
  const TemporaryDirectory directory;
  const std::string first = MakeWarcRecord({"WARC-Target-URI: a"}, "block");
  const auto warc = [&](size_t id_size) {
    return directory.Write(
        "in.warc",
        first + MakeWarcRecord({absl::StrCat("WARC-Target-URI: \x1B",
                                             std::string(id_size - 1, 'u'))},
                               MakeTestText(9000, 1)));
  };
  EXPECT_THAT(BuildFrom(directory, warc(kDocumentIdSizeBytesMax)).summary,
              IsOk());
  const Built built = BuildFrom(directory, warc(kDocumentIdSizeBytesMax + 1));
  EXPECT_THAT(
      built.summary,
      FailsWith(absl::StatusCode::kInvalidArgument,
                AllOf(HasSubstr(absl::StrCat(
                          "in.warc: record 1 (from 0) at byte ", first.size(),
                          " of the uncompressed WARC: its id, \"\\x1Buu")),
                      HasSubstr("is 65,536 bytes long; an id must be at most "
                                "65,535 bytes: shorten it"),
                      Not(HasSubstr("\x1B")))));
  EXPECT_EQ(built.phases, std::vector<BuildPhase>{BuildPhase::kCount});
}

TEST(InputLimitsTest, AttributesThatAreTooLongAreLeftOutAndCounted) {
  const TemporaryDirectory directory;
  const std::string at_limit(kAttributeSizeBytesMax, 't');
  const std::string over = at_limit + "t";
  const std::string warc = absl::StrCat(
      MakeWarcRecord({"WARC-Type: " + at_limit, "Content-Type: " + at_limit},
                     "kept"),
      MakeWarcRecord({"WARC-Type: " + over, "Content-Type: " + over}, "block"),
      MakeWarcRecord({"WARC-Type: response"},
                     "HTTP/1.1 200 OK\r\nContent-Type: " + over + "\r\n\r\n"));
  const Built built = BuildFrom(directory, directory.Write("in.warc", warc));
  QUIRE_ASSERT_OK(built.summary.status());
  EXPECT_EQ(built.summary->dropped_attributes.count, 3);
  EXPECT_THAT(built.summary->dropped_attributes.first,
              AllOf(HasSubstr("in.warc: record 1 (from 0) at byte "),
                    HasSubstr("a media type of 65,536 bytes")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const Archive> archive,
                             Archive::Open(directory / "x"));
  ASSERT_EQ(archive->info().document_count, 3);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {at_limit, at_limit}, {"", ""}, {"response", ""}};
  for (uint64_t i = 0; i < 3; ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document document,
                               archive->GetDocument(DocumentOrdinal{i}));
    EXPECT_EQ(document.record_type, expected[i].first) << i;
    EXPECT_EQ(document.media_type, expected[i].second) << i;
  }
}

TEST(InputLimitsTest, ASparseFileThatClaimsATebibyteStopsInTheFirstPass) {
  const TemporaryDirectory directory;
  const std::string tar = GnuSparseTar("data", kTiB - 512, kTiB);
  ASSERT_LT(tar.size(), 10240);
  for (const std::string& text : {tar, Gzip(tar)}) {
    const Built built = BuildFrom(directory, directory.Write("in.tar", text));
    EXPECT_THAT(
        built.summary,
        FailsWith(absl::StatusCode::kResourceExhausted,
                  AllOf(HasSubstr("in.tar: entry 0 (from 0), \"sparse\", at "
                                  "byte 0 of the uncompressed tar: "),
                        HasSubstr("1 TiB"), HasSubstr("64 GiB"),
                        HasSubstr("--input-size-max"))));
    EXPECT_EQ(built.phases, std::vector<BuildPhase>{BuildPhase::kCount});
  }
}

TEST(InputLimitsTest, HardLinksToASparseFileAddUp) {
  const TemporaryDirectory directory;
  std::string tar = GnuSparseTar("data", 40 * kGiB - 512, 40 * kGiB);
  tar.resize(1024);
  tar += MakeTestArchive("gnutar", "none",
                         {{"l", "sparse", TestEntry::Kind::kHardLink}});
  EXPECT_THAT(BuildFrom(directory, directory.Write("in.tar", tar)).summary,
              FailsWith(absl::StatusCode::kResourceExhausted,
                        HasSubstr("entry 1 (from 0), \"l\"")));
}

TEST(InputLimitsTest, TheUsersLimitIsForAllInputs) {
  const TemporaryDirectory directory;
  directory.Write("in/a", std::string(600, 'a'));
  directory.Write("in/b", std::string(400, 'b'));
  EXPECT_THAT(BuildFrom(directory, directory / "in", 1000).summary, IsOk());
  EXPECT_THAT(
      BuildFrom(directory, directory / "in", 999).summary,
      FailsWith(absl::StatusCode::kResourceExhausted,
                AllOf(HasSubstr("the file \"b\""), HasSubstr("999 B"))));
  // A source whose size is known only after it is read.
  int pass_count = 0;
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("zstd");
  options.archive.block_size_bytes = 4096;
  options.input_size_bytes_max = 5000;
  EXPECT_THAT(
      BuildArchive(directory / "y",
                   Sources(std::make_unique<MemorySource>([&](int pass) {
                     pass_count = pass + 1;
                     return IdsAndContents{
                         {"a", std::string(pass == 0 ? 5000 : 5001, 'a')}};
                   })),
                   options),
      HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(pass_count, 2);
}

TEST(InputLimitsTest, WhatDecompressesToTooMuchStops) {
  const TemporaryDirectory directory;
  // Directories only: no document has a size.
  std::vector<TestEntry> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.push_back(
        {absl::StrCat("d", i, "/"), "", TestEntry::Kind::kDirectory});
  }
  for (const char* filter : {"gzip", "xz"}) {
    const std::string path =
        directory.Write("in", MakeTestArchive("ustar", filter, entries));
    EXPECT_THAT(BuildFrom(directory, path, 600000).summary, IsOk());
    EXPECT_THAT(BuildFrom(directory, path, 400000).summary,
                FailsWith(absl::StatusCode::kResourceExhausted,
                          HasSubstr("/in: decompresses to more than")));
  }
}

TEST(InputLimitsTest, CaptureTimesOutOfRangeAreLeftOut) {
  InputLimits limits(std::nullopt);
  const std::unique_ptr<Source> source = FixedSource({{"a", "text"}});
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  QUIRE_ASSERT_OK(reader->Next().status());
  limits.StartPass();
  QUIRE_ASSERT_OK(limits.StartSource(*source));
  for (const int64_t time_ms : {kCaptureTimeMsMax, -kCaptureTimeMsMax,
                                kCaptureTimeMsMax + 1, INT64_MIN}) {
    SourceDocument document;
    document.capture_time_ms = time_ms;
    QUIRE_ASSERT_OK(limits.StartDocument(*source, *reader, document));
    EXPECT_EQ(document.capture_time_ms.has_value(),
              time_ms == kCaptureTimeMsMax || time_ms == -kCaptureTimeMsMax);
  }
  EXPECT_EQ(limits.dropped().count, 2);
  EXPECT_EQ(limits.dropped().first,
            "memory: document 0: a capture time of 9007199254740993 ms since "
            "1970");
}

}  // namespace
}  // namespace quire
