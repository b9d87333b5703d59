// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/archive/files/archive_change.h"
#include "server/ingest/append.h"
#include "server/ingest/existing_documents.h"
#include "server/ingest/repeated_documents.h"
#include "server/ingest/sources/archive_source.h"
#include "server/ingest/sources/archive_text.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Files = std::map<std::string, std::string>;

// Options of an append, which keeps what the archive has.
BuildOptions AppendOptions() {
  BuildOptions options;
  options.archive.writer = "appended";
  return options;
}

IdsAndContents Documents(size_t count, uint64_t seed) {
  IdsAndContents documents;
  for (size_t i = 0; i < count; ++i) {
    documents.emplace_back(absl::StrCat("page-", (seed * 7 + i) % 23),
                           MakeTestText((i * 3779 + seed) % 12000, i / 2));
  }
  return documents;
}

class AppendTest : public ::testing::Test {
 protected:
  void Build(const IdsAndContents& documents, const BuildOptions& options) {
    const auto summary = BuildArchive(path_, OneSource(documents), options);
    ASSERT_TRUE(summary.ok()) << summary.status();
    documents_ = documents;
  }

  absl::StatusOr<AppendSummary> Append(
      std::vector<std::unique_ptr<Source>> sources,
      ExistingMode existing = ExistingMode::kAdd,
      const BuildOptions& options = AppendOptions(), bool merge = false) {
    return AppendToArchive(path_, std::move(sources), existing, options, merge);
  }

  static IdsAndContents Joined(IdsAndContents first,
                               const IdsAndContents& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "x.quire";
  IdsAndContents documents_;
};

TEST_F(AppendTest, KeepsTheEncodingOfTheArchive) {
  for (const absl::string_view codec :
       {"copy", "zstd:1", "rlz:2", "lz4", "auto", "fsst", "rlz:1/parts",
        "auto/inflate"}) {
    SCOPED_TRACE(codec);
    fs::remove_all(path_);
    ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions(codec)));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto before, Archive::Open(path_));
    const Files files = FilesOf(path_);
    const IdsAndContents more = Documents(8, 2);
    QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary summary,
                               Append(OneSource(more)));
    ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, Joined(documents_, more)));
    EXPECT_EQ(summary.document_count, more.size());
    EXPECT_GT(summary.build.appended.segment_count, 0u);
    EXPECT_GT(summary.build.appended.file_size_bytes, 0u);
    EXPECT_EQ(summary.first_file_size_bytes,
              files.at("segment-00000000").size());
    // No file except the manifest has changed.
    for (const auto& [name, bytes] : FilesOf(path_)) {
      if (name != "MANIFEST" && files.contains(name)) {
        EXPECT_EQ(bytes, files.at(name)) << name;
      }
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto after, Archive::Open(path_));
    const ArchiveInfo& info = after->info();
    EXPECT_EQ(info.codec.id, before->info().codec.id);
    EXPECT_EQ(info.codec.level, before->info().codec.level);
    EXPECT_EQ(info.codec.partition_size_bytes,
              before->info().codec.partition_size_bytes);
    EXPECT_EQ(info.block_size_bytes, before->info().block_size_bytes);
    EXPECT_EQ(info.dictionary_hash, before->info().dictionary_hash);
    EXPECT_EQ(info.symbol_table_hash, before->info().symbol_table_hash);
    EXPECT_EQ(info.choice, before->info().choice);
    EXPECT_EQ(info.writer, "appended");
    EXPECT_THAT(
        info.history,
        ElementsAre(ArchiveState{before->info().uuid, before->info().size_bytes,
                                 documents_.size()}));
  }
}

