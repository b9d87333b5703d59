// SPDX-License-Identifier: GPL-3.0-or-later
//
// Salvages damaged archives and compares the result with their documents.
#include "server/archive/repair/archive_salvage.h"

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/repair/salvage_output.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Documents by ordinal.
class MemoryOutput final : public SalvageOutput {
 public:
  struct Saved {
    Document document;
    bool has_id = true;
    std::string text;
  };

  absl::StatusOr<std::string> Begin(const Document& document,
                                    bool has_id) override {
    EXPECT_FALSE(saved_.contains(document.ordinal.value));
    current_ = &saved_[document.ordinal.value];
    current_->document = document;
    current_->has_id = has_id;
    return document.id;
  }

  absl::Status Write(ByteView bytes) override {
    current_->text.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status End() override {
    EXPECT_EQ(current_->text.size(), current_->document.range.size_bytes);
    return absl::OkStatus();
  }

  absl::Status Drop() override {
    saved_.erase(current_->document.ordinal.value);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    finished_ = true;
    return absl::OkStatus();
  }

  const std::map<uint64_t, Saved>& saved() const { return saved_; }

  bool finished() const { return finished_; }

 private:
  std::map<uint64_t, Saved> saved_;
  Saved* current_ = nullptr;
  bool finished_ = false;
};

struct Salvaged {
  absl::StatusOr<SalvageReport> report = absl::UnknownError("not run");
  MemoryOutput output;
  std::vector<std::string> damages;
  std::map<uint64_t, LostDocument> lost;
};

Salvaged SalvageToMemory(const std::string& path) {
  Salvaged result;
  result.report = SalvageArchive(
      path, result.output,
      {.on_damage =
           [&](const absl::Status& status) {
             result.damages.emplace_back(status.message());
           },
       .on_lost =
           [&](const LostDocument& lost) {
             result.lost[lost.document.ordinal.value] = lost;
           },
       .on_renamed = [](const Document&, const std::string&) {}});
  if (result.report.ok()) {
    EXPECT_TRUE(result.output.finished());
    EXPECT_EQ(result.report->saved_count, result.output.saved().size());
    EXPECT_EQ(result.report->damage_count, result.damages.size());
    EXPECT_GE(result.report->lost_count, result.lost.size());
  }
  return result;
}

void ExpectSalvaged(const MemoryOutput::Saved& saved,
                    const TestDocument& document) {
  EXPECT_TRUE(saved.text == document.text);
  if (saved.has_id) {
    EXPECT_EQ(saved.document.id, document.id);
  }
}

class ArchiveSalvageTest : public ::testing::Test {
 protected:
  // Writes an archive of two segments with blocks of 4 KiB.
  void Write(const std::string& codec = "rlz") {
    std::mt19937_64 random(7);
    std::filesystem::remove_all(path_);
    segments_ = {RandomTestSegment(30, 6000, random),
                 RandomTestSegment(10, 3000, random)};
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec(codec).value();
    options.block_size_bytes = 4096;
    const auto context = std::make_shared<CodecContext>(
        CodecContext{segments_[0][1].text + "dictionary", ""});
    QUIRE_ASSERT_OK(WriteTestArchive(path_, options, segments_, context));
    files_ = ReadTestFiles(path_);
    parts_ = PartsOf(path_);
    documents_.clear();
    for (const TestSegment& segment : segments_) {
      documents_.insert(documents_.end(), segment.begin(), segment.end());
    }
  }

