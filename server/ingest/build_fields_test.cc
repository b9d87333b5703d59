// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fields of JSON Lines and CSV: their types, and every way that keeps them in
// archives.
#include "server/ingest/build_fields.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive_verifier.h"
#include "server/ingest/append.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/recompress.h"
#include "server/ingest/testing/build_testing.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BuildFieldsTest : public ::testing::Test {
 protected:
  using Fields = std::vector<LineSplit::Field>;

  std::vector<std::unique_ptr<Source>> Open(const std::string& name,
                                            const Fields& fields) const {
    SourceOptions options;
    options.spool_directory = directory_.path();
    if (!fields.empty()) {
      options.split = LineSplit{.fields = fields};
    }
    std::vector<std::unique_ptr<Source>> sources;
    auto source = OpenSource(directory_ / name, options);
    QUIRE_EXPECT_OK(source.status());
    sources.push_back(*std::move(source));
    return sources;
  }

  // Builds `out` from the file.
  absl::StatusOr<BuildSummary> Build(
      const std::string& name, const Fields& fields, const std::string& out,
      const BuildOptions& options = SmallBuildOptions("lz4")) const {
    return BuildArchive(directory_ / out, Open(name, fields), options);
  }

  absl::StatusOr<AppendSummary> Append(const std::string& out,
                                       const std::string& name,
                                       const Fields& fields,
                                       bool merge = true) const {
    BuildOptions options;
    options.archive.writer = "appended";
    return AppendToArchive(directory_ / out, Open(name, fields),
                           ExistingMode::kAdd, options, merge);
  }

  std::vector<std::string> FieldsOf(const std::string& out) const {
    QUIRE_EXPECT_OK(
        VerifyArchive(directory_ / out, {}, [](const ArchiveDamage& d) {
          ADD_FAILURE() << d.status;
        }).status());
    const auto archive = Archive::Open(directory_ / out);
    QUIRE_EXPECT_OK(archive.status());
    return archive.ok() ? ReadTestFields(**archive)
                        : std::vector<std::string>();
  }

  // Fields of the records of `lines`.
  std::vector<std::string> Read(const std::string& lines,
                                const Fields& fields) {
    directory_.Write("in.jsonl", lines);
    std::filesystem::remove_all(directory_ / "read");
    const auto summary = Build("in.jsonl", fields, "read");
    QUIRE_EXPECT_OK(summary.status());
    notes_ = summary.ok() ? summary->field_notes : notes_;
    return FieldsOf("read");
  }

  // Writes records of many blocks and segments; returns their fields.
  std::vector<std::string> WriteRecords(const std::string& name, size_t count) {
    std::string lines;
    std::vector<std::string> fields;
    for (size_t i = 0; i < count; ++i) {
      const bool has_score = i % 3 != 0;
      absl::StrAppend(
          &lines, "{\"lang\": \"l", i % 5, "\", \"text\": \"",
          MakeTestLetters(i), "\"",
          has_score ? absl::StrCat(", \"meta\": {\"score\": ", i, ".25}") : "",
          "}\n");
      fields.push_back(absl::StrCat(
          "lang=\"l", i % 5, "\" score=",
          has_score ? absl::StrCat(i, ".25") : std::string("null")));
    }
    directory_.Write(name, lines);
    return fields;
  }

  static std::string MakeTestLetters(size_t i) {
    std::string letters;
    for (size_t j = 0; j < 300; ++j) {
      letters.push_back(static_cast<char>('a' + (i * j + j * j / 7) % 26));
    }
    return letters;
  }

  const Fields kTwo = {{"lang", "lang"}, {"score", "meta.score"}};
  const TemporaryDirectory directory_;
  std::vector<std::string> notes_;
};

