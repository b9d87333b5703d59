// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives with a symbol table; archive_damage_test.cc damages one.
#include "server/archive/files/symbol_table_file.h"

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codecs/base/checksum.h"
#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/format/archive_format.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class SymbolTableFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<ArchiveInfo> Write(const std::string& path,
                                    const std::string& table) const {
    std::mt19937_64 random(5);
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("zstd").value();
    options.block_size_bytes = 4096;
    auto context = std::make_shared<CodecContext>();
    context->symbol_table = table;
    return WriteTestArchive(path, options,
                            {RandomTestSegment(20, 3000, random)}, context);
  }

  std::string FileOf(const std::string& table) const {
    return directory_ /
           ("a/" + SymbolTableFileName(Checksum64(AsBytes(table))));
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
  const std::string table_ = CraftedSymbolTable();
};

TEST_F(SymbolTableFileTest, IsKeptBesideWhatTheCodecUses) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo with, Write(path_, table_));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(AsText(archive->symbol_table()), table_);
  EXPECT_EQ(archive->info().symbol_table_size_bytes, table_.size());
  EXPECT_EQ(archive->info().symbol_table_hash,
            FormatChecksum(Checksum64(AsBytes(table_))));
  EXPECT_GE(archive->memory().symbol_table_bytes, table_.size());
  uint64_t files_size_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    files_size_bytes += entry.file_size();
  }
  EXPECT_EQ(archive->info().stored_size_bytes, files_size_bytes);
  QUIRE_EXPECT_OK(VerifyArchive(path_, {}, [](const ArchiveDamage& damage) {
    ADD_FAILURE() << damage.status;
  }));
  // Reading does not depend on it.
  QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveInfo without,
                             Write(directory_ / "b", ""));
  EXPECT_EQ(with.uuid, without.uuid);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto bare, Archive::Open(directory_ / "b"));
  EXPECT_TRUE(bare->symbol_table().empty());
  EXPECT_EQ(bare->info().symbol_table_hash, "");
  EXPECT_EQ(bare->memory().symbol_table_bytes, 0u);
}

TEST_F(SymbolTableFileTest, MustBeATable) {
  EXPECT_THAT(Write(path_, "not a table"),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Write(path_, table_ + "x"),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SymbolTableFileTest, MustBeTheOnlyOne) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                             ArchiveWriter::Create(path_, options, nullptr));
  QUIRE_EXPECT_OK(writer->SetSymbolTable(table_));
  EXPECT_THAT(writer->SetSymbolTable(table_),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(writer->Commit(), HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(SymbolTableFileTest, NamesAMissingFile) {
  QUIRE_ASSERT_OK(Write(path_, table_));
  std::filesystem::remove(FileOf(table_));
  EXPECT_THAT(Archive::Open(path_), FailsWith(absl::StatusCode::kDataLoss,
                                              HasSubstr(": is missing")));
}

TEST_F(SymbolTableFileTest, LosesNoTextWhenDamaged) {
  QUIRE_ASSERT_OK(Write(path_, table_));
  std::string file = ReadTestFile(FileOf(table_));
  file[20] = static_cast<char>(file[20] ^ 1);
  WriteTestFile(FileOf(table_), file);
  std::vector<ArchiveDamage> damages;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const VerifyReport report,
      VerifyArchive(path_, {}, [&](const ArchiveDamage& damage) {
        damages.push_back(damage);
      }));
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_THAT(std::string(damages[0].status.message()), HasSubstr("symbols-"));
  EXPECT_EQ(damages[0].lost.size_bytes, 0u);
  EXPECT_EQ(report.good_size_bytes, report.info.size_bytes);
}

}  // namespace
}  // namespace quire