  // Writes one segment of documents of 100 bytes in such blocks.
  void WriteBlocks(const std::string& codec, const TestBlockSizes& sizes_bytes,
                   size_t text_size_bytes) {
    std::mt19937_64 random(11);
    std::filesystem::remove_all(path_);
    documents_.clear();
    while (text_size_bytes > 0) {
      TestDocument document = {.id = absl::StrCat("d", documents_.size())};
      document.text.resize(std::min<size_t>(text_size_bytes, 100));
      for (char& c : document.text) {
        c = static_cast<char>('a' + random() % 8);
      }
      text_size_bytes -= document.text.size();
      documents_.push_back(std::move(document));
    }
    segments_ = {documents_};
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec(codec).value();
    options.block_size_bytes = 4096;
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto encoder,
                               MakePayloadCodec(options.codec, nullptr,
                                                CodecUse::kEncodeAndDecode, 0));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path_, options, nullptr));
    QUIRE_ASSERT_OK(
        WriteTestSegment(documents_, sizes_bytes, encoder.get(), *writer));
    QUIRE_ASSERT_OK(writer->Commit());
    files_ = ReadTestFiles(path_);
    parts_ = PartsOf(path_);
  }

  const TestPart& Section(const std::string& file,
                          const std::string& name) const {
    for (const TestPart& section : parts_.at(file).sections) {
      if (section.name == name) {
        return section;
      }
    }
    ADD_FAILURE() << "no section " << name;
    return parts_.at(file).footer;
  }

  // Clears bytes of a file.
  void Clear(const std::string& file, uint64_t offset, uint64_t size_bytes) {
    files_.at(file).replace(offset, size_bytes, std::string(size_bytes, '\0'));
  }

  void Clear(const std::string& file, const TestPart& part) {
    Clear(file, part.offset, part.size_bytes);
  }

  Salvaged Run() {
    WriteTestFiles(path_, files_);
    return SalvageToMemory(path_);
  }

  // Runs and expects all documents.
  Salvaged RunWhole() {
    Salvaged salvaged = Run();
    QUIRE_EXPECT_OK(salvaged.report);
    EXPECT_EQ(salvaged.report.value_or(SalvageReport{}).lost_count, 0u);
    EXPECT_EQ(salvaged.output.saved().size(), documents_.size());
    for (const auto& [ordinal, saved] : salvaged.output.saved()) {
      SCOPED_TRACE(ordinal);
      ExpectSalvaged(saved, documents_[ordinal]);
    }
    return salvaged;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  std::vector<TestSegment> segments_;
  std::vector<TestDocument> documents_;
  TestFiles files_;
  std::map<std::string, TestSegmentParts> parts_;
};

constexpr char kFirst[] = "segment-00000000";

TEST_F(ArchiveSalvageTest, SavesAWholeArchive) {
  Write();
  const Salvaged salvaged = RunWhole();
  EXPECT_THAT(salvaged.damages, IsEmpty());
  const Document& document = salvaged.output.saved().at(3).document;
  EXPECT_EQ(document.capture_time_ms, documents_[3].capture_time_ms);
  EXPECT_EQ(document.media_type, documents_[3].media_type);
}

// Their zeros would become documents of the archive that is built of the tar.
TEST_F(ArchiveSalvageTest, SaysThatFieldsAreNotSaved) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                             ArchiveWriter::Create(path_, options, nullptr));
  QUIRE_ASSERT_OK(writer->SetFields({{"lang", FieldType::kString}}));
  QUIRE_ASSERT_OK(WriteTestSegment(
      {{.id = "a", .text = "A", .fields = {FieldValue(std::string("de"))}}},
      4096, nullptr, *writer));
  QUIRE_ASSERT_OK(writer->Commit().status());
  const Salvaged salvaged = SalvageToMemory(path_);
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_EQ(salvaged.report->saved_count, 1);
  EXPECT_EQ(salvaged.report->unsaved_fields_count, 1);
  EXPECT_THAT(salvaged.damages, ElementsAre(HasSubstr("(lang)")));
}

TEST_F(ArchiveSalvageTest, LeavesOutDocumentsThatWereRemoved) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  const TestDocument removed = {.id = "",
                                .text = std::string(5000, '\0'),
                                .record_type = kWithdrawnRecordType};
  // An input may have documents of that type.
  const TestDocument named = {
      .id = "named", .text = "other", .record_type = kWithdrawnRecordType};
  documents_ = {removed, {.id = "left", .text = "text"}, removed, named};
  QUIRE_ASSERT_OK(WriteTestArchive(path_, options, {documents_}));
  files_ = ReadTestFiles(path_);
  const Salvaged salvaged = Run();
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_EQ(salvaged.report->lost_count, 0u);
  ASSERT_THAT(salvaged.output.saved(), SizeIs(2));
  EXPECT_EQ(salvaged.output.saved().at(1).document.id, "left");
  EXPECT_EQ(salvaged.output.saved().at(1).text, "text");
  EXPECT_EQ(salvaged.output.saved().at(3).document.id, "named");
}

