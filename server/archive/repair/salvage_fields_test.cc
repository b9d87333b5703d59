// SPDX-License-Identifier: GPL-3.0-or-later
//
// Salvages archives whose documents have fields, some of them damaged.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/repair/archive_salvage.h"
#include "server/archive/repair/salvage_output.h"
#include "server/archive/segment_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const FieldColumn kLangColumn = {"lang", FieldType::kString};
const FieldColumn kScoreColumn = {"score", FieldType::kInteger};
const FieldColumn kSeenColumn = {"seen", FieldType::kTime};

constexpr char kFirstSegment[] = "segment-00000000";
constexpr uint64_t kGroupedDocuments = kFieldGroupSizeMax + 10;

// Flips a bit of the first byte of a part of the only segment's fields.
void DamagePart(const Archive& archive, const ContainerPart& part,
                TestFiles& files) {
  files.at(kFirstSegment)[archive.ReaderOf(0).PartExtent(part).offset.value] ^=
      1;
}

class SalvageFieldsTest : public ::testing::Test {
 protected:
  struct Segment {
    std::vector<FieldColumn> columns;
    TestSegment documents;
  };

  void Write(const std::vector<Segment>& segments) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = 4096;
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path_, options, nullptr));
    for (const Segment& segment : segments) {
      QUIRE_ASSERT_OK(writer->SetFields(segment.columns));
      QUIRE_ASSERT_OK(
          WriteTestSegment(segment.documents, 4096, nullptr, *writer));
    }
    QUIRE_ASSERT_OK(writer->Commit().status());
    files_ = ReadTestFiles(path_);
  }

  // A segment of two groups, whose documents have two fields.
  void WriteGroups() {
    Segment segment = {.columns = {kLangColumn, kScoreColumn}, .documents = {}};
    for (uint64_t i = 0; i < kGroupedDocuments; ++i) {
      segment.documents.push_back(
          {.id = absl::StrCat("d", i),
           .text = "x",
           .fields = {FieldValue(std::string(i % 2 == 0 ? "de" : "fr")),
                      FieldValue(static_cast<int64_t>(i))}});
    }
    Write({segment});
  }

  // Salvages the files to an archive and opens it.
  std::shared_ptr<const Archive> Run() {
    WriteTestFiles(path_, files_);
    const auto output = MakeSalvageArchive(saved_);
    QUIRE_EXPECT_OK(output);
    report_ = SalvageArchive(
        path_, **output,
        {.on_damage =
             [this](const absl::Status& status) {
               damages_.emplace_back(status.message());
             },
         .on_lost = [](const LostDocument&) {},
         .on_renamed = [](const Document&, const std::string&) {}});
    QUIRE_EXPECT_OK(report_);
    QUIRE_EXPECT_OK(VerifyArchive(saved_, {}, [](const ArchiveDamage& damage) {
                      ADD_FAILURE() << damage.status;
                    }).status());
    auto archive = Archive::Open(saved_);
    QUIRE_EXPECT_OK(archive);
    return archive.value_or(nullptr);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  const std::string saved_ = directory_ / "saved.quire";
  TestFiles files_;
  absl::StatusOr<SalvageReport> report_ = absl::UnknownError("not run");
  std::vector<std::string> damages_;
};

TEST_F(SalvageFieldsTest, AnArchiveKeepsFieldsAndAttributes) {
  Write({{.columns = {kLangColumn, kScoreColumn},
          .documents = {{.id = "a",
                         .text = "A",
                         .capture_time_ms = -5,
                         .record_type = "response",
                         .media_type = "text/plain",
                         .fields = {FieldValue(std::string("de")),
                                    FieldValue(int64_t{-1})}},
                        {.id = "b", .text = "B"}}},
         {.columns = {},
          .documents = {{.id = std::string("\0\xFF", 2), .text = ""}}},
         {.columns = {kSeenColumn, kLangColumn},
          .documents = {
              {.id = "a",
               .text = "again",
               .fields = {FieldTime{7}, FieldValue(std::string("fr"))}}}}});
  const std::vector<std::string> before =
      ReadTestFields(*Archive::Open(path_).value());
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_THAT(damages_, IsEmpty());
  EXPECT_EQ(report_->lost_field_value_count, 0u);
  EXPECT_EQ(report_->unsaved_fields_count, 0u);
  EXPECT_THAT(before, Contains(HasSubstr("lang=\"de\" score=-1")));
  EXPECT_EQ(ReadTestFields(*archive), before);
  EXPECT_EQ(archive->info().segment_count, 3u);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Document first, archive->GetDocument({0}));
  EXPECT_EQ(first.id, "a");
  EXPECT_EQ(first.capture_time_ms, -5);
  EXPECT_EQ(first.record_type, "response");
  EXPECT_EQ(first.media_type, "text/plain");
  QUIRE_ASSERT_OK_AND_ASSIGN(const Document odd, archive->GetDocument({2}));
  EXPECT_EQ(odd.id, std::string("\0\xFF", 2));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                             ReadTestRange(*archive, {{0}, 7}));
  EXPECT_EQ(text, "ABagain");
}