// Random appends with random modes of order, inflating and segments.
TEST_F(AppendTest, AnyOptionsGiveTheSameDocuments) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  ASSERT_NO_FATAL_FAILURE(
      Build(Documents(12, random() % 100),
            SmallBuildOptions(random() % 2 == 0 ? "rlz:1" : "auto")));
  IdsAndContents all = documents_;
  uint64_t state_count = 0;
  for (int i = 0; i < 6; ++i) {
    BuildOptions options = AppendOptions();
    options.reorder = std::vector{ReorderMode::kOff, ReorderMode::kDuplicates,
                                  ReorderMode::kFull}[random() % 3];
    options.inflate = random() % 2 == 0;
    options.segment_size_bytes = 1 + random() % 30000;
    options.threads = 1 + static_cast<uint32_t>(random() % 2);
    IdsAndContents more = Documents(random() % 6, random() % 100);
    if (random() % 3 == 0 && !more.empty()) {
      more.back().second = Gzip(MakeTestText(9000, random()));
    }
    if (random() % 4 == 0) {
      more.emplace_back("empty", "");
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const AppendSummary summary,
        Append(OneSource(more), ExistingMode::kAdd, options,
               /*merge=*/random() % 2 == 0));
    EXPECT_EQ(summary.document_count, more.size());
    all = Joined(std::move(all), more);
    state_count += more.empty() ? 0 : 1;
    ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, all));
    EXPECT_EQ(summary.build.info.history.size(), state_count);
  }
}

TEST_F(AppendTest, EqualAppendsGiveEqualArchives) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions("rlz:2")));
  const std::string copy = directory_ / "copy.quire";
  fs::copy(path_, copy);
  QUIRE_ASSERT_OK(Append(OneSource(Documents(5, 3)), ExistingMode::kAdd,
                         AppendOptions(), /*merge=*/true));
  BuildOptions options = AppendOptions();
  options.threads = 3;
  QUIRE_ASSERT_OK(AppendToArchive(copy, OneSource(Documents(5, 3)),
                                  ExistingMode::kAdd, options));
  EXPECT_TRUE(FilesOf(path_) == FilesOf(copy));
}

// A year of nights.
TEST_F(AppendTest, JoinsSegmentsSoThatFewRemain) {
  for (const absl::string_view codec : {"auto", "rlz:1", "auto/inflate"}) {
    SCOPED_TRACE(codec);
    fs::remove_all(path_);
    ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions(codec)));
    IdsAndContents all = documents_;
    std::vector<std::pair<std::string, size_t>> states;
    uint64_t joined_count = 0;
    for (uint64_t night = 0; night < 40; ++night) {
      IdsAndContents more = {
          {absl::StrCat("night-", night), MakeTestText(700 + night, night)}};
      if (night % 7 == 3) {
        more.emplace_back("gzip", Gzip(MakeTestText(3000, night)));
      }
      BuildOptions options = AppendOptions();
      options.inflate = absl::EndsWith(codec, "inflate");
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const AppendSummary summary,
          Append(OneSource(more), ExistingMode::kAdd, options, /*merge=*/true));
      all = Joined(std::move(all), more);
      states.emplace_back(summary.build.info.uuid, all.size());
      joined_count += summary.build.joined_segment_count;
      EXPECT_LE(summary.build.info.segment_count, 8u);
    }
    EXPECT_GT(joined_count, 40u);
    ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, all));
    // Blocks at the seams were joined: there are not many short ones.
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    EXPECT_LT(archive->info().block_count,
              archive->info().size_bytes / 4096 + 25);
    // Each state is there, though its segments are not.
    for (const auto& [uuid, count] : states) {
      const auto view = archive->FindState(uuid);
      ASSERT_TRUE(view.has_value());
      EXPECT_EQ(view->document_count, count);
      EXPECT_EQ(
          archive->FindDocument("night-39", std::nullopt, view->document_count)
              .count,
          count == all.size() ? 1u : 0u);
    }
  }
}

TEST_F(AppendTest, JoinsNoMoreThanTheSegmentSize) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions("zstd:1")));
  for (uint64_t i = 0; i < 12; ++i) {
    BuildOptions options = AppendOptions();
    options.segment_size_bytes = 2500;
    QUIRE_ASSERT_OK(
        Append(OneSource({{absl::StrCat(i), MakeTestText(1000, i)}}),
               ExistingMode::kAdd, options, /*merge=*/true));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  // Pairs of 2,000 bytes.
  EXPECT_EQ(archive->SegmentStart(archive->info().segment_count - 1),
            archive->info().size_bytes - 2000);
}