// Each structure alone can be lost without a document.
TEST_F(ArchiveSalvageTest, SavesAllDocumentsWithoutAnyOneStructure) {
  const std::map<std::string, std::function<void()>> damages = {
      {"MANIFEST", [&] { files_.erase("MANIFEST"); }},
      {"header", [&] { Clear(kFirst, 0, 48); }},
      {"footer", [&] { Clear(kFirst, parts_.at(kFirst).footer); }},
      {"end", [&] { files_.at(kFirst).resize(files_.at(kFirst).size() - 1); }},
      {"longer", [&] { files_.at(kFirst) += "more"; }},
      {"block index", [&] { Clear(kFirst, Section(kFirst, "block index")); }},
      {"block spans", [&] { Clear(kFirst, Section(kFirst, "block spans")); }},
      {"ids", [&] { Clear(kFirst, Section(kFirst, "document ids")); }},
      {"order", [&] { Clear(kFirst, Section(kFirst, "document order")); }},
      {"times", [&] { Clear(kFirst, Section(kFirst, "capture times")); }},
      {"types", [&] { Clear(kFirst, Section(kFirst, "media types")); }},
      {"MANIFEST and a header",
       [&] {
         files_.erase("MANIFEST");
         Clear(kFirst, 0, 48);
       }},
      {"MANIFEST and the end magic",
       [&] {
         files_.erase("MANIFEST");
         files_.at(kFirst).back() ^= 1;
       }},
      {"MANIFEST and block index",
       [&] {
         files_.erase("MANIFEST");
         Clear(kFirst, Section(kFirst, "block index"));
       }},
      {"MANIFEST and spans",
       [&] {
         files_.erase("MANIFEST");
         Clear(kFirst, Section(kFirst, "block spans"));
       }},
      {"header, footer and block index", [&] {
         Clear(kFirst, 0, 48);
         Clear(kFirst, parts_.at(kFirst).footer);
         Clear(kFirst, Section(kFirst, "block index"));
       }}};
  for (const auto& [name, damage] : damages) {
    SCOPED_TRACE(name);
    Write();
    damage();
    const Salvaged salvaged = RunWhole();
    EXPECT_THAT(salvaged.damages, ::testing::Not(IsEmpty()));
    for (const auto& [ordinal, saved] : salvaged.output.saved()) {
      EXPECT_EQ(saved.has_id,
                (name != "ids" && name != "order") || ordinal >= 30);
    }
  }
}

// The manifest proves the sections if only their table is lost.
TEST_F(ArchiveSalvageTest, ProvesTheSectionsOfALostTable) {
  Write();
  const TestPart footer = parts_.at(kFirst).footer;
  Clear(kFirst, footer.offset, 100);
  EXPECT_THAT(RunWhole().damages, SizeIs(1));
  // A bit in the counts of the trailer and one in a section: the table has the
  // checksum that the section should have, so the ids are known to be wrong.
  Write();
  const TestPart ids = Section(kFirst, "document ids");
  const auto flip = [&](uint64_t offset) { files_.at(kFirst)[offset] ^= 1; };
  flip(footer.offset + footer.size_bytes - 60);
  flip(ids.offset + ids.size_bytes - 1);
  const Salvaged salvaged = RunWhole();
  EXPECT_THAT(salvaged.damages, Contains(HasSubstr("document ids checksum")));
  EXPECT_EQ(salvaged.report->unproved_section_count, 0u);
  for (const auto& [ordinal, saved] : salvaged.output.saved()) {
    EXPECT_EQ(saved.has_id, ordinal >= 30);
  }
  // So they are if the checksum of another section is damaged.
  Write();
  flip(footer.offset + 39);
  flip(ids.offset + ids.size_bytes - 1);
  EXPECT_FALSE(RunWhole().output.saved().at(0).has_id);
}

