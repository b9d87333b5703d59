// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fields in archives: written, joined, opened past damage, verified, repaired.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_join.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/field_reader.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/repair/archive_repair.h"
#include "server/archive/segment_container.h"
#include "server/archive/segment_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kFieldsBlockSizeBytes = 4096;

const FieldColumn kLang = {"lang", FieldType::kString};
const FieldColumn kCount = {"count", FieldType::kInteger};

FieldValue Text(const std::string& text) {
  return text;
}

FieldValue Number(int64_t number) {
  return number;
}

class ArchiveFieldsTest : public ::testing::Test {
 protected:
  absl::Status Write(const std::string& path) {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = kFieldsBlockSizeBytes;
    QUIRE_ASSIGN_OR_RETURN(const auto writer,
                           ArchiveWriter::Create(path, options, nullptr));
    QUIRE_RETURN_IF_ERROR(writer->SetFields({kLang, kCount}));
    QUIRE_RETURN_IF_ERROR(AddSegment(
        {{.id = "a", .text = "A", .fields = {Text("de"), Number(1)}},
         {.id = "b", .text = "B", .fields = {FieldValue(), Number(-2)}},
         {.id = "c", .text = "C"}},
        *writer));
    return writer->Commit().status();
  }

  static absl::Status AddSegment(const TestSegment& segment,
                                 ArchiveWriter& writer) {
    return WriteTestSegment(segment, kFieldsBlockSizeBytes, nullptr, writer);
  }

