// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_pipeline.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive_verifier.h"
#include "server/ingest/sources/archive_source.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IdsAndContents SomeDocuments(uint64_t seed) {
  IdsAndContents documents;
  uint64_t i = 0;
  for (const size_t size :
       std::vector<size_t>{0, 1, 5000, 4096, 0, 70000, 8192, 13, 0}) {
    documents.emplace_back(absl::StrCat("doc", seed, "-", i),
                           MakeTestText(size, seed * 100 + i));
    ++i;
  }
  return documents;
}

// All, or under sanitizers one of each kind.
std::vector<std::string> TestedCodecs() {
  if (kIsSanitized) {
    return {"zstd", "rlz", "rlz-zz", "fsst", "auto"};
  }
  std::vector<std::string> names;
  for (const CodecInfo& codec : AllCodecs()) {
    names.emplace_back(codec.name);
  }
  return names;
}

BuildOptions Options(const char* codec) {
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec(codec);
  options.archive.block_size_bytes = 4096;
  FitPartitions(options.archive.block_size_bytes, options.archive.codec);
  options.dictionary_size_bytes = 8192;
  options.threads = 2;
  return options;
}

absl::StatusOr<std::string> ReadRange(const Archive& archive,
                                      LogicalRange range) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive.Plan(range));
  const std::unique_ptr<BlockCodec::Scratch> scratch =
      archive.codec().NewScratch();
  std::string text;
  for (const BlockSlice& slice : slices) {
    std::string block(archive.BlockSizeBytes(slice.block), '\0');
    QUIRE_RETURN_IF_ERROR(
        archive.ReadBlock(slice.block, AsMutableBytes(block), *scratch));
    text.append(block, slice.offset_in_block, slice.size_bytes);
  }
  return text;
}

absl::StatusOr<IdsAndContents> ReadArchive(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::Open(path));
  IdsAndContents documents;
  for (uint64_t i = 0; i < archive->info().document_count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const Document document,
                           archive->GetDocument(DocumentOrdinal{i}));
    QUIRE_ASSIGN_OR_RETURN(std::string text,
                           ReadRange(*archive, document.range));
    documents.emplace_back(document.id, std::move(text));
  }
  return documents;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

TEST(BuildPipelineTest, RoundTripsEverySourceWithEveryCodec) {
  const TemporaryDirectory directory;
  directory.Write("in/a/b.txt", MakeTestText(30000, 1));
  directory.Write("in/c.txt", "");
  directory.Write("in/d.txt", MakeTestText(4096, 2));
  const std::vector<TestEntry> entries = {{"x", MakeTestText(50000, 3)},
                                          {"y", "short"}};
  const std::vector<std::string> inputs = {
      directory / "in",
      directory.Write("tar", MakeTestArchive("pax", "zstd", entries)),
      directory.Write("zip", MakeTestArchive("zip", "none", entries)),
      directory.Write(
          "warc",
          Gzip(MakeWarcRecord(
              {"WARC-Target-URI: http://u/", "WARC-Date: 2020-01-01T00:00:00Z",
               "WARC-Type: resource", "Content-Type: text/plain"},
              MakeTestText(20000, 4)))),
      directory.Write("plain", MakeTestText(9999, 5)),
      directory.Write("empty", "")};
  IdsAndContents expected;
  for (const std::string& input : inputs) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents,
                               ReadInput(input));
    expected.insert(expected.end(), documents.begin(), documents.end());
  }
  for (const std::string& name : TestedCodecs()) {
    SCOPED_TRACE(name);
    std::vector<std::unique_ptr<Source>> sources;
    for (const std::string& input : inputs) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          sources.emplace_back(),
          OpenSource(input, {.spool_directory = directory.path()}));
    }
    const std::string path = directory / (name + ".quire");
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const BuildSummary summary,
        BuildArchive(path, sources, Options(name.c_str())));
    EXPECT_EQ(summary.info.document_count, expected.size());
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back, ReadArchive(path));
    EXPECT_EQ(back, expected);

    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto ordinals,
                               archive->FindDocuments("http://u/"));
    ASSERT_EQ(ordinals.size(), 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document record,
                               archive->GetDocument(ordinals[0]));
    EXPECT_EQ(record.capture_time_ms, 1577836800000);
    EXPECT_EQ(record.record_type, "resource");
    EXPECT_EQ(record.media_type, "text/plain");
  }
}