TEST_F(ArchiveSalvageTest, SaysWhatNoChecksumProves) {
  Write();
  Clear(kFirst, parts_.at(kFirst).footer);
  const TestPart ids = Section(kFirst, "document ids");
  files_.at(kFirst)[ids.offset + ids.size_bytes - 1] ^= 1;
  const Salvaged salvaged = Run();
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_THAT(salvaged.damages,
              Contains(HasSubstr("document ids has no checksum that proves")));
  EXPECT_GT(salvaged.report->unproved_section_count, 0u);
}

// Joined and inflated text can have its short block first, or two spans of
// other sizes: without the spans only blocks that decode prove their sizes.
TEST_F(ArchiveSalvageTest, NeverGuessesTheSizesOfBlocks) {
  struct Case {
    TestBlockSizes sizes_bytes;
    size_t text_size_bytes;
    bool is_saved;
  };

  const std::vector<Case> cases = {
      {4096, 4 * 4096 + 500, true},
      {4096, 4 * 4096, true},
      {{500, 4096}, 4 * 4096 + 500, true},
      {{4096, 2500}, 4096 + 2 * 2500, false},
      {3000, 4 * 3000, true},
      {{500, 3000, 4096}, 500 + 3000 + 2 * 4096, false}};
  for (const std::string codec : {"copy", "zstd"}) {
    for (const bool has_manifest : {true, false}) {
      for (const bool has_index : {true, false}) {
        for (size_t i = 0; i < cases.size(); ++i) {
          SCOPED_TRACE(absl::StrCat(codec, has_manifest, has_index, i));
          WriteBlocks(codec, cases[i].sizes_bytes, cases[i].text_size_bytes);
          Clear(kFirst, Section(kFirst, "block spans"));
          if (!has_index) {
            Clear(kFirst, Section(kFirst, "block index"));
          }
          if (!has_manifest) {
            files_.erase("MANIFEST");
          }
          if (cases[i].is_saved) {
            RunWhole();
            continue;
          }
          const Salvaged salvaged = Run();
          QUIRE_ASSERT_OK(salvaged.report);
          EXPECT_EQ(salvaged.report->saved_count, 0u);
          EXPECT_EQ(salvaged.report->lost_count, documents_.size());
        }
      }
    }
  }
}

// Without the short block, or with two gaps and any number of spans, the text
// of other blocks has no certain place.
TEST_F(ArchiveSalvageTest, LosesASegmentWhoseBlocksProveNothing) {
  const auto saved = [&](const std::vector<size_t>& damaged,
                         bool has_manifest) {
    WriteBlocks("copy", {500, 4096}, 6 * 4096 + 500);
    Clear(kFirst, Section(kFirst, "block spans"));
    for (const size_t block : damaged) {
      Clear(kFirst, parts_.at(kFirst).blocks[block]);
    }
    if (!has_manifest) {
      files_.erase("MANIFEST");
    }
    const Salvaged salvaged = Run();
    for (const auto& [ordinal, document] : salvaged.output.saved()) {
      ExpectSalvaged(document, documents_[ordinal]);
    }
    return salvaged.report.value_or(SalvageReport{}).saved_count;
  };
  EXPECT_EQ(saved({0}, true), 0u);
  EXPECT_EQ(saved({0}, false), 0u);
  EXPECT_GT(saved({2, 4}, true), 0u);
  EXPECT_EQ(saved({2, 4}, false), 0u);
  EXPECT_GT(saved({2, 3}, false), 0u);
}