// The first group of one field is null, and all else stays.
TEST_F(SalvageFieldsTest, ADamagedPartLosesTheValuesOfItsGroup) {
  WriteGroups();
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const SegmentFields& fields = archive->ReaderOf(0).fields();
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const PartBytes page,
        archive->ReaderOf(0).ReadPart(fields.pages()[0].part));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const FieldPage parsed,
        FieldPage::Parse(page.bytes, fields.columns(), 0, fields.pages()[0].end,
                         fields.data_size_bytes()));
    ASSERT_EQ(parsed.groups().size(), 2u);
    DamagePart(*archive, *parsed.groups()[0].blocks[1].part, files_);
  }
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(report_->saved_count, kGroupedDocuments);
  EXPECT_EQ(report_->lost_count, 0u);
  EXPECT_EQ(report_->lost_field_value_count, kFieldGroupSizeMax);
  EXPECT_EQ(report_->unsaved_fields_count, 0u);
  EXPECT_THAT(damages_,
              ElementsAre(AllOf(
                  HasSubstr("field \"score\" of documents 0 to 4095 cannot be "
                            "read, and is saved as null"),
                  HasSubstr("checksum"))));
  const std::vector<std::string> fields = ReadTestFields(*archive);
  EXPECT_EQ(fields[0], "lang=\"de\" score=null");
  EXPECT_EQ(fields[4095], "lang=\"fr\" score=null");
  EXPECT_EQ(fields[4096], "lang=\"de\" score=4096");
}

TEST_F(SalvageFieldsTest, ADamagedPageLosesAllValuesOfItsDocuments) {
  WriteGroups();
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    DamagePart(*archive, archive->ReaderOf(0).fields().pages()[0].part, files_);
  }
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(report_->saved_count, kGroupedDocuments);
  EXPECT_EQ(report_->lost_field_value_count, 2 * kGroupedDocuments);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr(absl::StrCat(
                            "all fields of documents 0 to ",
                            kGroupedDocuments - 1, " cannot be read"))));
  EXPECT_EQ(ReadTestFields(*archive)[4100], "lang=null score=null");
}

// The first block is lost with its documents; the others keep their values.
TEST_F(SalvageFieldsTest, ValuesStayWithTheirDocuments) {
  Segment segment = {.columns = {kScoreColumn}, .documents = {}};
  for (int64_t i = 0; i < 10; ++i) {
    segment.documents.push_back({.id = absl::StrCat("d", i),
                                 .text = std::string(1000, 'x'),
                                 .fields = {FieldValue(i)}});
  }
  Write({segment});
  files_.at(kFirstSegment)[100] ^= 1;
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(report_->lost_count, 5u);
  EXPECT_EQ(report_->lost_field_value_count, 0u);
  EXPECT_EQ(archive->info().unread_input_count, 5u);
  EXPECT_THAT(
      ReadTestFields(*archive),
      ElementsAre("score=5", "score=6", "score=7", "score=8", "score=9"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const Document first, archive->GetDocument({0}));
  EXPECT_EQ(first.id, "d5");
}

TEST_F(SalvageFieldsTest, NamesFieldsWhoseDescriptionIsDamaged) {
  WriteGroups();
  const auto parts = PartsOf(path_);
  for (const TestPart& part : parts.at(kFirstSegment).sections) {
    if (part.name == "container directory") {
      files_.at(kFirstSegment)[part.offset + part.size_bytes - 1] ^= 1;
    }
  }
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(report_->saved_count, kGroupedDocuments);
  EXPECT_EQ(report_->unsaved_fields_count, 1u);
  EXPECT_THAT(damages_, Contains(HasSubstr("container directory")));
  EXPECT_THAT(damages_, Contains(HasSubstr("their description is damaged")));
  EXPECT_THAT(archive->fields(), IsEmpty());
}

// No archive with both opens.
TEST_F(SalvageFieldsTest, LeavesOutFieldsThatContradictEarlierOnes) {
  const FieldColumn other = {"lang", FieldType::kInteger};
  Write({{.columns = {kLangColumn},
          .documents = {{.id = "a",
                         .text = "A",
                         .fields = {FieldValue(std::string("de"))}}}},
         {.columns = {other, kScoreColumn},
          .documents = {
              {.id = "b",
               .text = "B",
               .fields = {FieldValue(int64_t{1}), FieldValue(int64_t{2})}}}}});
  const auto archive = Run();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(report_->saved_count, 2u);
  EXPECT_EQ(report_->unsaved_fields_count, 1u);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr(
                            "field \"lang\" has another type than in other "
                            "segments: integer, and string before")));
  EXPECT_THAT(ReadTestFields(*archive),
              ElementsAre("lang=\"de\" score=null", "lang=null score=2"));
}

TEST_F(SalvageFieldsTest, OtherOutputsNameFieldsThatTheyDrop) {
  Write({{.columns = {kLangColumn, kScoreColumn},
          .documents = {{.id = "a", .text = "A"}}}});
  for (const bool is_tar : {false, true}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto output, is_tar ? MakeSalvageTar(directory_ / "saved.tar")
                                  : MakeSalvageDirectory(directory_ / "saved"));
    std::vector<std::string> damages;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const SalvageReport report,
        SalvageArchive(
            path_, *output,
            {.on_damage =
                 [&](const absl::Status& status) {
                   damages.emplace_back(status.message());
                 },
             .on_lost = [](const LostDocument&) {},
             .on_renamed = [](const Document&, const std::string&) {}}));
    EXPECT_EQ(report.saved_count, 1u);
    EXPECT_EQ(report.unsaved_fields_count, 1u);
    EXPECT_THAT(damages, ElementsAre(HasSubstr("(lang, score) are not saved")));
  }
}

}  // namespace
}  // namespace quire
