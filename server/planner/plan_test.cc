// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "server/ingest/testing/memory_source.h"
#include "server/planner/codec_trial.h"
#include "server/planner/plan_report.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Sources = std::vector<std::unique_ptr<Source>>;

Sources Holding(MemorySource::Documents documents) {
  Sources sources;
  sources.push_back(std::make_unique<MemorySource>(
      [documents = std::move(documents)](int) { return documents; }));
  return sources;
}

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

PlanOptions Quick() {
  PlanOptions options;
  options.drive = ParseDrive("ssd").value();
  options.core_count = 2;
  options.trial_seconds = 1e-3;
  return options;
}

// Of a sample that is the whole text.
absl::StatusOr<Plan> PlanOf(const CollectionSample& sample,
                            const PlanOptions& options) {
  return MakePlan(
      sample,
      [&](const TextSink& sink) {
        for (const std::string& piece : sample.pieces) {
          const absl::Status status = sink(AsBytes(piece));
          if (!status.ok()) {
            return status;
          }
        }
        return absl::OkStatus();
      },
      options);
}

TEST(CollectionSampleTest, KeepsAllOfASmallText) {
  const auto documents = SimilarDocuments(5, 700'000);
  std::string text;
  for (const auto& [id, contents] : documents) {
    text += contents;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             SampleCollection(Holding(documents), 4 << 20));
  EXPECT_TRUE(sample.is_whole());
  EXPECT_EQ(sample.document_count, 5U);
  EXPECT_EQ(sample.text_size_bytes, 3'500'000U);
  std::string kept;
  for (const std::string& piece : sample.pieces) {
    kept += piece;
  }
  EXPECT_EQ(kept, text);
}

TEST(CollectionSampleTest, KeepsPiecesEvenlySpreadOfALargeOne) {
  MemorySource::Documents documents;
  for (char c = 'a'; c < 'a' + 20; ++c) {
    documents.emplace_back(std::string(1, c), std::string(1 << 18, c));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const CollectionSample sample,
                             SampleCollection(Holding(documents), 6 << 18));
  EXPECT_EQ(sample.text_size_bytes, uint64_t{20} << 18);
  std::string first_letters;
  for (const std::string& piece : sample.pieces) {
    EXPECT_EQ(piece.size(), 1U << 18);
    first_letters += piece.front();
  }
  EXPECT_EQ(first_letters, "aeimq");
  EXPECT_FALSE(sample.is_whole());
}

// A sample that has twice as much random text as the collection says what the
// collection would take.
TEST(CodecTrialTest, CorrectsForWhatCameCompressed) {
  std::mt19937_64 random(1);
  std::vector<std::string> pieces;
  for (int i = 0; i < 8; ++i) {
    std::string piece(1 << 18, 'x');
    if (i % 2 == 0) {
      for (char& c : piece) {
        c = static_cast<char>(random());
      }
    }
    pieces.push_back(std::move(piece));
  }
  const CodecSpec lz4 = {.id = CodecId::kLz4, .level = 1};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CodecTrialResult trial,
      TryCodec(lz4, nullptr, pieces,
               {.seconds = 0.01,
                .compressibility = {.incompressible_share = 0.25,
                                    .lz4_share = 0.25}}));
  EXPECT_NEAR(trial.stored_share, 0.25, 0.02);
}

TEST(CollectionSampleTest, SaysHowMuchCameCompressed) {
  std::mt19937_64 random(1);
  std::string noise(1 << 20, 'x');
  for (char& c : noise) {
    c = static_cast<char>(random());
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(
          Holding({{"noise", noise}, {"text", std::string(3 << 20, 'x')}}),
          8 << 20));
  EXPECT_NEAR(sample.compressibility.incompressible_share, 0.25, 1e-3);
  EXPECT_NEAR(sample.compressibility.lz4_share, 0.25 + 0.75 / 256, 2e-3);
}

TEST(CollectionSampleTest, RefusesNothing) {
  EXPECT_THAT(
      SampleCollection(Holding({}), 1 << 20),
      FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("no text")));
  EXPECT_THAT(SampleCollection(Holding({{"empty", ""}}), 1 << 20),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(CollectionSampleTest, ReadsNoMoreThanTheInputsMayHold) {
  const Sources sources = Holding({{"a", "12345"}, {"b", "67890"}});
  QUIRE_EXPECT_OK(SampleCollection(sources, 1 << 20, 10).status());
  EXPECT_THAT(SampleCollection(sources, 1 << 20, 9),
              HasCode(absl::StatusCode::kResourceExhausted));
  uint64_t read_bytes = 0;
  EXPECT_THAT(ReadText(
                  sources,
                  [&](ByteView text) {
                    read_bytes += text.size();
                    return absl::OkStatus();
                  },
                  9),
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(read_bytes, 5U);
}

// Halves that differ say that neither is the truth.
TEST(CodecTrialTest, TheErrorIsThatOfHalves) {
  std::mt19937_64 random(1);
  std::vector<std::string> pieces;
  for (int i = 0; i < 8; ++i) {
    std::string piece(1 << 18, 'x');
    for (char& c : piece) {
      c = static_cast<char>(random() % (i % 2 == 0 ? 4 : 16));
    }
    pieces.push_back(std::move(piece));
  }
  const CodecSpec zlib = {.id = CodecId::kZlib, .level = 6};
  TrialOptions options = {.seconds = 0.01, .block_count_min = 1000};
  // Of all of the text: not zero.
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodecTrialResult whole,
                             TryCodec(zlib, nullptr, pieces, options));
  EXPECT_DOUBLE_EQ(whole.share_error, 0.01 * whole.stored_share);
  options.text_size_bytes = uint64_t{1} << 40;
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodecTrialResult part,
                             TryCodec(zlib, nullptr, pieces, options));
  EXPECT_GT(part.share_error, 0.1 * part.stored_share);
}