// An append does without joining a damaged segment, which stays as it is.
TEST_F(AppendTest, DamageIsNotCopied) {
  ASSERT_NO_FATAL_FAILURE(
      Build({{"a", MakeTestText(3000, 1)}}, SmallBuildOptions("zstd:1")));
  const std::string file = path_ + "/segment-00000000";
  const std::string good = ReadTestFile(file);
  std::string bytes = good;
  bytes[60] = static_cast<char>(bytes[60] ^ 1);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  const IdsAndContents more = {{"b", MakeTestText(3000, 2)}};
  QUIRE_ASSERT_OK_AND_ASSIGN(AppendSummary summary,
                             Append(OneSource(more), ExistingMode::kAdd,
                                    AppendOptions(), /*merge=*/true));
  EXPECT_EQ(summary.build.joined_segment_count, 0u);
  EXPECT_THAT(summary.build.omissions,
              ElementsAre(AllOf(HasSubstr("segment-00000000: block 0"),
                                HasSubstr("quired verify"))));
  EXPECT_TRUE(ReadTestFile(file) == bytes);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << good;
  ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, Joined(documents_, more)));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      summary, Append(OneSource(more), ExistingMode::kAdd, AppendOptions(),
                      /*merge=*/true));
  EXPECT_EQ(summary.build.joined_segment_count, 3u);
  EXPECT_THAT(summary.build.omissions, ElementsAre());
}

TEST_F(AppendTest, WithoutDocumentsNothingChanges) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions("rlz:2")));
  const Files before = FilesOf(path_);
  QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary summary,
                             Append(OneSource({})));
  EXPECT_EQ(summary.build.appended.segment_count, 0u);
  EXPECT_TRUE(FilesOf(path_) == before);
}

// No segment has the level.
TEST_F(AppendTest, KeepsTheLevelOfAnEmptyArchive) {
  for (const absl::string_view codec : {"zstd:7", "zstd", "rlz:2"}) {
    SCOPED_TRACE(codec);
    fs::remove_all(path_);
    const BuildOptions options = SmallBuildOptions(codec);
    ASSERT_NO_FATAL_FAILURE(Build({}, options));
    QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary summary,
                               Append(OneSource({{"a", "text"}})));
    EXPECT_EQ(summary.build.info.codec.level, options.archive.codec.level);
    ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, {{"a", "text"}}));
  }
}

TEST_F(AppendTest, SkipsDocumentsThatAreThere) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(12, 1), SmallBuildOptions("zstd:1")));
  const Files before = FilesOf(path_);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      AppendSummary summary,
      Append(OneSource(documents_), ExistingMode::kSkip));
  EXPECT_EQ(summary.existing_count, documents_.size());
  EXPECT_EQ(summary.document_count, 0u);
  EXPECT_TRUE(FilesOf(path_) == before);
  // One differs in a byte in its middle, one is longer, one has another id, one
  // is shorter.
  IdsAndContents changed = documents_;
  changed[3].second[changed[3].second.size() / 2] ^= 1;
  changed[5].second += "x";
  changed[7].first += "x";
  changed[9].second.pop_back();
  QUIRE_ASSERT_OK_AND_ASSIGN(summary,
                             Append(OneSource(changed), ExistingMode::kSkip));
  EXPECT_EQ(summary.existing_count, documents_.size() - 4);
  EXPECT_EQ(summary.document_count, 4u);
  ASSERT_NO_FATAL_FAILURE(ExpectDocuments(
      path_,
      Joined(documents_, {changed[3], changed[5], changed[7], changed[9]})));
}

// Documents that differ in their text only: each is compared with those of
// equal text, not with all.
TEST_F(AppendTest, SkipsDocumentsOfOneIdInLinearTime) {
  IdsAndContents documents;
  for (size_t i = 0; i < 300; ++i) {
    // Three of each text.
    documents.emplace_back("page", MakeTestText(2000, i / 3));
  }
  ASSERT_NO_FATAL_FAILURE(Build(documents, SmallBuildOptions("zstd:1")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  IdsAndContents input = documents;
  std::ranges::reverse(input);
  input[7].second.back() ^= 1;
  const auto sources = OneSource(input);
  const auto on_read = [](uint64_t) { return absl::OkStatus(); };
  ExistingDocumentFinder finder(*archive, uint64_t{1} << 20, on_read);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ExistingDocuments existing,
                             finder.Find(*sources[0]));
  EXPECT_EQ(existing.size(), input.size() - 1);
  EXPECT_LE(finder.decoded_block_count(), 3 * input.size());
  EXPECT_GE(finder.result_bytes(), existing.size() * sizeof(existing[0]));
  ExistingDocumentFinder small(*archive, 1000, on_read);
  EXPECT_THAT(small.Find(*sources[0]),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        HasSubstr("--build-memory")));
}

