// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/packed_source.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

// Rows of a Parquet file, by a program of the test.
class PackedSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_.Write("rows.parquet", "PAR1 and more");
    path_ = directory_ / "rows.parquet";
  }

  ~PackedSourceTest() override { unsetenv("QUIRE_PACK"); }

  // Runs lines of sh instead of quire-pack.
  void SetProgram(const std::string& lines) {
    directory_.Write("pack", absl::StrCat("#!/bin/sh\n", lines, "\n"));
    std::filesystem::permissions(directory_ / "pack",
                                 std::filesystem::perms::owner_all);
    setenv("QUIRE_PACK", (directory_ / "pack").c_str(), 1);
  }

  absl::StatusOr<std::unique_ptr<Source>> Open() const {
    return OpenSource(path_,
                      {.split = LineSplit{.id_field = "i", .text_field = "t"}});
  }

  static absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
  ReadPass(const Source& source) {
    std::vector<std::pair<std::string, std::string>> documents;
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceReader> reader,
                           source.Open());
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<SourceDocument> document,
                             reader->Next());
      if (!document.has_value()) {
        return documents;
      }
      std::string text;
      std::vector<uint8_t> part(100);
      while (true) {
        QUIRE_ASSIGN_OR_RETURN(const size_t got, reader->Read(part));
        if (got == 0) {
          break;
        }
        absl::StrAppend(&text, AsText(part).substr(0, got));
      }
      documents.emplace_back(document->id, text);
    }
  }

  absl::Status Fault() const {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, Open());
    return ReadPass(*source).status();
  }

  const TemporaryDirectory directory_;
  std::string path_;
};

TEST_F(PackedSourceTest, RunsTheProgramInEachPass) {
  SetProgram(absl::StrCat(
      R"(echo "$@" >> )", directory_ / "calls",
      "\n"
      R"(printf '%s\n' '{"i":"a","t":"one\n"}'; echo noise >&2; sleep 0.1)"
      "\n"
      R"(echo '{"i":"b","t":""}'; echo '{"i":"c","t":"three"}')"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source, Open());
  for (int pass = 0; pass < 3; ++pass) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto documents, ReadPass(*source));
    EXPECT_THAT(documents, ElementsAre(Pair("a", "one\n"), Pair("b", ""),
                                       Pair("c", "three")));
  }
  const std::string call = "rows --column=i --column=t -- " + path_ + "\n";
  std::ifstream calls(directory_ / "calls");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(calls), {}),
            call + call + call);
  // A reader that is dropped ends the program.
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto dropped, source->Open());
  ASSERT_TRUE(dropped->Next().ok());
}

TEST_F(PackedSourceTest, RefusesPassesThatDiffer) {
  const std::string counter = directory_ / "counter";
  for (const char* last : {"echo '{\"i\":\"b\",\"t\":\"2\"}'",
                           "echo '{\"i\":\"a\",\"t\":\"2\"}'"}) {
    std::filesystem::remove(counter);
    SetProgram(absl::StrCat("if test -e ", counter, "; then ", last,
                            R"(; else echo '{"i":"a","t":"1"}'; fi; touch )",
                            counter));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source, Open());
    QUIRE_ASSERT_OK(ReadPass(*source));
    const absl::Status status = ReadPass(*source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr(path_), HasSubstr("in the first pass")));
  }
}

TEST_F(PackedSourceTest, NamesHowTheProgramFailed) {
  const std::string row = R"(echo '{"i":"a","t":"1"}'; )";
  SetProgram(row + "echo why >&2; echo more >&2; exit 3");
  EXPECT_THAT(
      Fault().message(),
      AllOf(HasSubstr(path_), HasSubstr("ended with exit code 3: why")));
  SetProgram(row + "kill -9 $$");
  EXPECT_THAT(Fault().message(), HasSubstr("ended by signal 9"));
  SetProgram("exit 4");
  EXPECT_THAT(Fault().message(), HasSubstr("ended with exit code 4"));
  setenv("QUIRE_PACK", "/nonexistent/pack", 1);
  EXPECT_THAT(Fault().message(),
              AllOf(HasSubstr("/nonexistent/pack cannot be started"),
                    HasSubstr("install the Python package")));
}

TEST_F(PackedSourceTest, AsksForTheColumnsOfAllOptions) {
  SetProgram(R"(for word; do case $word in --column=*) all="$all$word;";; esac
done
echo '{"i":"a","at":"2024-01-31","meta":{"n":1},"t":"'"$all"'"}')");
  LineSplit split = {.id_field = "i", .text_field = "t"};
  split.time_field = "at";
  split.fields = {{.name = "n", .path = "meta.n"}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source,
                             OpenSource(path_, {.split = split}));
  QUIRE_ASSERT_OK_AND_ASSIGN(auto documents, ReadPass(*source));
  EXPECT_THAT(documents,
              ElementsAre(Pair(
                  "a", "--column=i;--column=t;--column=at;--column=meta.n;")));
  EXPECT_EQ(source->fields().size(), 1u);
  // The whole row is the text.
  split.text_field.clear();
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> whole,
                             OpenSource(path_, {.split = split}));
  QUIRE_ASSERT_OK_AND_ASSIGN(documents, ReadPass(*whole));
  EXPECT_THAT(documents, ElementsAre(Pair("a", EndsWith("\"t\":\"\"}\n"))));
}

TEST_F(PackedSourceTest, BoundsTheRows) {
  SetProgram(R"(while echo '{"i":"a","t":"1"}'; do :; done)");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(path_, {.input_size_bytes_max = 100000,
                         .split = LineSplit{.id_field = "i"}}));
  EXPECT_EQ(ReadPass(*source).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace quire