TEST(BuildPipelineTest, ThreadsDoNotChangeAByte) {
  const TemporaryDirectory directory;
  for (const char* codec : {"rlz", "rlz-zz", "zstd:3"}) {
    SCOPED_TRACE(codec);
    std::map<std::string, std::string> first;
    for (const uint32_t threads : {1u, 2u, 5u}) {
      SCOPED_TRACE(threads);
      BuildOptions options = Options(codec);
      options.threads = threads;
      options.segment_size_bytes = 60000;
      const std::string path = directory / absl::StrCat(codec, threads);
      std::vector<std::unique_ptr<Source>> sources;
      for (uint64_t seed = 0; seed < 5; ++seed) {
        sources.push_back(FixedSource(SomeDocuments(seed)));
      }
      QUIRE_ASSERT_OK(BuildArchive(path, sources, options));
      const std::map<std::string, std::string> files = FilesOf(path);
      EXPECT_GT(files.size(), 3);
      if (first.empty()) {
        first = files;
      }
      EXPECT_TRUE(files == first);
    }
  }
}

// A few repeated texts, among different ones.
IdsAndContents RepeatingDocuments() {
  IdsAndContents documents;
  for (uint64_t i = 0; i < 30; ++i) {
    documents.emplace_back(
        absl::StrCat("doc", i),
        absl::StrCat(MakeTestText(3000 + 900 * (i % 5), i % 5),
                     MakeTestText(500 * (i % 3), i),
                     MakeTestText(20000, i % 7)));
  }
  documents.emplace_back("empty", "");
  return documents;
}

TEST(BuildPipelineTest, ReorderingChangesNoDocument) {
  const TemporaryDirectory directory;
  const IdsAndContents documents = RepeatingDocuments();
  for (const std::string& name : TestedCodecs()) {
    SCOPED_TRACE(name);
    std::map<ReorderMode, std::map<std::string, std::string>> first;
    for (const auto& [mode, threads] :
         {std::pair(ReorderMode::kDuplicates, 3u),
          std::pair(ReorderMode::kAuto, 1u), std::pair(ReorderMode::kAuto, 3u),
          std::pair(ReorderMode::kFull, 3u)}) {
      BuildOptions options = Options(name.c_str());
      options.reorder = mode;
      options.threads = threads;
      options.segment_size_bytes = 300000;
      const std::string path =
          directory / absl::StrCat(name, threads, static_cast<int>(mode));
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const BuildSummary summary,
          BuildArchive(path, OneSource(documents), options));
      EXPECT_EQ(summary.info.segment_count, 3u);
      EXPECT_LT(summary.info.stored_text_size_bytes,
                summary.info.size_bytes * 4 / 5);
      QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back, ReadArchive(path));
      EXPECT_EQ(back, documents);
      QUIRE_EXPECT_OK(VerifyArchive(path, {}, [](const ArchiveDamage& damage) {
        ADD_FAILURE() << damage.status;
      }));
      const std::map<std::string, std::string> files = FilesOf(path);
      EXPECT_TRUE(!first.contains(mode) || files == first[mode]);
      first[mode] = files;
    }
  }
  // No files remain except the archives.
  EXPECT_EQ(NamesIn(directory.path()).size(), 4 * TestedCodecs().size());
}

TEST(BuildPipelineTest, StoredTextThatChangesBeforeItIsEncodedIsAnError) {
  const TemporaryDirectory directory;
  const std::string text = MakeTestText(54321, 1);
  BuildOptions options = Options("zstd");
  options.reorder = ReorderMode::kDuplicates;
  int changed_count = 0;
  options.on_progress = [&](const BuildProgress& progress) {
    if (progress.phase == BuildPhase::kEncode && progress.done_bytes == 0) {
      changed_count += ChangeUnnamedFiles(text.size(), 5000);
    }
  };
  EXPECT_THAT(BuildArchive(directory / "x",
                           OneSource({{"a", text}, {"b", text}}), options),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("differs from the text written")));
  EXPECT_EQ(changed_count, 1);
  EXPECT_TRUE(NamesIn(directory.path()).empty());
}

