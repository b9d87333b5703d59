// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/ingest/testing/memory_source.h"
#include "server/planner/plan_report.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Documents that share much of their text.
MemorySource::Documents SimilarDocuments(size_t count, size_t size) {
  std::mt19937_64 random(1);
  std::vector<std::string> sentences;
  for (int i = 0; i < 400; ++i) {
    std::string sentence;
    for (int word = 0; word < 12; ++word) {
      absl::StrAppend(&sentence, "word", random() % 5000, " ");
    }
    sentences.push_back(sentence);
  }
  MemorySource::Documents documents;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    while (text.size() < size) {
      text += sentences[random() % sentences.size()];
    }
    documents.emplace_back(absl::StrCat("document-", i), text.substr(0, size));
  }
  return documents;
}

// Releases of `count` files each; the releases of a file are similar, others
// are not.
MemorySource::Documents Releases(int releases, int count, size_t size) {
  MemorySource::Documents documents;
  for (int release = 0; release < releases; ++release) {
    std::mt19937_64 random(7);
    for (int i = 0; i < count; ++i) {
      std::string text(size, '\0');
      for (char& c : text) {
        c = static_cast<char>(random());
      }
      text[0] = static_cast<char>(release);
      documents.emplace_back(absl::StrCat("x-", release, "/d", i / 20, "/f", i),
                             text);
    }
  }
  return documents;
}

using Inputs = std::vector<std::unique_ptr<Source>>;
using Part = CollectionSample::Part;

absl::StatusOr<CollectionSample> Sample(const Inputs& inputs,
                                        uint64_t size_bytes,
                                        uint64_t collection_size_bytes = 0) {
  return CollectionSample::Take(
      inputs, {.size_bytes = size_bytes,
               .collection_size_bytes = collection_size_bytes});
}

MemorySource::Documents Read(const Source& source) {
  MemorySource::Documents documents;
  const auto reader = *source.Open();
  while (true) {
    const auto document = reader->Next();
    EXPECT_TRUE(document.ok()) << document.status();
    if (!document->has_value()) {
      return documents;
    }
    std::string text((*document)->size_bytes.value() + 1, '\0');
    const auto size = reader->Read(AsMutableBytes(text));
    EXPECT_EQ(*size + 1, text.size());
    documents.emplace_back((*document)->id, text.substr(0, *size));
  }
}

TEST(CollectionSampleTest, LeavesTextsUpToFourTimesItsSizeInTheSources) {
  const Inputs inputs = OneSource(SimilarDocuments(100, 35'000));
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample whole,
                             Sample(inputs, 875'000));
  EXPECT_TRUE(whole.is_whole());
  EXPECT_EQ(whole.document_count(), 100U);
  EXPECT_EQ(whole.text_size_bytes(), 3'500'000U);
  EXPECT_EQ(whole.collection_size_bytes(), 3'500'000U);
  EXPECT_EQ(whole.size_bytes(), 3'500'000U);
  EXPECT_EQ(whole.sources().data(), inputs.data());
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             Sample(inputs, 874'999));
  EXPECT_FALSE(sample.is_whole());
  EXPECT_LT(sample.size_bytes(), 3'500'000U);
}

TEST(CollectionSampleTest, KeepsAllOfASmallPartOfACollection) {
  const auto documents = SimilarDocuments(5, 700'000);
  const Inputs inputs = OneSource(documents);
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             Sample(inputs, 4'000'000, 10'000'000));
  EXPECT_FALSE(sample.is_whole());
  EXPECT_EQ(sample.text_size_bytes(), 3'500'000U);
  EXPECT_EQ(sample.collection_size_bytes(), 10'000'000U);
  EXPECT_EQ(sample.size_bytes(), 3'500'000U);
  EXPECT_EQ(Read(*sample.SourceOf(Part::kAll)), documents);
}

TEST(CollectionSampleTest, KeepsAllReleasesOfADocument) {
  const Inputs inputs = OneSource(Releases(4, 4000, 500));
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             Sample(inputs, 1'900'000));
  EXPECT_EQ(sample.text_size_bytes(), 8'000'000U);
  EXPECT_FALSE(sample.is_whole());
  EXPECT_NEAR(static_cast<double>(sample.size_bytes()), 1.9e6, 3e5);
  std::map<std::string, int> counts;
  for (const auto& [id, text] : Read(*sample.SourceOf(Part::kAll))) {
    ++counts[id.substr(id.find('/'))];
  }
  for (const auto& [name, count] : counts) {
    EXPECT_EQ(count, 4) << name;
  }
  // Halves have no document in common, not even in different releases.
  std::map<std::string, int> halves;
  uint64_t size_bytes = 0;
  for (const Part part : {Part::kFirstHalf, Part::kSecondHalf}) {
    uint64_t half_bytes = 0;
    for (const auto& [id, text] : Read(*sample.SourceOf(part))) {
      halves[id.substr(id.find('/'))] |= part == Part::kFirstHalf ? 1 : 2;
      half_bytes += text.size();
    }
    EXPECT_NEAR(static_cast<double>(half_bytes), 0.95e6, 3e5);
    size_bytes += half_bytes;
  }
  EXPECT_EQ(size_bytes, sample.size_bytes());
  EXPECT_EQ(halves.size(), counts.size());
  for (const auto& [name, half] : halves) {
    EXPECT_NE(half, 3) << name;
  }
}

TEST(CollectionSampleTest, CutsLargeDocumentsIntoPieces) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += std::string(1 << 20, static_cast<char>(' ' + i % 90));
  }
  const Inputs inputs = OneSource({{"log", text}});
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             Sample(inputs, uint64_t{4} << 20));
  EXPECT_EQ(sample.document_count(), 1U);
  EXPECT_EQ(sample.size_bytes(), 4U << 20);
  for (const auto& [id, piece] : Read(*sample.SourceOf(Part::kAll))) {
    EXPECT_EQ(piece.size(), 1U << 20) << id;
    EXPECT_EQ(piece.front(), piece.back()) << id;
  }
}