TEST_F(AppendTest, ChargesTheListOfExistingDocuments) {
  IdsAndContents documents;
  for (size_t i = 0; i < 100; ++i) {
    documents.emplace_back(absl::StrCat("page-", i), "text");
  }
  ASSERT_NO_FATAL_FAILURE(Build(documents, SmallBuildOptions("zstd:1")));
  BuildOptions options = AppendOptions();
  options.build_memory_bytes = 1000;
  EXPECT_THAT(Append(OneSource(documents), ExistingMode::kSkip, options),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        HasSubstr("--build-memory")));
  options.build_memory_bytes = 3000;
  QUIRE_EXPECT_OK(Append(OneSource(documents), ExistingMode::kSkip, options));
}

// Texts that begin alike for more than a MiB.
TEST_F(AppendTest, SkipsLargeDocumentsOnlyIfAllOfThemIsThere) {
  const std::string start = MakeTestText(1'100'000, 1);
  IdsAndContents documents;
  for (size_t i = 0; i < 12; ++i) {
    documents.emplace_back("page", start + std::string(i % 6 == 0, 'x') +
                                       static_cast<char>('a' + i % 11));
  }
  BuildOptions options = SmallBuildOptions("zstd:1");
  options.segment_size_bytes = uint64_t{1} << 30;
  ASSERT_NO_FATAL_FAILURE(Build(documents, options));
  IdsAndContents input = documents;
  input.emplace_back("page", start + "z");
  input.emplace_back("page", start);
  QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary summary,
                             Append(OneSource(input), ExistingMode::kSkip));
  EXPECT_EQ(summary.existing_count, documents.size());
  EXPECT_EQ(summary.document_count, 2u);
}

std::string Record(absl::string_view type, int day, absl::string_view text) {
  return MakeWarcRecord(
      {"WARC-Target-URI: http://u/", absl::StrCat("WARC-Type: ", type),
       absl::StrCat("WARC-Date: 2020-01-0", day, "T00:00:00Z")},
      text);
}

TEST_F(AppendTest, RecordsOfOtherTypesAndTimesAreOthers) {
  const std::string warc =
      directory_.Write("a.warc", Record("response", 1, "text"));
  const SourceOptions source_options = {.spool_directory = directory_.path()};
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(OpenSource(warc, source_options).value());
  QUIRE_ASSERT_OK(BuildArchive(path_, sources, SmallBuildOptions("zstd:1")));
  const std::string more = directory_.Write(
      "b.warc", Record("response", 1, "text") + Record("response", 2, "text") +
                    Record("resource", 1, "text") +
                    Record("response", 1, "tex"));
  sources.clear();
  sources.push_back(OpenSource(more, source_options).value());
  QUIRE_ASSERT_OK_AND_ASSIGN(const AppendSummary summary,
                             Append(std::move(sources), ExistingMode::kSkip));
  EXPECT_EQ(summary.existing_count, 1u);
  EXPECT_EQ(summary.document_count, 3u);
}

TEST_F(AppendTest, FindsTextOfEarlierDocuments) {
  ASSERT_NO_FATAL_FAILURE(
      Build({{"a", "text"}, {"b", "other"}, {"c", ""}, {"b", "newer"}},
            SmallBuildOptions("zstd:1")));
  QUIRE_ASSERT_OK(Append(OneSource({{"a", "text"},
                                    {"a", "text and more"},
                                    {"b", "newer"},
                                    // That of an earlier one is not compared.
                                    {"b", "other"},
                                    {"c", ""},
                                    {"d", "text"}}),
                         ExistingMode::kAdd));
  const auto archive = Archive::Open(path_);
  QUIRE_ASSERT_OK(archive);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      RepeatedDocuments repeated,
      FindRepeatedDocuments(**archive, /*first_ordinal=*/4, nullptr));
  EXPECT_EQ(repeated.count, 2u);
  EXPECT_EQ(repeated.size_bytes, 9u);
  EXPECT_FALSE(repeated.is_estimate);
  QUIRE_ASSERT_OK_AND_ASSIGN(repeated,
                             FindRepeatedDocuments(**archive, 10, nullptr));
  EXPECT_EQ(repeated.count, 0u);
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(FindRepeatedDocuments(**archive, 4, &cancel),
              HasCode(absl::StatusCode::kCancelled));
}