TEST(BuildPipelineTest, TextWithoutDuplicatesMakesTheSameArchive) {
  const TemporaryDirectory directory;
  for (const char* codec : {"rlz", "zstd", "fsst"}) {
    SCOPED_TRACE(codec);
    std::map<std::string, std::string> first;
    for (const ReorderMode mode :
         {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kDuplicates}) {
      BuildOptions options = Options(codec);
      options.reorder = mode;
      options.segment_size_bytes = 60000;
      const std::string path =
          directory / absl::StrCat(codec, static_cast<int>(mode));
      QUIRE_ASSERT_OK(BuildArchive(path, OneSource(SomeDocuments(1)), options));
      std::map<std::string, std::string> files = FilesOf(path);
      // It states the reason of the order.
      files.erase("MANIFEST");
      EXPECT_TRUE(first.empty() || files == first);
      first = files;
    }
  }
}

TEST(BuildPipelineTest, SamplesTheDictionaryOverAllInputs) {
  const TemporaryDirectory directory;
  std::vector<std::unique_ptr<Source>> sources;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    sources.push_back(
        FixedSource({{std::string(1, letter), std::string(100000, letter)}}));
  }
  BuildOptions options = Options("rlz");
  options.dictionary_size_bytes = 40 << 10;
  options.dictionary_method = DictionaryMethod::kUniform;
  const std::string path = directory / "x.quire";
  QUIRE_ASSERT_OK(BuildArchive(path, sources, options));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  const absl::string_view dictionary = AsText(archive->dictionary());
  EXPECT_EQ(dictionary.size(), 40 * 1024);
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    // A quarter each, except for the sample across a border.
    EXPECT_NEAR(static_cast<double>(
                    std::count(dictionary.begin(), dictionary.end(), letter)),
                10.0 * 1024, 1024)
        << letter;
  }
}

TEST(BuildPipelineTest, StartsSegmentsAtDocuments) {
  const TemporaryDirectory directory;
  const IdsAndContents documents = {{"a", MakeTestText(6000, 1)},
                                    {"b", MakeTestText(6000, 2)},
                                    {"c", MakeTestText(30000, 3)},
                                    {"d", ""},
                                    {"e", MakeTestText(100, 4)}};
  BuildOptions options = Options("zstd");
  options.segment_size_bytes = 10000;
  const std::string path = directory / "x.quire";
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             BuildArchive(path, OneSource(documents), options));
  EXPECT_EQ(summary.info.segment_count, 3);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back, ReadArchive(path));
  EXPECT_EQ(back, documents);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  EXPECT_EQ(archive->SegmentBlockCount(0), 3);
  EXPECT_EQ(archive->SegmentBlockCount(1), 8);
  EXPECT_EQ(archive->SegmentBlockCount(2), 1);
}

TEST(BuildPipelineTest, NoDocumentsAreAnArchiveToo) {
  const TemporaryDirectory directory;
  for (const std::string& name : TestedCodecs()) {
    SCOPED_TRACE(name);
    const std::string path = directory / name;
    QUIRE_ASSERT_OK(BuildArchive(path, OneSource({}), Options(name.c_str())));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back, ReadArchive(path));
    EXPECT_TRUE(back.empty());
    const std::string empties = directory / (name + "-empties");
    const IdsAndContents documents = {{"", ""}, {"", ""}, {"x", ""}};
    QUIRE_ASSERT_OK(
        BuildArchive(empties, OneSource(documents), Options(name.c_str())));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents same, ReadArchive(empties));
    EXPECT_EQ(same, documents);
  }
}

TEST(BuildPipelineTest, CountsRepeatedIds) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.quire";
  QUIRE_ASSERT_OK(BuildArchive(
      path,
      OneSource({{"a", "1"}, {"b", "2"}, {"a", "3"}, {"", "4"}, {"a", "5"}}),
      Options("lz4")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  EXPECT_EQ(CountRepeatedIds(*archive), 2);
}

TEST(BuildPipelineTest, StoresWhatDoesNotShrinkRaw) {
  const TemporaryDirectory directory;
  std::string noise(20000, '\0');
  uint64_t state = 1;
  for (char& byte : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const BuildSummary summary,
      BuildArchive(directory / "x.quire", OneSource({{"a", noise}}),
                   Options("zlib")));
  EXPECT_EQ(summary.raw_block_count, 5);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back,
                             ReadArchive(directory / "x.quire"));
  EXPECT_THAT(back, ElementsAre(::testing::Pair("a", noise)));
}