TEST_F(BuildFieldsTest, FindsTypes) {
  EXPECT_THAT(
      Read("{\"s\": \"x\", \"i\": 7, \"f\": 7, \"b\": true, \"t\": "
           "\"2024-01-31T12:30:45Z\", \"d\": \"2024-02-29\"}\n"
           "{\"s\": \"2024-01-31\", \"i\": -9223372036854775808, \"f\": 1.5, "
           "\"b\": null, \"t\": \"2024-01-31T12:30:45.000001+01:00\"}\n",
           {{"s", "s"},
            {"i", "i"},
            {"f", "f"},
            {"b", "b"},
            {"t", "t"},
            {"d", "d"}}),
      ElementsAre("s=\"x\" i=7 f=7.0 b=true t=2024-01-31T12:30:45Z "
                  "d=2024-02-29T00:00:00Z",
                  "s=\"2024-01-31\" i=-9223372036854775808 f=1.5 b=null "
                  "t=2024-01-31T11:30:45.000001Z d=null"));
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("\"s\""),
                                        HasSubstr("string, time"))));
}

// Values that no other type keeps exactly are strings, as they are written.
TEST_F(BuildFieldsTest, KeepsWhatHasNoTypeAsText) {
  EXPECT_THAT(Read("{\"a\": 18446744073709551616, \"b\": 1, \"c\": 0.5, "
                   "\"d\": \"2024-01-31T12:30:45.1234567Z\"}\n"
                   "{\"a\": 1e400, \"b\": \"01\", \"c\": 9007199254740993, "
                   "\"d\": \"2024-01-31\"}\n"
                   "{\"a\": [1, {}], \"b\": false, \"c\": null}\n",
                   {{"a", "a"}, {"b", "b"}, {"c", "c"}, {"d", "d"}}),
              ElementsAre("a=\"18446744073709551616\" b=\"1\" c=\"0.5\" "
                          "d=\"2024-01-31T12:30:45.1234567Z\"",
                          "a=\"1e400\" b=\"01\" c=\"9007199254740993\" "
                          "d=\"2024-01-31\"",
                          "a=\"[1, {}]\" b=\"false\" c=null d=null"));
}

TEST_F(BuildFieldsTest, ReadsColumnsOfCsv) {
  directory_.Write("in.csv", "n,when,word\n1,2024-01-31,a\n,,\"\"\n-3,,b c\n");
  QUIRE_ASSERT_OK(
      Build("in.csv", {{"n", "n"}, {"t", "when"}, {"w", "word"}}, "csv")
          .status());
  EXPECT_THAT(
      FieldsOf("csv"),
      ElementsAre("n=null t=null w=null", "n=1 t=2024-01-31T00:00:00Z w=\"a\"",
                  "n=null t=null w=null", "n=-3 t=null w=\"b c\""));
}

TEST_F(BuildFieldsTest, OneMemberHasSeveralUses) {
  directory_.Write("in.jsonl",
                   "{\"url\": \"u1\", \"date\": \"2024-01-31T12:30:45.6789Z\"}"
                   "\n{\"url\": \"u2\", \"date\": \"1969-12-31T23:59:59.9995Z"
                   "\"}\n");
  SourceOptions options;
  options.spool_directory = directory_.path();
  options.split = LineSplit{.id_field = "url",
                            .text_field = "url",
                            .time_field = "date",
                            .fields = {{"url", "url"}, {"date", "date"}}};
  std::vector<std::unique_ptr<Source>> sources;
  QUIRE_ASSERT_OK_AND_ASSIGN(sources.emplace_back(),
                             OpenSource(directory_ / "in.jsonl", options));
  QUIRE_ASSERT_OK(
      BuildArchive(directory_ / "out", sources, SmallBuildOptions("lz4"))
          .status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "out"));
  EXPECT_EQ(archive->GetDocument({0})->id, "u1");
  EXPECT_EQ(archive->GetDocument({0})->capture_time_ms, 1706704245678);
  EXPECT_EQ(archive->GetDocument({1})->capture_time_ms, -1);
  EXPECT_EQ(ReadTestRange(*archive, {{0}, 4}).value(), "u1u2");
  EXPECT_EQ(ReadTestFields(*archive)[0],
            "url=\"u1\" date=2024-01-31T12:30:45.678900Z");
}

