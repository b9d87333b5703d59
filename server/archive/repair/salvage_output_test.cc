// SPDX-License-Identifier: GPL-3.0-or-later
//
// The files and archives that salvaged documents are written to.
#include "server/archive/repair/salvage_output.h"

#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/base/bytes.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/repair/archive_salvage.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

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
                             output->Begin(document, true, {}));
  EXPECT_EQ(name, "a");
  QUIRE_ASSERT_OK(output->Write(AsBytes("hello")));
  QUIRE_ASSERT_OK(output->End());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(path + ".partial/SALVAGED"));
  QUIRE_ASSERT_OK(output->Finish(0));
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

  bool keeps_fields() const override { return output_->keeps_fields(); }

  absl::Status BeginSegment(absl::Span<const FieldColumn> fields) override {
    return output_->BeginSegment(fields);
  }

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> fields) override {
    if (document.id == id_) {
      std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(offset_));
      file << std::string(1000, '\0');
      EXPECT_TRUE(file.good());
    }
    return output_->Begin(document, has_id, fields);
  }

  absl::Status Write(ByteView bytes) override { return output_->Write(bytes); }

  absl::Status End() override { return output_->End(); }

  absl::Status Drop() override { return output_->Drop(); }

  absl::Status Finish(uint64_t lost_count) override {
    return output_->Finish(lost_count);
  }

 private:
  const std::unique_ptr<SalvageOutput> output_;
  const std::string id_;
  const std::string path_;
  const uint64_t offset_;
};

// Expects an undamaged archive of these ids and texts.
void ExpectArchive(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& documents,
    uint64_t lost_count) {
  QUIRE_EXPECT_OK(VerifyArchive(path, {}, [](const ArchiveDamage& damage) {
                    ADD_FAILURE() << damage.status;
                  }).status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  EXPECT_EQ(archive->info().unread_input_count, lost_count);
  ASSERT_EQ(archive->info().document_count, documents.size());
  for (uint64_t i = 0; i < documents.size(); ++i) {
    SCOPED_TRACE(i);
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document document,
                               archive->GetDocument({i}));
    EXPECT_EQ(document.id, documents[i].first);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                               ReadTestRange(*archive, document.range));
    EXPECT_TRUE(text == documents[i].second);
  }
}

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
    for (const std::string extension : {"", ".tar", ".quire"}) {
      SCOPED_TRACE(absl::StrCat(offset, extension));
      WriteTestFiles(path, files);
      const std::string saved =
          directory / absl::StrCat("saved", offset, extension);
      QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<SalvageOutput> files_output,
                                 extension.empty() ? MakeSalvageDirectory(saved)
                                 : extension == ".tar"
                                     ? MakeSalvageTar(saved)
                                     : MakeSalvageArchive(saved));
      DamagingOutput output(std::move(files_output), "d/large",
                            path + "/segment-00000000", offset);
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
      if (extension == ".tar") {
        const std::string tar = ReadTestFile(saved);
        // Twice a header and a member of two blocks; two blocks of zeros.
        ASSERT_EQ(tar.size(), 8u * 512);
        EXPECT_EQ(tar.substr(512, small.size()), small);
        EXPECT_EQ(tar.substr(4 * 512, small.size()), small);
      } else if (extension.empty()) {
        EXPECT_EQ(ReadTestFile(saved + "/before"), small);
        EXPECT_EQ(ReadTestFile(saved + "/after"), small);
        EXPECT_FALSE(std::filesystem::exists(saved + "/d/large"));
      } else {
        ExpectArchive(saved, {{"before", small}, {"after", small}}, 1);
      }
    }
  }
}

TEST(SalvageOutputTest, AnArchiveHasDocumentsOfAllSizes) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("zstd").value();
  options.block_size_bytes = 1 << 20;
  std::mt19937_64 random(3);
  std::string large = RandomTestSegment(1, 3000, random)[0].text + "large";
  while (large.size() < (17U << 20)) {
    large += large.substr(random() % 3);
  }
  const std::vector<std::pair<std::string, std::string>> documents = {
      {"", ""},          {"a", "A"},
      {"large", large},  {"a", std::string(70'000, 'a')},
      {"larger", large}, {"last", "l"}};
  TestSegment segment;
  for (const auto& [id, text] : documents) {
    segment.push_back({.id = id, .text = text});
  }
  QUIRE_ASSERT_OK(WriteTestArchive(path, options, {segment}));
  std::map<std::string, std::string> renamed;
  const std::string saved = directory / "saved.quire";
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto output, MakeSalvageArchive(saved));
    QUIRE_ASSERT_OK(SalvageToFiles(path, *output, renamed));
  }
  EXPECT_THAT(renamed, SizeIs(0));
  ExpectArchive(saved, documents, 0);
  EXPECT_THAT(MakeSalvageArchive(saved),
              FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr(saved)));
  EXPECT_FALSE(std::filesystem::exists(saved + ".partial"));
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
      QUIRE_EXPECT_OK((*output)->Begin(document, true, {}));
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
      QUIRE_ASSERT_OK(output->Finish(0));
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