TEST_F(ArchiveSalvageTest, NamesTheBytesOfDamagedBlocks) {
  Write("copy");
  const uint64_t size_bytes = 4096;
  Clear(kFirst, parts_.at(kFirst).blocks[2]);
  Clear(kFirst, parts_.at(kFirst).blocks[3]);
  for (const bool has_index : {true, false}) {
    SCOPED_TRACE(has_index);
    if (!has_index) {
      Clear(kFirst, Section(kFirst, "block index"));
    }
    const Salvaged salvaged = Run();
    QUIRE_ASSERT_OK(salvaged.report);
    uint64_t start = 0;
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      SCOPED_TRACE(i);
      const uint64_t end = start + documents_[i].text.size();
      const uint64_t lost_start = std::max(start, 2 * size_bytes);
      const uint64_t lost_end = std::min(end, 4 * size_bytes);
      if (lost_start < lost_end) {
        ASSERT_TRUE(salvaged.lost.contains(i));
        const LostDocument& lost = salvaged.lost.at(i);
        EXPECT_EQ(lost.document.id, documents_[i].id);
        EXPECT_EQ(lost.document.range.offset.value, start);
        EXPECT_THAT(lost.lost,
                    ElementsAre(LogicalRange{{lost_start - start},
                                             lost_end - lost_start}));
        EXPECT_FALSE(lost.status.ok());
      } else {
        ASSERT_TRUE(salvaged.output.saved().contains(i));
        ExpectSalvaged(salvaged.output.saved().at(i), documents_[i]);
      }
      start = end;
    }
    EXPECT_EQ(salvaged.report->lost_count, salvaged.lost.size());
  }
}

// Without the block index, blocks past a hole are found by their checksums,
// however many are missing.
TEST_F(ArchiveSalvageTest, FindsBlocksPastAHoleOfAnySize) {
  for (const std::string codec : {"copy", "zstd"}) {
    for (const bool has_two : {false, true}) {
      SCOPED_TRACE(absl::StrCat(codec, has_two));
      WriteBlocks(codec, 100, 400 * 100);
      for (size_t i = 10; i < 300; ++i) {
        if (!has_two || i != 150) {
          Clear(kFirst, parts_.at(kFirst).blocks[i]);
        }
      }
      Clear(kFirst, Section(kFirst, "block index"));
      const Salvaged salvaged = Run();
      QUIRE_ASSERT_OK(salvaged.report);
      // A document is a block.
      EXPECT_EQ(salvaged.report->lost_count, has_two ? 289u : 290u);
      for (const auto& [ordinal, saved] : salvaged.output.saved()) {
        ExpectSalvaged(saved, documents_[ordinal]);
      }
    }
  }
}

TEST_F(ArchiveSalvageTest, SaysWhatAMissingSegmentOrDictionaryTakesAlong) {
  Write();
  files_.erase(kFirst);
  Salvaged salvaged = Run();
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_EQ(salvaged.report->lost_count, 30u);
  EXPECT_THAT(salvaged.damages,
              ElementsAre(HasSubstr("lost: 30 documents from number 0")));
  ASSERT_THAT(salvaged.output.saved(), SizeIs(10));
  ExpectSalvaged(salvaged.output.saved().at(35), documents_[35]);
  Write();
  std::string dictionary;
  for (const auto& [name, bytes] : files_) {
    if (absl::StartsWith(name, "dictionary-")) {
      dictionary = name;
    }
  }
  files_.erase(dictionary);
  salvaged = Run();
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_THAT(salvaged.damages, ElementsAre(HasSubstr(dictionary)));
  // Empty documents need no block.
  EXPECT_GT(salvaged.report->saved_count, 0u);
  EXPECT_GT(salvaged.report->lost_count, 0u);
  EXPECT_EQ(salvaged.report->saved_count + salvaged.report->lost_count, 40u);
}

TEST_F(ArchiveSalvageTest, CountsSegmentsThatAreLeftOut) {
  Write();
  files_.erase("MANIFEST");
  Clear(kFirst, parts_.at(kFirst).footer);
  // A segment of another archive.
  files_["segment-00000009"] = files_.at("segment-00000001");
  const Salvaged salvaged = Run();
  QUIRE_ASSERT_OK(salvaged.report);
  EXPECT_THAT(salvaged.output.saved(), SizeIs(10));
  EXPECT_EQ(salvaged.report->left_out_segment_count, 2u);
  EXPECT_EQ(salvaged.report->lost_count, 0u);
}