TEST_F(BuildFieldsTest, RefusesFieldsThatNoRecordHas) {
  directory_.Write("in.jsonl", "{\"a\": 1, \"b\": null}\n");
  for (const std::string name : {"b", "c"}) {
    const absl::Status status =
        Build("in.jsonl", {{"a", "a"}, {name, name}}, "none").status();
    EXPECT_THAT(status, HasCode(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(status.message(), HasSubstr(name));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "none"));
  }
}

TEST_F(BuildFieldsTest, RefusesLongValues) {
  directory_.Write("in.jsonl", absl::StrCat("{\"a\": \"",
                                            std::string(65'536, 'x'), "\"}\n"));
  EXPECT_THAT(Build("in.jsonl", {{"a", "a"}}, "none").status().message(),
              AllOf(HasSubstr("line 1"), HasSubstr("65,536")));
}

// Order, duplicates, number of threads and segments change nothing.
TEST_F(BuildFieldsTest, DoesNotDependOnThreadsOrOrder) {
  const std::vector<std::string> fields = WriteRecords("in.jsonl", 700);
  std::string segment;
  for (const uint32_t threads : {1U, 3U}) {
    BuildOptions options = SmallBuildOptions("lz4");
    options.threads = threads;
    const std::string out = absl::StrCat("threads-", threads);
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                               Build("in.jsonl", kTwo, out, options));
    EXPECT_GT(summary.info.segment_count, 1);
    EXPECT_EQ(FieldsOf(out), fields);
    const std::string bytes =
        ReadTestFile(directory_ / absl::StrCat(out, "/segment-00000001"));
    EXPECT_TRUE(segment.empty() || segment == bytes);
    segment = bytes;
  }
  BuildOptions options = SmallBuildOptions("rlz");
  options.reorder = ReorderMode::kDuplicates;
  QUIRE_ASSERT_OK(Build("in.jsonl", kTwo, "reordered", options).status());
  EXPECT_EQ(FieldsOf("reordered"), fields);
}

TEST_F(BuildFieldsTest, AppendsAndMerges) {
  std::vector<std::string> fields = WriteRecords("in.jsonl", 300);
  QUIRE_ASSERT_OK(Build("in.jsonl", kTwo, "out").status());
  directory_.Write("more.jsonl", "{\"lang\": \"x\", \"n\": 4}\n{}\n");
  for (std::string& text : fields) {
    text += " n=null";
  }
  for (const bool merge : {false, true}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const AppendSummary summary,
        Append("out", "more.jsonl", {{"lang", "lang"}, {"n", "n"}}, merge));
    EXPECT_EQ(summary.build.joined_segment_count > 1, merge);
    fields.emplace_back("lang=\"x\" score=null n=4");
    fields.emplace_back("lang=null score=null n=null");
    EXPECT_EQ(FieldsOf("out"), fields);
  }
  // An integer is one of the floats of the archive.
  directory_.Write("more.jsonl", "{\"score\": 3}\n");
  QUIRE_ASSERT_OK(
      Append("out", "more.jsonl", {{"score", "score"}, {"lang", "lang"}})
          .status());
  fields.emplace_back("lang=null score=3.0 n=null");
  EXPECT_EQ(FieldsOf("out"), fields);
  // Nor is a number lost in a field of strings, and it is named.
  directory_.Write("more.jsonl", "{\"lang\": 5}\n");
  QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary number,
                             Append("out", "more.jsonl", {{"lang", "lang"}}));
  EXPECT_THAT(number.build.field_notes,
              ElementsAre(AllOf(
                  HasSubstr("\"lang\" is a string in " + (directory_ / "out")),
                  HasSubstr("other types (integer)"))));
  fields.emplace_back("lang=\"5\" score=null n=null");
  EXPECT_EQ(FieldsOf("out"), fields);
  // Records without fields.
  QUIRE_ASSERT_OK(Append("out", "more.jsonl", {}).status());
  fields.emplace_back("lang=null score=null n=null");
  EXPECT_EQ(FieldsOf("out"), fields);
}