TEST(BuildPipelineTest, HoldsWhatTheLastPassRead) {
  const TemporaryDirectory directory;
  // Grows from pass to pass: counted, sampled for the dictionary, encoded.
  int last_pass = 0;
  const auto growing = [&](int pass) {
    last_pass = std::max(last_pass, pass);
    IdsAndContents documents;
    for (uint64_t i = 0; i < 3 + static_cast<uint64_t>(pass); ++i) {
      documents.emplace_back(absl::StrCat(i), MakeTestText(5000, i));
    }
    return documents;
  };
  QUIRE_ASSERT_OK(BuildArchive(directory / "x",
                               Sources(std::make_unique<MemorySource>(growing)),
                               Options("rlz")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents back,
                             ReadArchive(directory / "x"));
  EXPECT_GT(last_pass, 1);
  EXPECT_EQ(back, growing(last_pass));
}

TEST(BuildPipelineTest, SaysSoIfInputsShrinkBeforeSampling) {
  const TemporaryDirectory directory;
  const auto shrinking = [](int pass) {
    return IdsAndContents{{"a", std::string(pass == 0 ? 20000 : 10000, 'x')}};
  };
  EXPECT_THAT(BuildArchive(directory / "x",
                           Sources(std::make_unique<MemorySource>(shrinking)),
                           Options("rlz")),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("became smaller")));
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
}

TEST(BuildPipelineTest, LeavesNothingBehindOnErrors) {
  const TemporaryDirectory directory;
  const std::string truncated = directory.Write(
      "in", MakeWarcRecord({}, MakeTestText(50000, 1)) + "WARC/1.0 truncated");
  for (const char* codec : {"rlz", "zstd"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        std::unique_ptr<Source> source,
        OpenSource(truncated, {.spool_directory = directory.path()}));
    EXPECT_THAT(BuildArchive(directory / "x", Sources(std::move(source)),
                             Options(codec)),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr("record 1")));
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre("in"));
  }
}

TEST(BuildPipelineTest, CanBeCancelledInEveryPhase) {
  const TemporaryDirectory directory;
  for (const BuildPhase phase :
       {BuildPhase::kCount, BuildPhase::kDictionary, BuildPhase::kIndex,
        BuildPhase::kEncode, BuildPhase::kFinish}) {
    std::atomic<bool> cancel = false;
    BuildOptions options = Options("rlz");
    options.cancel = &cancel;
    options.on_progress = [&](const BuildProgress& progress) {
      cancel = cancel || progress.phase == phase;
    };
    EXPECT_THAT(
        BuildArchive(directory / "x", OneSource(SomeDocuments(1)), options),
        HasCode(absl::StatusCode::kCancelled));
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
  }
}

TEST(BuildPipelineTest, CanBeCancelledWithBlocksInFlight) {
  const TemporaryDirectory directory;
  const IdsAndContents documents = {{"a", MakeTestText(4 << 20, 1)}};
  for (const uint64_t stop_bytes : std::vector<uint64_t>{0, 1 << 20, 3 << 20}) {
    std::atomic<bool> cancel = false;
    BuildOptions options = Options("zstd:19");
    options.archive.block_size_bytes = 65536;
    options.threads = 4;
    options.cancel = &cancel;
    options.on_progress = [&](const BuildProgress& progress) {
      cancel = cancel || (progress.phase == BuildPhase::kEncode &&
                          progress.done_bytes > stop_bytes);
    };
    EXPECT_THAT(BuildArchive(directory / "x", OneSource(documents), options),
                HasCode(absl::StatusCode::kCancelled));
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
  }
}

TEST(BuildPipelineTest, ReportsProgress) {
  const TemporaryDirectory directory;
  const IdsAndContents documents = {{"a", MakeTestText(10 << 20, 1)}};
  BuildOptions options = Options("lz4");
  options.archive.block_size_bytes = 65536;
  std::vector<BuildProgress> seen;
  options.on_progress = [&seen](const BuildProgress& progress) {
    seen.push_back(progress);
  };
  QUIRE_ASSERT_OK(BuildArchive(directory / "x", OneSource(documents), options));
  ASSERT_GE(seen.size(), 10);
  EXPECT_EQ(seen.front().phase, BuildPhase::kCount);
  EXPECT_EQ(seen.back().phase, BuildPhase::kFinish);
  for (const BuildProgress& progress : seen) {
    if (progress.phase == BuildPhase::kEncode) {
      EXPECT_EQ(progress.total_bytes, 10 << 20);
      EXPECT_LE(progress.done_bytes, 10 << 20);
      EXPECT_LE(progress.stored_bytes, progress.done_bytes);
    }
  }
}

}  // namespace
}  // namespace quire