TEST_F(AppendTest, EstimatesTheTextOfEarlierDocuments) {
  IdsAndContents documents;
  for (int i = 0; i < 2600; ++i) {
    documents.emplace_back(absl::StrCat(i), "1234567890");
  }
  ASSERT_NO_FATAL_FAILURE(Build(documents, SmallBuildOptions("zstd:1")));
  QUIRE_ASSERT_OK(Append(OneSource(documents)));
  const auto archive = Archive::Open(path_);
  QUIRE_ASSERT_OK(archive);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RepeatedDocuments repeated,
      FindRepeatedDocuments(**archive, documents.size(), nullptr));
  EXPECT_EQ(repeated.count, documents.size());
  EXPECT_EQ(repeated.size_bytes, 10 * documents.size());
  EXPECT_TRUE(repeated.is_estimate);
}

TEST_F(AppendTest, FindsBodiesOfEarlierResponses) {
  const auto response = [](int day, const std::string& header,
                           const std::string& body) {
    return Record("response", day,
                  absl::StrCat("HTTP/1.1 200 OK\r\n", header, "\r\n", body));
  };
  const SourceOptions source_options = {.spool_directory = directory_.path()};
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(
      OpenSource(directory_.Write("a.warc", response(1, "X: 1\r\n", "body")),
                 source_options)
          .value());
  QUIRE_ASSERT_OK(BuildArchive(path_, sources, SmallBuildOptions("zstd:1")));
  sources.clear();
  sources.push_back(
      OpenSource(directory_.Write("b.warc", response(2, "", "body") +
                                                response(3, "", "other") +
                                                response(4, "", "")),
                 source_options)
          .value());
  QUIRE_ASSERT_OK(Append(std::move(sources)));
  const auto archive = Archive::Open(path_);
  QUIRE_ASSERT_OK(archive);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RepeatedDocuments repeated,
      FindRepeatedDocuments(**archive, /*first_ordinal=*/1, nullptr));
  EXPECT_EQ(repeated.count, 1u);
  // With the end of the record.
  EXPECT_EQ(repeated.size_bytes, 8u);
}

TEST_F(AppendTest, AnInputThatChangesBetweenThePassesIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Build({{"a", "text"}}, SmallBuildOptions("copy")));
  const Files before = FilesOf(path_);
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<MemorySource>([](int pass) {
    return pass == 0 ? IdsAndContents{{"a", "text"}}
                     : IdsAndContents{{"b", "other"}, {"a", "text"}};
  }));
  const auto outcome = Append(std::move(sources), ExistingMode::kSkip);
  EXPECT_THAT(outcome, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(outcome.status().message(), HasSubstr("changed"));
  EXPECT_TRUE(FilesOf(path_) == before);
}

TEST_F(AppendTest, AnInputMayBeAnArchive) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(4, 1), SmallBuildOptions("rlz:1")));
  const IdsAndContents others = Documents(5, 9);
  const std::string other = directory_ / "other.quire";
  BuildOptions other_options = SmallBuildOptions("zstd:1");
  other_options.reorder = ReorderMode::kDuplicates;
  QUIRE_ASSERT_OK(BuildArchive(other, OneSource(others), other_options));
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(OpenSource(other, {.decode_threads = 2}).value());
  EXPECT_STREQ(sources[0]->kind(), "archive");
  QUIRE_ASSERT_OK(Append(std::move(sources)));
  ASSERT_NO_FATAL_FAILURE(ExpectDocuments(path_, Joined(documents_, others)));
  // Rules for ids apply; lines do not.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto rules,
      IdRules::Create({.exclude_globs = {"page-1*"}, .prefix = "p/"}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto ruled,
                             OpenSource(other, {.id_rules = rules}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto renamed, ReadAllDocuments(*ruled));
  EXPECT_LT(renamed.size(), others.size());
  for (const IngestedDocument& document : renamed) {
    EXPECT_TRUE(absl::StartsWith(document.document.id, "p/page-"));
    EXPECT_FALSE(absl::StartsWith(document.document.id, "p/page-1"));
  }
  EXPECT_THAT(OpenSource(other, {.split = LineSplit{}}),
              HasCode(absl::StatusCode::kInvalidArgument));
  // A directory with another file of that name is one of files.
  directory_.Write("plain/MANIFEST", "not of an archive");
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto plain,
                             OpenSource(directory_ / "plain", {}));
  EXPECT_STREQ(plain->kind(), "directory");
}