TEST_F(ArchiveSalvageTest, RefusesADirectoryOfNothing) {
  EXPECT_THAT(SalvageToMemory(path_).report,
              HasCode(absl::StatusCode::kNotFound));
  std::filesystem::create_directory(path_);
  EXPECT_THAT(SalvageToMemory(path_).report,
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("no segment")));
}

// Whatever is damaged: saved documents are right, and each other is lost.
TEST_F(ArchiveSalvageTest, NeverSavesWrongText) {
  std::mt19937 seeds(TestSeed());
  uint64_t saved_count = 0;
  uint64_t lost_count = 0;
  for (int round = 0; round < TestRounds(80, 200); ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::filesystem::remove_all(path_);
    const std::vector<TestDocument> documents =
        WriteRandomArchive(path_, random);
    files_ = ReadTestFiles(path_);
    const TestFiles good = files_;
    for (const auto& [name, bytes] : good) {
      if (random() % 3 == 0) {
        DamageFile(name, random, files_);
      }
    }
    const Salvaged salvaged = Run();
    if (!salvaged.report.ok()) {
      EXPECT_NE(files_, good);
      continue;
    }
    saved_count += salvaged.report->saved_count;
    lost_count += salvaged.report->lost_count;
    if (!salvaged.report->has_manifest ||
        !::testing::Value(
            salvaged.damages,
            ::testing::Each(::testing::Not(HasSubstr("has no checksum"))))) {
      continue;
    }
    EXPECT_EQ(salvaged.report->saved_count + salvaged.report->lost_count,
              documents.size());
    for (const auto& [ordinal, saved] : salvaged.output.saved()) {
      ExpectSalvaged(saved, documents[ordinal]);
    }
  }
  EXPECT_GT(saved_count, 0u);
  EXPECT_GT(lost_count, 0u);
}

// --- Files ---

absl::StatusOr<SalvageReport> SalvageToFiles(
    const std::string& path, SalvageOutput& output,
    std::map<std::string, std::string>& renamed) {
  return SalvageArchive(
      path, output,
      {.on_damage = [](const absl::Status&) {},
       .on_lost = [](const LostDocument&) {},
       .on_renamed =
           [&](const Document& document, const std::string& name) {
             renamed[name] = document.id;
           }});
}

TEST(SalvageOutputTest, NamesFilesByIdWhereThatIsPossible) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  QUIRE_ASSERT_OK(
      WriteTestArchive(path, options,
                       {{{.id = "d/a", .text = "1", .capture_time_ms = -1500},
                         {.id = "d/a", .text = "2"},
                         {.id = "d", .text = "3"},
                         {.id = "../up", .text = "4"},
                         {.id = "/root", .text = "5"},
                         {.id = "", .text = "6"},
                         {.id = std::string(300, 'n'), .text = "7"},
                         {.id = "%document-1", .text = "8"},
                         {.id = std::string("n\0l", 3), .text = "9"},
                         {.id = "d/a/below", .text = "10"}}}));
  std::map<std::string, std::string> renamed;
  const std::string saved = directory / "saved";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto output,
                             MakeSalvageDirectory(saved + "/"));
  EXPECT_FALSE(std::filesystem::exists(saved));
  QUIRE_ASSERT_OK(SalvageToFiles(path, *output, renamed));
  EXPECT_EQ(ReadTestFile(saved + "/d/a"), "1");
  EXPECT_EQ(ReadTestFile(saved + "/%document-1"), "2");
  EXPECT_EQ(ReadTestFile(saved + "/%document-2"), "3");
  EXPECT_EQ(ReadTestFile(saved + "/%2E./up"), "4");
  EXPECT_EQ(ReadTestFile(saved + "/%2Froot"), "5");
  EXPECT_EQ(ReadTestFile(saved + "/%"), "6");
  EXPECT_EQ(ReadTestFile(saved + "/%document-6"), "7");
  EXPECT_EQ(ReadTestFile(saved + "/%document-7"), "8");
  EXPECT_EQ(ReadTestFile(saved + "/n%00l"), "9");
  EXPECT_EQ(ReadTestFile(saved + "/%document-9"), "10");
  EXPECT_THAT(renamed, Contains(Pair("%document-1", "d/a")));
  EXPECT_THAT(renamed, SizeIs(9));
  struct stat status;
  ASSERT_EQ(stat((saved + "/d/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, -2);
  EXPECT_EQ(status.st_mtim.tv_nsec, 500'000'000);
  EXPECT_FALSE(std::filesystem::exists(saved + ".partial"));
  EXPECT_THAT(MakeSalvageDirectory(saved),
              FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr(saved)));
  EXPECT_THAT(MakeSalvageTar(saved),
              FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr(saved)));
}