TEST(CollectionSampleTest, AlwaysHasText) {
  MemorySource::Documents documents;
  for (int i = 0; i < 60; ++i) {
    documents.emplace_back(absl::StrCat("d", i, "/", i), "");
  }
  documents.emplace_back("t/x", std::string(3000, 'x'));
  documents.emplace_back("t2/y", std::string(3000, 'y'));
  const Inputs inputs = OneSource(documents);
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample, Sample(inputs, 1));
  EXPECT_EQ(sample.size_bytes(), 3000U);
}

TEST(CollectionSampleTest, RefusesInputsWithoutTextOrOverTheLimit) {
  EXPECT_EQ(Sample(OneSource({{"a", ""}}), 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CollectionSample::Take(OneSource(SimilarDocuments(2, 1000)),
                                   {.input_size_bytes_max = 1999})
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

PlanOptions Quick() {
  PlanOptions options;
  options.drive = ParseDrive("ssd").value();
  options.core_count = 2;
  options.work_directory = ::testing::TempDir();
  return options;
}

std::vector<PlanCandidate> Candidates() {
  std::vector<PlanCandidate> candidates;
  for (const char* const codec : {"lz4", "zstd", "rlz"}) {
    PlanCandidate& candidate = candidates.emplace_back();
    candidate.arguments = absl::StrCat("--codec ", codec);
    candidate.build.archive.codec = ParseCodecSpec(codec).value();
    candidate.build.dictionary_size_bytes = 1 << 20;
  }
  return candidates;
}

absl::StatusOr<Plan> PlanOf(const MemorySource::Documents& documents,
                            const PlanOptions& options,
                            uint64_t sample_size_bytes = uint64_t{64} << 20) {
  const Inputs inputs = OneSource(documents);
  const absl::StatusOr<CollectionSample> sample =
      Sample(inputs, sample_size_bytes);
  if (!sample.ok()) {
    return sample.status();
  }
  return MakePlan(*sample, Candidates(), options);
}

double SizeOfBuilt(const MemorySource::Documents& documents,
                   const PlanCandidate& candidate) {
  const TemporaryDirectory directory;
  const auto summary =
      BuildArchive(directory / "x", OneSource(documents), candidate.build);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return static_cast<double>(summary->info.stored_size_bytes);
}

void ExpectHolds(const SizeForecast& forecast, double size_bytes) {
  EXPECT_LT(forecast.size_bytes_min, size_bytes);
  EXPECT_GT(forecast.size_bytes_max, size_bytes);
  EXPECT_LT(forecast.size_bytes_min, forecast.size_bytes);
  EXPECT_GT(forecast.size_bytes_max, forecast.size_bytes);
}

TEST(PlanTest, GivesTheSizeOfWhatItBuilt) {
  const auto documents = SimilarDocuments(40, 50'000);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(documents, Quick()));
  ASSERT_EQ(plan.cells.size(), Candidates().size());
  for (const PlanCandidate& candidate : Candidates()) {
    const auto cell = std::ranges::find(plan.cells, candidate.arguments,
                                        &PlanCell::arguments);
    ASSERT_NE(cell, plan.cells.end());
    EXPECT_EQ(cell->size.size_bytes, SizeOfBuilt(documents, candidate));
    ExpectHolds(cell->size, cell->size.size_bytes);
    EXPECT_GT(cell->reads_per_second, 0);
    EXPECT_GT(cell->build_seconds, 0);
    EXPECT_GT(cell->preparation_seconds, 0);
    EXPECT_LT(cell->preparation_seconds, cell->build_seconds);
    EXPECT_FALSE(cell->price.has_value());
  }
  EXPECT_TRUE(std::ranges::is_sorted(plan.cells, {}, [](const PlanCell& cell) {
    return cell.size.size_bytes;
  }));
  EXPECT_TRUE(plan.cells.front().is_pareto);
  EXPECT_TRUE(plan.recommended.has_value());
}

BuiltSample Built(double text_bytes, double stored_bytes) {
  return {
      .text_bytes = text_bytes, .stored_bytes = stored_bytes, .omissions = {}};
}

TEST(ForecastSizeTest, AllowsForDuplicatesOutsideTheSample) {
  // Stored: 1000 n - 400 n², with a fraction n of the text.
  const std::vector<BuiltSample> halves(2, Built(1250, 118.75));
  const SizeForecast forecast =
      ForecastSize(Built(2500, 225), halves, 10'000, 0);
  ExpectHolds(forecast, 600);
  // As much as if the sample had all duplicates.
  ExpectHolds(forecast, 900 - 37.5);
  EXPECT_NEAR(forecast.size_bytes, (600 + 862.5) / 2, 0.1);
}

TEST(ForecastSizeTest, CountsTextThatOccursEverywhereOnce) {
  // Stored: 1000 n + 100.
  const std::vector<BuiltSample> halves(2, Built(1250, 225));
  const SizeForecast forecast =
      ForecastSize(Built(2500, 350), halves, 10'000, 0);
  EXPECT_NEAR(forecast.size_bytes, 1100, 0.1);
  ExpectHolds(forecast, 1100);
}

TEST(ForecastSizeTest, KnowsLittleWithoutASecondHalf) {
  const std::vector<BuiltSample> halves = {Built(1000, 100), Built(0, 0)};
  const SizeForecast forecast =
      ForecastSize(Built(1000, 100), halves, 10'000, 0);
  EXPECT_NEAR(forecast.size_bytes, 1000, 0.1);
  EXPECT_EQ(forecast.size_bytes_min, 0);
  EXPECT_NEAR(forecast.size_bytes_max, 2000, 0.1);
}

// A small sample may take less than its halves, which must not make the size of
// a large text negative.
TEST(ForecastSizeTest, IsNeverLessThanTheSample) {
  for (const double half : {45.0, 50.0, 55.0, 99.0, 100.0, 101.0, 150.0, 1e6}) {
    for (const double text_bytes : {2501.0, 10'000.0, 1e12}) {
      SCOPED_TRACE(absl::StrCat(half, " ", text_bytes));
      const std::vector<BuiltSample> halves(2, Built(1250, half));
      const SizeForecast forecast =
          ForecastSize(Built(2500, 100), halves, text_bytes, 0);
      EXPECT_GE(forecast.size_bytes, 100);
      EXPECT_LE(forecast.size_bytes, 1.5 * 100 * text_bytes / 2500);
      EXPECT_GE(forecast.size_bytes_min, 0);
      EXPECT_LE(forecast.size_bytes_min, forecast.size_bytes);
      EXPECT_GE(forecast.size_bytes_max, forecast.size_bytes);
    }
  }
}

TEST(PlanTest, ForecastsFromAPart) {
  for (const auto& documents :
       {SimilarDocuments(2000, 4000), Releases(4, 2000, 1000)}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan,
                               PlanOf(documents, Quick(), 1'900'000));
    EXPECT_EQ(plan.text_size_bytes, 8'000'000U);
    EXPECT_LT(plan.sample_size_bytes, 2'500'000U);
    for (const PlanCandidate& candidate : Candidates()) {
      const auto cell = std::ranges::find(plan.cells, candidate.arguments,
                                          &PlanCell::arguments);
      ASSERT_NE(cell, plan.cells.end());
      SCOPED_TRACE(candidate.arguments);
      const double built = SizeOfBuilt(documents, candidate);
      EXPECT_NEAR(cell->size.size_bytes, built, 0.15 * built);
      ExpectHolds(cell->size, built);
    }
  }
}

TEST(PlanTest, LeavesOutWhatDoesNotFit) {
  const auto documents = SimilarDocuments(40, 30'000);
  PlanOptions options = Quick();
  options.objective = AutoObjective::kArchive;
  options.memory_bytes = 1 << 20;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan none, PlanOf(documents, options));
  EXPECT_FALSE(none.recommended.has_value());
  EXPECT_THAT(FormatPlan({{"x"}, options}, none), HasSubstr("raise --memory"));
  options.memory_bytes = 0;
  options.price_per_tb = 1e6;
  options.budget = 1e-6;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan dear, PlanOf(documents, options));
  EXPECT_FALSE(dear.recommended.has_value());
  options.budget = 1e6;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan cheap, PlanOf(documents, options));
  EXPECT_EQ(cheap.recommended, 0U);
}

TEST(PlanTest, FindsTheBottleneck) {
  const auto documents = SimilarDocuments(40, 30'000);
  PlanOptions options = Quick();
  const auto expect = [&](const char* part) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(documents, options));
    for (const PlanCell& cell : plan.cells) {
      EXPECT_EQ(cell.bottleneck, part) << cell.arguments;
    }
  };
  options.network_bytes_per_second = 1e12;
  options.drive = ParseDrive("s3:1us,1000GB").value();
  expect("processors");
  // Decoding is timed: a slow machine must not make it the bottleneck.
  options.core_count = 10'000;
  options.network_bytes_per_second = 16 << 10;
  expect("network");
  options.network_bytes_per_second = 1e12;
  options.drive = ParseDrive("hdd").value();
  expect("drive");
  options.drive = ParseDrive("s3:1s,1GB").value();
  expect("drive");
}

TEST(PlanTest, NotesWhatABuildOmitted) {
  const auto documents = SimilarDocuments(40, 30'000);
  const Inputs inputs = OneSource(documents);
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             Sample(inputs, uint64_t{1} << 20));
  std::vector<PlanCandidate> candidates = Candidates();
  for (PlanCandidate& candidate : candidates) {
    candidate.build.reorder = ReorderMode::kAuto;
    candidate.build.build_memory_bytes = 1;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan,
                             MakePlan(sample, candidates, Quick()));
  ASSERT_EQ(plan.notes.size(), candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_THAT(plan.notes[i], HasSubstr(absl::StrCat(
                                   "the build with ", candidates[i].arguments,
                                   " omitted a step (not reordered: ")));
  }
}

TEST(PlanTest, RemovesItsArchives) {
  const TemporaryDirectory directory;
  PlanOptions options = Quick();
  options.work_directory = directory.path();
  QUIRE_ASSERT_OK(PlanOf(SimilarDocuments(4, 30'000), options).status());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  options.work_directory = directory / "absent";
  EXPECT_EQ(PlanOf(SimilarDocuments(4, 30'000), options).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(PlanReportTest, EveryFormHasEveryRow) {
  PlanOptions options = Quick();
  options.price_per_tb = 18;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan,
                             PlanOf(SimilarDocuments(20, 30'000), options));
  const PlanRequest request = {{"a<b", "it's"}, options};
  const std::string table = FormatPlan(request, plan);
  const auto json = nlohmann::json::parse(FormatPlanJson(request, plan));
  const std::string html = FormatPlanHtml(request, plan);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["cells"].size(), plan.cells.size());
  EXPECT_EQ(json["recommended"], *plan.recommended);
  for (const PlanCell& cell : plan.cells) {
    EXPECT_THAT(table, HasSubstr(cell.arguments));
    EXPECT_THAT(html, HasSubstr(cell.arguments));
    ASSERT_TRUE(cell.price.has_value());
    EXPECT_NEAR(*cell.price, cell.size.size_bytes / 1e12 * 18, 1e-9);
  }
  EXPECT_THAT(html, HasSubstr("a&lt;b"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(table, HasSubstr("'it'\\''s'"));
  EXPECT_THAT(table, HasSubstr("of text in 20 documents; archives"));
  Plan one = plan;
  one.document_count = 1;
  EXPECT_THAT(FormatPlan(request, one), HasSubstr("of text in 1 document; "));
}

TEST(PlanReportTest, CountsRequestsToAnObjectStore) {
  PlanOptions options;
  options.read_size_bytes = 64 << 10;
  options.price_per_million_requests = 0.4;
  Plan plan;
  plan.text_size_bytes = uint64_t{10} << 40;
  PlanCell cell;
  cell.block_size_bytes = 64 << 10;
  cell.size.size_bytes = static_cast<double>(uint64_t{1} << 40);
  plan.cells.push_back(cell);
  plan.recommended = 0;
  EXPECT_THAT(FormatPlan({{"x"}, options}, plan),
              HasSubstr("a million cold reads are 1000000 GETs (0.40 euro), a "
                        "full scan is 1048576 GETs (0.42 euro)"));
  // Reads that span more than one request.
  options.read_size_bytes = 100 << 20;
  const auto json =
      nlohmann::json::parse(FormatPlanJson({{"x"}, options}, plan));
  EXPECT_EQ(json["store_requests_per_million_reads"], 3e6);
  EXPECT_NEAR(json["store_price_per_scan"].get<double>(), 0.419, 0.001);
  options.price_per_million_requests = 0;
  EXPECT_THAT(FormatPlan({{"x"}, options}, plan),
              Not(HasSubstr("object store")));
}

TEST(PlanReportTest, SplitsTheBuild) {
  PlanCell cell;
  cell.build_seconds = 80 * 3600;
  cell.preparation_seconds = 2 * 3600;
  const PartsForecast parts = ForecastParts(cell, 32);
  // Two and a half hours of each machine, in parts of at most one.
  EXPECT_EQ(parts.part_count, 96U);
  EXPECT_NEAR(parts.part_seconds, 3000, 1);
  EXPECT_NEAR(parts.seconds, 4.5 * 3600, 1);
  cell.build_seconds = 10;
  EXPECT_EQ(ForecastParts(cell, 32).part_count, 32U);
  EXPECT_EQ(ForecastParts(cell, 1).part_count, 1U);

  cell.build_seconds = 80 * 3600;
  PlanOptions options;
  options.machine_count = 32;
  options.core_count = 16;
  Plan plan;
  plan.text_size_bytes = uint64_t{96} << 30;
  plan.cells.push_back(cell);
  plan.recommended = 0;
  EXPECT_THAT(FormatPlan({{"x"}, options}, plan),
              HasSubstr("On 32 machines of 16 cores: 2.0 h for quired "
                        "dictionary, then 96 parts of 1 GiB"));
  const auto json =
      nlohmann::json::parse(FormatPlanJson({{"x"}, options}, plan));
  EXPECT_EQ(json["part_count"], 96);
  options.machine_count = 1;
  EXPECT_THAT(FormatPlan({{"x"}, options}, plan), Not(HasSubstr("machines")));
}

TEST(PlanReportTest, CommandsSayEverything) {
  PlanOptions options = Quick();
  options.memory_bytes = 1 << 30;
  PlanCell cell;
  cell.arguments = "--codec rlz:max --dictionary-size 64MiB";
  EXPECT_THAT(CommandsFor({{"docs", "-x"}, options}, cell),
              ElementsAre("quired build -o archive.quire --codec rlz:max "
                          "--dictionary-size 64MiB docs ./-x",
                          "quired serve archive.quire --memory 1GiB"));
  EXPECT_EQ(CommandsFor({{"x"}, options, {"--split", "a b"}}, PlanCell())[0],
            "quired build -o archive.quire --split 'a b' x");
}

}  // namespace
}  // namespace quire