// Small gaps are passed over, large ones are not, and damage in them does not
// matter.
TEST_F(AppendTest, SkippedDocumentsOfAnArchiveCostLittle) {
  IdsAndContents documents;
  for (size_t i = 0; i < 200; ++i) {
    documents.emplace_back(absl::StrCat("page-", i),
                           MakeTestText(i == 50 ? 9'000'000 : 5000, i));
  }
  BuildOptions options = SmallBuildOptions("zstd:1");
  options.segment_size_bytes = uint64_t{1} << 30;
  ASSERT_NO_FATAL_FAILURE(Build(documents, options));
  const auto read_every_second = [&] {
    const auto source = OpenSource(path_, {.decode_threads = 2}).value();
    const auto reader = source->Open().value();
    for (size_t i = 0; i < documents.size(); ++i) {
      QUIRE_ASSERT_OK(reader->Next());
      std::string text(documents[i].second.size(), '\0');
      size_t size = 0;
      while (i % 2 == 1 && size < text.size()) {
        QUIRE_ASSERT_OK_AND_ASSIGN(
            const size_t got, reader->Read(AsMutableBytes(text).subspan(size)));
        ASSERT_GT(got, 0u);
        size += got;
      }
      EXPECT_TRUE(size == 0 || text == documents[i].second);
    }
  };
  uint64_t before = ArchiveText::created_count();
  ASSERT_NO_FATAL_FAILURE(read_every_second());
  EXPECT_EQ(ArchiveText::created_count() - before, 2u);
  // The middle of the large document, which is skipped, and of a small one.
  const std::string file = path_ + "/segment-00000000";
  std::string bytes = ReadTestFile(file);
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto slices,
                               archive->Plan({{20 * 5000 + 1500}, 1}));
    bytes[archive->BlockExtent(slices[0].block).offset.value + 20] ^= 1;
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  before = ArchiveText::created_count();
  const auto source = OpenSource(path_, {.decode_threads = 2}).value();
  const auto reader = source->Open().value();
  for (size_t i = 0; i < 25; ++i) {
    QUIRE_ASSERT_OK(reader->Next());
    std::string text(100, '\0');
    // Documents around the damaged block, which is in the 20th.
    if (i < 19 || i > 21) {
      QUIRE_ASSERT_OK(reader->Read(AsMutableBytes(text)));
      EXPECT_EQ(text, documents[i].second.substr(0, 100));
    }
  }
  EXPECT_EQ(ArchiveText::created_count() - before, 2u);
}

TEST_F(AppendTest, FailuresLeaveTheArchiveUnchanged) {
  ASSERT_NO_FATAL_FAILURE(Build(Documents(9, 1), SmallBuildOptions("rlz:2")));
  const Files before = FilesOf(path_);
  // Text that ends before its end in a later pass.
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(
      OpenSource(directory_.Write(
                     "cut.tar", std::string(MakeTestArchive(
                                                "gnutar", "none",
                                                {{"a", MakeTestText(9000, 1)}}))
                                    .substr(0, 4000)),
                 {})
          .value());
  EXPECT_THAT(Append(std::move(sources)), HasCode(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(FilesOf(path_) == before);
  const std::atomic<bool> cancelled = true;
  BuildOptions options = AppendOptions();
  options.cancel = &cancelled;
  for (const ExistingMode mode : {ExistingMode::kAdd, ExistingMode::kSkip}) {
    EXPECT_THAT(Append(OneSource(Documents(3, 1)), mode, options),
                HasCode(absl::StatusCode::kCancelled));
  }
  EXPECT_TRUE(FilesOf(path_) == before);
  // Another writer is at work.
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveChange change,
                             ArchiveChange::Begin(path_));
  EXPECT_THAT(Append(OneSource(Documents(3, 1))),
              HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(FilesOf(path_) == before);
}

}  // namespace
}  // namespace quire