  // Appends a segment with these fields, and joins all segments.
  absl::Status Append(const std::vector<FieldColumn>& columns,
                      const TestSegment& segment, bool joins) {
    QUIRE_ASSIGN_OR_RETURN(ArchiveChange change, ArchiveChange::Begin(path_));
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    QUIRE_RETURN_IF_ERROR(writer->SetFields(columns));
    QUIRE_RETURN_IF_ERROR(AddSegment(segment, *writer));
    if (joins) {
      const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(),
                                          nullptr, CodecUse::kEncodeAndDecode);
      QUIRE_RETURN_IF_ERROR(
          writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr).status());
    }
    return writer->Commit().status();
  }

  static std::vector<absl::Status> DamagesOf(const std::string& path) {
    std::vector<absl::Status> damages;
    QUIRE_EXPECT_OK(VerifyArchive(path, {}, [&](const ArchiveDamage& damage) {
                      damages.push_back(damage.status);
                    }).status());
    return damages;
  }

  // Extent of a section of the only segment.
  static Extent SectionOf(const std::string& path, SectionType type) {
    const auto directory = OpenKnownArchive(path).value();
    const ManifestSegment& segment = directory.manifest.segments.at(0);
    uint64_t offset = segment.file_size_bytes - kTrailerSizeBytes -
                      segment.sections.size() * kSectionEntrySizeBytes;
    for (auto section = segment.sections.rbegin();; ++section) {
      offset -= section->stored_size_bytes;
      if (section->type == static_cast<uint32_t>(type)) {
        return {
            .offset = {offset},
            .size_bytes = static_cast<uint32_t>(section->stored_size_bytes)};
      }
    }
  }

  static void Damage(const std::string& path, SectionType type) {
    const Extent extent = SectionOf(path, type);
    const std::string file = absl::StrCat(path, "/segment-00000000");
    std::string bytes = ReadTestFile(file);
    bytes[extent.offset.value] =
        static_cast<char>(bytes[extent.offset.value] ^ 1);
    WriteTestFile(file, bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
  const std::string copy_ = directory_ / "copy";
};

TEST_F(ArchiveFieldsTest, ReadsWhatWasWritten) {
  QUIRE_ASSERT_OK(Write(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_THAT(archive->fields(), ElementsAre(kLang, kCount));
  EXPECT_THAT(ReadTestFields(*archive),
              ElementsAre("lang=\"de\" count=1", "lang=null count=-2",
                          "lang=null count=null"));
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
  EXPECT_LE(archive->memory().total_bytes(), archive->memory_bytes_max());
}

TEST_F(ArchiveFieldsTest, SegmentsHaveTheirOwnFields) {
  QUIRE_ASSERT_OK(Write(path_));
  const FieldColumn when = {"when", FieldType::kTime};
  QUIRE_ASSERT_OK(
      Append({when, kLang},
             {{.id = "d", .text = "D", .fields = {FieldTime{0}, Text("fr")}}},
             /*joins=*/false));
  const std::vector<std::string> expected = {
      "lang=\"de\" count=1 when=null", "lang=null count=-2 when=null",
      "lang=null count=null when=null",
      "lang=\"fr\" count=null when=1970-01-01T00:00:00Z"};
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    EXPECT_EQ(archive->info().segment_count, 2);
    EXPECT_EQ(ReadTestFields(*archive), expected);
    DocumentFieldReader reader(*archive, {2}, BlockingPartLoader(*archive));
    FieldGroup group;
    QUIRE_ASSERT_OK(reader.ReadGroup({3}, group).status());
    EXPECT_EQ(group.first_ordinal, 3);
    EXPECT_EQ(group.end_ordinal, 4);
    EXPECT_EQ(group.ranges[0].least, FieldView(FieldTime{0}));
    QUIRE_ASSERT_OK(reader.ReadGroup({1}, group).status());
    EXPECT_EQ(group.end_ordinal, 3);
    EXPECT_FALSE(group.ranges[0].may_have_values);
  }
  // A segment without fields, and all segments joined.
  QUIRE_ASSERT_OK(Append({}, {{.id = "e", .text = "E"}}, /*joins=*/true));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(archive->info().segment_count, 1);
  std::vector<std::string> joined = expected;
  joined.emplace_back("lang=null count=null when=null");
  EXPECT_EQ(ReadTestFields(*archive), joined);
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
}

// No writer makes it; a reader must not mix the values.
TEST_F(ArchiveFieldsTest, RefusesAFieldOfTwoTypes) {
  QUIRE_ASSERT_OK(Write(path_));
  QUIRE_ASSERT_OK(Append({{"lang", FieldType::kInteger}},
                         {{.id = "d", .text = "D", .fields = {Number(4)}}},
                         /*joins=*/false));
  EXPECT_THAT(Archive::Open(path_).status().message(), HasSubstr("lang"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto archive,
      Archive::Open(path_, {.without_damaged_indexes = true}));
  EXPECT_THAT(archive->index_damages(), SizeIs(1));
  EXPECT_EQ(ReadTestFields(*archive)[3], "lang=null count=null");
}

TEST_F(ArchiveFieldsTest, JoinsFieldsByName) {
  QUIRE_ASSERT_OK(Write(path_));
  const auto write_part = [&](const FieldColumn& column, FieldValue value) {
    fs::remove_all(copy_);
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveDirectory from, OpenKnownArchive(path_));
    from.manifest = from.manifest.WithoutDocuments();
    QUIRE_ASSERT_OK_AND_ASSIGN(
        ArchiveChange change,
        ArchiveChange::BeginCopy(from, copy_, /*replace=*/true, nullptr));
    const auto writer = ArchiveWriter::Append(std::move(change), "test");
    QUIRE_ASSERT_OK(writer->SetFields({column}));
    QUIRE_ASSERT_OK(AddSegment(
        {{.id = "d", .text = "D", .fields = {std::move(value)}}}, *writer));
    QUIRE_ASSERT_OK(writer->Commit().status());
  };
  write_part({"good", FieldType::kBoolean}, FieldValue(true));
  const std::vector<std::string> parts = {path_, copy_};
  const std::string joined = directory_ / "joined";
  QUIRE_ASSERT_OK(JoinArchives(joined, parts, false, nullptr).status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(joined));
  EXPECT_THAT(ReadTestFields(*archive),
              ElementsAre("lang=\"de\" count=1 good=null",
                          "lang=null count=-2 good=null",
                          "lang=null count=null good=null",
                          "lang=null count=null good=true"));
  write_part({"count", FieldType::kFloat}, FieldValue(1.5));
  EXPECT_THAT(JoinArchives(directory_ / "other", parts, false, nullptr)
                  .status()
                  .message(),
              AllOf(HasSubstr("count"), HasSubstr("integer"),
                    HasSubstr("float"), HasSubstr(path_), HasSubstr(copy_)));
  EXPECT_FALSE(fs::exists(directory_ / "other"));
}

TEST_F(ArchiveFieldsTest, DamagedValuesLeaveTheTextReadable) {
  QUIRE_ASSERT_OK(Write(path_));
  fs::copy(path_, copy_);
  Damage(path_, SectionType::kContainerData);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(ReadTestRange(*archive, {{0}, 3}).value(), "ABC");
  DocumentFieldReader reader(*archive, {0}, BlockingPartLoader(*archive));
  std::vector<FieldView> values;
  EXPECT_THAT(reader.Read({0}, values).status(),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DamagesOf(path_), SizeIs(1));
  std::vector<absl::Status> damages;
  QUIRE_ASSERT_OK(archive->CheckIndexes(
      [](int, uint64_t, uint64_t) { return absl::OkStatus(); }, damages));
  EXPECT_THAT(damages, IsEmpty());
  EXPECT_THAT(archive->ReaderOf(0).CheckContainer(),
              HasCode(absl::StatusCode::kDataLoss));
  // A copy repairs it.
  QUIRE_ASSERT_OK(
      RepairArchive(path_, std::vector<std::string>{copy_}, {}).status());
  EXPECT_THAT(DamagesOf(path_), IsEmpty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto repaired, Archive::Open(path_));
  EXPECT_EQ(ReadTestFields(*repaired)[0], "lang=\"de\" count=1");
}

TEST_F(ArchiveFieldsTest, OpensWithoutADamagedDirectory) {
  QUIRE_ASSERT_OK(Write(path_));
  Damage(path_, SectionType::kContainerDirectory);
  EXPECT_THAT(Archive::Open(path_), HasCode(absl::StatusCode::kDataLoss));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto archive,
      Archive::Open(path_, {.without_damaged_indexes = true}));
  EXPECT_THAT(archive->fields(), IsEmpty());
  EXPECT_THAT(archive->index_damages(), SizeIs(1));
  EXPECT_THAT(DamagesOf(path_), SizeIs(1));
}

// The values are not read at the opening, and do not count in its memory.
TEST_F(ArchiveFieldsTest, OpeningTakesNoMemoryForValues) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = kFieldsBlockSizeBytes;
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                             ArchiveWriter::Create(path_, options, nullptr));
  QUIRE_ASSERT_OK(writer->SetFields({kLang}));
  TestSegment segment;
  for (uint64_t i = 0; i < 100; ++i) {
    std::string noise;
    for (uint64_t j = 0; j < 2000; ++j) {
      noise += absl::StrCat(i * 7919 + j * j * 104729);
    }
    segment.push_back({.id = absl::StrCat(i), .fields = {Text(noise)}});
  }
  QUIRE_ASSERT_OK(AddSegment(segment, *writer));
  QUIRE_ASSERT_OK(writer->Commit().status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                             Archive::ReadOutline(path_));
  EXPECT_GT(SectionOf(path_, SectionType::kContainerData).size_bytes, 300'000);
  EXPECT_LT(outline.memory_bytes, 90'000);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_LT(archive->memory().total_bytes(), 20'000);
}

TEST_F(ArchiveFieldsTest, SkipsUnknownPartsOfContainers) {
  const std::string section = std::string("\x01\x05\x02xy", 5);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const SegmentContainer container,
      SegmentContainer::Parse(AsBytes(section), 1, 0, 0));
  EXPECT_TRUE(container.has_unknown_parts);
  EXPECT_THAT(container.fields.columns(), IsEmpty());
}

}  // namespace
}  // namespace quire