TEST(SalvageOutputTest, ATarAppearsWhenItIsComplete) {
  const TemporaryDirectory directory;
  const std::string path = directory / "saved.tar";
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto output, MakeSalvageTar(path));
  Document document;
  document.id = "a";
  document.range.size_bytes = 5;
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string name,
                             output->Begin(document, true));
  EXPECT_EQ(name, "a");
  QUIRE_ASSERT_OK(output->Write(AsBytes("hello")));
  QUIRE_ASSERT_OK(output->End());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(path + ".partial/SALVAGED"));
  QUIRE_ASSERT_OK(output->Finish());
  const std::string tar = ReadTestFile(path);
  // A header, a padded member and two blocks of zeros.
  EXPECT_EQ(tar.size(), 4u * 512);
  EXPECT_EQ(tar.substr(512, 6), std::string("hello\0", 6));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

// Clears bytes of a file once a document begins.
class DamagingOutput final : public SalvageOutput {
 public:
  DamagingOutput(std::unique_ptr<SalvageOutput> output, std::string id,
                 std::string path, uint64_t offset)
      : output_(std::move(output)),
        id_(std::move(id)),
        path_(std::move(path)),
        offset_(offset) {}

  absl::StatusOr<std::string> Begin(const Document& document,
                                    bool has_id) override {
    if (document.id == id_) {
      std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(offset_));
      file << std::string(1000, '\0');
      EXPECT_TRUE(file.good());
    }
    return output_->Begin(document, has_id);
  }

  absl::Status Write(ByteView bytes) override { return output_->Write(bytes); }

  absl::Status End() override { return output_->End(); }

  absl::Status Drop() override { return output_->Drop(); }

  absl::Status Finish() override { return output_->Finish(); }

 private:
  const std::unique_ptr<SalvageOutput> output_;
  const std::string id_;
  const std::string path_;
  const uint64_t offset_;
};

TEST(SalvageOutputTest, DropsADocumentThatCannotBeReadTwice) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 1 << 20;
  const std::string small = std::string(1000, 's');
  QUIRE_ASSERT_OK(
      WriteTestArchive(path, options,
                       {{{.id = "before", .text = small},
                         {.id = "d/large", .text = std::string(20 << 20, 'l')},
                         {.id = "after", .text = small}}}));
  const TestFiles files = ReadTestFiles(path);
  // Damaged at its start, or after more than the buffer of a tar.
  for (const uint64_t offset : {uint64_t{1} << 19, uint64_t{7} << 19}) {
    for (const bool is_tar : {false, true}) {
      SCOPED_TRACE(absl::StrCat(offset, is_tar ? " tar" : ""));
      WriteTestFiles(path, files);
      const std::string saved =
          directory / absl::StrCat("saved", offset, is_tar ? ".tar" : "");
      QUIRE_ASSERT_OK_AND_ASSIGN(
          std::unique_ptr<SalvageOutput> files_output,
          is_tar ? MakeSalvageTar(saved) : MakeSalvageDirectory(saved));
      DamagingOutput output(std::move(files_output), "d/large",
                            path + "/" + kFirst, offset);
      std::vector<LostDocument> lost;
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const SalvageReport report,
          SalvageArchive(
              path, output,
              {.on_damage = [](const absl::Status&) {},
               .on_lost = [&](const LostDocument& one) { lost.push_back(one); },
               .on_renamed = [](const Document&, const std::string&) {}}));
      EXPECT_EQ(report.saved_count, 2u);
      EXPECT_EQ(report.saved_size_bytes, 2 * small.size());
      EXPECT_EQ(report.lost_count, 1u);
      ASSERT_THAT(lost, SizeIs(1));
      EXPECT_EQ(lost[0].document.id, "d/large");
      ASSERT_THAT(lost[0].lost, SizeIs(1));
      EXPECT_LE(lost[0].lost[0].size_bytes, options.block_size_bytes);
      if (is_tar) {
        const std::string tar = ReadTestFile(saved);
        // Twice a header and a member of two blocks; two blocks of zeros.
        ASSERT_EQ(tar.size(), 8u * 512);
        EXPECT_EQ(tar.substr(512, small.size()), small);
        EXPECT_EQ(tar.substr(4 * 512, small.size()), small);
      } else {
        EXPECT_EQ(ReadTestFile(saved + "/before"), small);
        EXPECT_EQ(ReadTestFile(saved + "/after"), small);
        EXPECT_FALSE(std::filesystem::exists(saved + "/d/large"));
      }
    }
  }
}