TEST(DrivePlanTest, ReadsWhatUsersWrite) {
  EXPECT_EQ(ParseDrive("hdd")->kind, PlannedDrive::Kind::kHardDisk);
  EXPECT_EQ(ParseDrive("ssd")->kind, PlannedDrive::Kind::kSolidState);
  EXPECT_THAT(ParseDrive("/"), IsOk());
  QUIRE_ASSERT_OK_AND_ASSIGN(const PlannedDrive store,
                             ParseDrive("s3:30ms,200MB"));
  EXPECT_EQ(store.kind, PlannedDrive::Kind::kObjectStore);
  EXPECT_DOUBLE_EQ(store.latency_seconds, 0.03);
  EXPECT_DOUBLE_EQ(store.bytes_per_second, 200e6);
  for (const char* wrong : {"", "floppy", "s3:", "s3:30ms", "s3:30ms,0",
                            "s3:0,200MB", "s3:30ms,200MB,1", "s3:x,200MB"}) {
    EXPECT_THAT(ParseDrive(wrong), HasCode(absl::StatusCode::kInvalidArgument))
        << wrong;
  }
}

TEST(DrivePlanTest, DrivesAreAsFastAsTheirKind) {
  const DriveRates disk =
      RatesOf(ParseDrive("hdd").value(), 8192, uint64_t{13} << 29, 64, 4'000);
  EXPECT_GT(disk.lone_seconds, 4e-3);
  EXPECT_GT(disk.per_second, 1.3 / disk.lone_seconds);
  EXPECT_GT(disk.batch_per_second, disk.per_second);
  EXPECT_GT(disk.sequential_bytes_per_second, 100e6);
  const DriveRates ssd =
      RatesOf(ParseDrive("ssd").value(), 8192, uint64_t{13} << 29, 64, 4'000);
  EXPECT_LT(ssd.lone_seconds, 1e-3);
  EXPECT_GT(ssd.per_second, 10'000);
  const DriveRates store =
      RatesOf(ParseDrive("s3:30ms,200MB").value(), 20'000, 1 << 30, 64, 4'000);
  EXPECT_DOUBLE_EQ(store.lone_seconds, 0.0301);
  EXPECT_DOUBLE_EQ(store.per_second, 10'000);
}

TEST(PlanTest, FindsTheDictionaryWorthIt) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(Holding(SimilarDocuments(40, 30'000)), 16 << 20));
  PlanOptions options = Quick();
  options.objective = PlanObjective::kArchive;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(sample, options));
  ASSERT_TRUE(plan.recommended.has_value());
  EXPECT_EQ(*plan.recommended, 0U);
  EXPECT_THAT(plan.cells[0].codec, HasSubstr("rlz"));
  EXPECT_TRUE(plan.cells[0].is_pareto);
  for (const PlanCell& cell : plan.cells) {
    EXPECT_GE(cell.size_bytes, plan.cells[0].size_bytes);
    EXPECT_LT(cell.size_bytes_min, cell.size_bytes);
    EXPECT_GT(cell.size_bytes_max, cell.size_bytes);
    EXPECT_GT(cell.random.per_second, 0);
    EXPECT_GE(cell.batch.per_second, cell.random.per_second);
    EXPECT_GT(cell.full_bytes_per_second, 0);
    EXPECT_GT(cell.build_seconds, 0);
  }
  for (const AutoObjective objective : kAutoObjectives) {
    for (const AutoSpeed& speed : SpeedsOf(plan.codec_speeds, objective)) {
      EXPECT_GT(speed.encode, AutoSpeed::kMin);
      EXPECT_GT(speed.decode, AutoSpeed::kMin);
      EXPECT_LT(speed.encode, AutoSpeed::kMax);
      EXPECT_LT(speed.decode, AutoSpeed::kMax);
    }
  }
  ASSERT_EQ(plan.encodings.size(), 3U);
  ASSERT_EQ(plan.thresholds.size(), 2U);
  EXPECT_NEAR(plan.thresholds[1].bytes_per_second,
              2 * plan.thresholds[0].bytes_per_second, 1);
}

TEST(PlanTest, LeavesOutWhatDoesNotFit) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(Holding(SimilarDocuments(40, 30'000)), 16 << 20));
  PlanOptions options = Quick();
  options.objective = PlanObjective::kArchive;
  // Less than a server and the dictionary take.
  options.memory_bytes = 132 << 20;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(sample, options));
  ASSERT_TRUE(plan.recommended.has_value());
  EXPECT_EQ(plan.cells[*plan.recommended].dictionary_size_bytes, 0U);
  options.memory_bytes = 1 << 20;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan none, PlanOf(sample, options));
  EXPECT_FALSE(none.recommended.has_value());
  EXPECT_THAT(FormatPlan({{"x"}, options}, none), HasSubstr("raise --memory"));
  options.memory_bytes = 0;
  options.price_per_tb = 1e6;
  options.budget = 1e-6;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan dear, PlanOf(sample, options));
  EXPECT_FALSE(dear.recommended.has_value());
}

// A dictionary of 16 MiB would hold all of such a sample.
TEST(PlanTest, GivesNoFigureForADictionaryLargerThanAQuarterOfTheSample) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(Holding(SimilarDocuments(40, 30'000)), 16 << 20));
  PlanOptions options = Quick();
  options.text_size_bytes = 10 * sample.text_size_bytes;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(sample, options));
  ASSERT_FALSE(plan.cells.empty());
  for (const PlanCell& cell : plan.cells) {
    EXPECT_EQ(cell.dictionary_size_bytes, 0U);
    EXPECT_FALSE(cell.price.has_value());
  }
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes[0], HasSubstr("give at least 64MiB"));
  const PlanRequest request = {{"x"}, options};
  const std::string report = FormatPlan(request, plan);
  EXPECT_THAT(report, HasSubstr(plan.notes[0]));
  EXPECT_THAT(report, Not(HasSubstr("0.00 euro")));
  EXPECT_THAT(FormatPlanJson(request, plan), Not(HasSubstr("\"price\"")));
}

TEST(PlanTest, ScalesToTheCollection) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(Holding(SimilarDocuments(40, 50'000)), 16 << 20));
  PlanOptions options = Quick();
  options.text_size_bytes = 50'000'000'000'000;
  options.drive = ParseDrive("hdd").value();
  options.price_per_tb = 18;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(sample, options));
  EXPECT_EQ(plan.text_size_bytes, options.text_size_bytes);
  EXPECT_NEAR(static_cast<double>(plan.document_count), 40 * 50e12 / 2e6, 1);
  ASSERT_TRUE(plan.recommended.has_value());
  const PlanCell& cell = plan.cells[*plan.recommended];
  EXPECT_GT(cell.size_bytes, 1e10);
  EXPECT_GE(cell.size_bytes_max, cell.size_bytes);
  ASSERT_TRUE(cell.price.has_value());
  EXPECT_NEAR(*cell.price, cell.size_bytes / 1e12 * 18, 1e-6);
  EXPECT_EQ(cell.random.limit, "drive");
  EXPECT_GE(plan.plain_drives.unit_count, 10U);
  EXPECT_LT(plan.fewest_drives.unit_count, plan.plain_drives.unit_count);
  EXPECT_EQ(plan.as_many_drives.unit_count, plan.plain_drives.unit_count);
}

TEST(PlanReportTest, EveryFormHasEveryRow) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CollectionSample sample,
      SampleCollection(Holding(SimilarDocuments(20, 30'000)), 16 << 20));
  PlanOptions options = Quick();
  options.price_per_tb = 18;
  QUIRE_ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(sample, options));
  const PlanRequest request = {{"a<b", "it's"}, options};
  const std::string table = FormatPlan(request, plan);
  const auto json = nlohmann::json::parse(FormatPlanJson(request, plan));
  const std::string html = FormatPlanHtml(request, plan);
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(json["cells"].size(), plan.cells.size());
  EXPECT_EQ(json["recommended"], *plan.recommended);
  for (const PlanCell& cell : plan.cells) {
    EXPECT_THAT(table, HasSubstr(cell.codec));
    EXPECT_THAT(html, HasSubstr(cell.codec));
  }
  EXPECT_THAT(html, HasSubstr("a&lt;b"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(table, HasSubstr("'it'\\''s'"));
}

TEST(PlanReportTest, CommandsSayEverything) {
  PlanOptions options = Quick();
  options.memory_bytes = 1 << 30;
  PlanCell cell;
  cell.codec = "rlz:max";
  cell.block_size_bytes = 16384;
  cell.dictionary_size_bytes = 64 << 20;
  EXPECT_THAT(
      CommandsFor({{"docs", "-x"}, options}, cell),
      ElementsAre("quired build -o archive.quire --codec rlz:max --block-size "
                  "16KiB --dictionary-size 64MiB docs ./-x",
                  "quired serve archive.quire --memory 1GiB"));
}

}  // namespace
}  // namespace quire
