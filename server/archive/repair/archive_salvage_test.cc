// SPDX-License-Identifier: GPL-3.0-or-later
//
// Salvages damaged archives and compares the result with their documents.
#include "server/archive/repair/archive_salvage.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/filter/field_value.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
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
using ::testing::SizeIs;

// Documents by ordinal.
class MemoryOutput final : public SalvageOutput {
 public:
  struct Saved {
    Document document;
    bool has_id = true;
    std::string text;
  };

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> /*fields*/) override {
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

  absl::Status Finish(uint64_t /*lost_count*/) override {
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

// Their zeros would become documents of the archive that is built of the
// output.
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

}  // namespace
}  // namespace quire