TEST_F(BuildFieldsTest, RefusesToAppendAnotherType) {
  WriteRecords("in.jsonl", 30);
  QUIRE_ASSERT_OK(Build("in.jsonl", kTwo, "out").status());
  directory_.Write("more.jsonl", "{\"score\": 1}\n{\"score\": \"high\"}\n");
  const absl::Status status =
      Append("out", "more.jsonl", {{"score", "score"}}).status();
  EXPECT_THAT(status, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(status.message(), AllOf(HasSubstr("line 2"), HasSubstr("score"),
                                      HasSubstr("string"), HasSubstr("float"),
                                      HasSubstr(directory_ / "out")));
  QUIRE_ASSERT_OK(
      Build("more.jsonl", {{"score", "score"}}, "strings").status());
  EXPECT_THAT(
      Append("out", "strings", {}).status().message(),
      AllOf(HasSubstr(directory_ / "out"), HasSubstr(directory_ / "strings"),
            HasSubstr("float"), HasSubstr("string")));
}

TEST_F(BuildFieldsTest, CompactsRecompressesAndCopies) {
  const std::vector<std::string> fields = WriteRecords("in.jsonl", 300);
  QUIRE_ASSERT_OK(Build("in.jsonl", kTwo, "out").status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "out"));
  QUIRE_ASSERT_OK(
      RecompressArchive(directory_ / "xz", archive, SmallBuildOptions("xz"))
          .status());
  EXPECT_EQ(FieldsOf("xz"), fields);
  // The archive as an input, of a build and of an append.
  QUIRE_ASSERT_OK(Build("out", {}, "copy").status());
  EXPECT_EQ(FieldsOf("copy"), fields);
  QUIRE_ASSERT_OK(Append("copy", "out", {}).status());
  std::vector<std::string> twice = fields;
  twice.insert(twice.end(), fields.begin(), fields.end());
  EXPECT_EQ(FieldsOf("copy"), twice);
  BuildOptions options;
  options.segment_size_bytes = uint64_t{1} << 30;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompactSummary compacted,
      CompactArchive(directory_ / "copy", CompactedSegments::kAll, options));
  EXPECT_EQ(compacted.build.info.segment_count, 1);
  EXPECT_EQ(FieldsOf("copy"), twice);
}

// A build that is stopped, and resumed, is the build that was not stopped.
TEST_F(BuildFieldsTest, Resumes) {
  const std::vector<std::string> fields = WriteRecords("in.jsonl", 700);
  BuildOptions options = SmallBuildOptions("lz4");
  QUIRE_ASSERT_OK(Build("in.jsonl", kTwo, "whole", options).status());
  options.resume.parameters = "p";
  options.resume.describes_inputs = true;
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  options.on_progress = [&](const BuildProgress& progress) {
    cancel = progress.phase == BuildPhase::kFinish;
  };
  EXPECT_THAT(Build("in.jsonl", kTwo, "resumed", options),
              HasCode(absl::StatusCode::kCancelled));
  cancel = false;
  options.on_progress = nullptr;
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Build("in.jsonl", kTwo, "resumed", options));
  EXPECT_GT(summary.kept_block_count, 0);
  EXPECT_EQ(FieldsOf("resumed"), fields);
  EXPECT_EQ(ReadTestFile(directory_ / "resumed/segment-00000000"),
            ReadTestFile(directory_ / "whole/segment-00000000"));
}

TEST_F(BuildFieldsTest, ArchivesWithoutFieldsHaveNoContainer) {
  WriteRecords("in.jsonl", 30);
  QUIRE_ASSERT_OK(Build("in.jsonl", {}, "plain").status());
  EXPECT_THAT(FieldsOf("plain")[0], IsEmpty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "plain"));
  EXPECT_THAT(archive->fields(), IsEmpty());
}

}  // namespace
}  // namespace quire