// Files that killed or failed salvages leave.
TEST(SalvageOutputTest, TheNextRunReplacesAnInterruptedOne) {
  const TemporaryDirectory directory;
  const std::string path = directory / "saved";
  const std::string partial = path + ".partial/SALVAGED";
  Document document;
  document.id = "d/a";
  document.range.size_bytes = 5;
  const std::array makers = {&MakeSalvageTar, &MakeSalvageDirectory};
  const auto begin = [&](size_t maker) {
    auto output = (*makers[maker])(path);
    if (output.ok()) {
      QUIRE_EXPECT_OK((*output)->Begin(document, true));
      QUIRE_EXPECT_OK((*output)->Write(AsBytes("hello")));
      QUIRE_EXPECT_OK((*output)->End());
    }
    return output;
  };
  for (const size_t first : {0U, 1U}) {
    for (const size_t next : {0U, 1U}) {
      {
        QUIRE_ASSERT_OK_AND_ASSIGN(const auto output, begin(first));
        EXPECT_THAT((*makers[next])(path),
                    FailsWith(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("another writer")));
      }
      // It failed: what it had saved stays.
      EXPECT_TRUE(
          std::filesystem::exists(first == 0 ? partial : partial + "/d/a"));
      document.id = "e";
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto output, begin(next));
      QUIRE_ASSERT_OK(output->Finish());
      document.id = "d/a";
      EXPECT_TRUE(next == 0 ? std::filesystem::is_regular_file(path)
                            : std::filesystem::exists(path + "/e"));
      EXPECT_FALSE(std::filesystem::exists(path + "/d"));
      EXPECT_THAT((*makers[next])(path),
                  FailsWith(absl::StatusCode::kAlreadyExists,
                            HasSubstr("choose another output")));
      std::filesystem::remove_all(path);
    }
  }
  // Without documents nothing stays.
  QUIRE_EXPECT_OK(MakeSalvageTar(path));
  QUIRE_EXPECT_OK(MakeSalvageDirectory(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(SalvageOutputTest, LeavesOtherPartialDirectoriesAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory / "saved";
  const std::string partial = path + ".partial";
  // A build that can be resumed, and the directory of a user.
  std::filesystem::create_directory(partial);
  for (const char* const name : {"PARTIAL", "JOURNAL"}) {
    std::ofstream(absl::StrCat(partial, "/", name)).flush();
  }
  EXPECT_THAT(MakeSalvageDirectory(path),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("holds an unfinished archive")));
  EXPECT_TRUE(std::filesystem::exists(partial + "/JOURNAL"));
  std::filesystem::remove_all(partial);
  std::filesystem::create_directory(partial);
  std::ofstream(partial + "/notes").flush();
  EXPECT_THAT(MakeSalvageTar(path), FailsWith(absl::StatusCode::kAlreadyExists,
                                              HasSubstr("\"notes\"")));
  EXPECT_TRUE(std::filesystem::exists(partial + "/notes"));
}

}  // namespace
}  // namespace quire
