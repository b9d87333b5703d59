// SPDX-License-Identifier: GPL-3.0-or-later
//
// Repairs random archives with random damage, in the archive and in its copies,
// and compares the result with a model: a part can be restored if some copy
// has its bytes.
#include "server/archive/repair/archive_repair.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/format/archive_format.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// True if these bytes of the file are those of `good`.
bool HasPart(const TestFiles& files, const TestFiles& good,
             const std::string& name, uint64_t offset, uint64_t size_bytes) {
  const auto found = files.find(name);
  return found != files.end() && found->second.size() >= offset + size_bytes &&
         found->second.compare(offset, size_bytes, good.at(name), offset,
                               size_bytes) == 0;
}

// The model of one repair. The first of `places` is the archive.
struct RepairModel {
  const TestFiles& good;
  const std::vector<TestFiles>& places;
  const std::map<std::string, TestSegmentParts>& segments;

  bool AnyHas(const std::string& name, uint64_t offset,
              uint64_t size_bytes) const {
    return std::ranges::any_of(places, [&](const TestFiles& place) {
      return HasPart(place, good, name, offset, size_bytes);
    });
  }

  bool AnyHas(const std::string& name, const TestPart& part) const {
    return AnyHas(name, part.offset, part.size_bytes);
  }

  // Parts of a file that no place has.
  std::vector<std::string> MissingOf(const std::string& name) const {
    const uint64_t size_bytes = good.at(name).size();
    if (absl::StartsWith(name, "dictionary-")) {
      if (!AnyHas(name, 0, kDictionaryHeaderSizeBytes)) {
        return {"header of the dictionary"};
      }
      return AnyHas(name, kDictionaryHeaderSizeBytes,
                    size_bytes - kDictionaryHeaderSizeBytes)
                 ? std::vector<std::string>()
                 : std::vector<std::string>{"text of the dictionary"};
    }
    if (absl::StartsWith(name, "symbols-")) {
      return AnyHas(name, 16, size_bytes - kSymbolTableOverheadBytes)
                 ? std::vector<std::string>()
                 : std::vector<std::string>{"symbol table"};
    }
    if (!absl::StartsWith(name, "segment-")) {
      return {};
    }
    return MissingOfSegment(name);
  }

  std::vector<std::string> MissingOfSegment(const std::string& name) const {
    const TestSegmentParts& parts = segments.at(name);
    if (!AnyHas(name, parts.footer)) {
      return {parts.footer.name};
    }
    std::vector<std::string> missing;
    bool has_sizes = true;
    for (const TestPart& section : parts.sections) {
      if (!AnyHas(name, section)) {
        missing.push_back(section.name);
        has_sizes &= section.name != "block index";
      }
    }
    if (!has_sizes) {
      missing.emplace_back("offsets of the blocks, which cannot be checked");
      return missing;
    }
    std::optional<uint64_t> first;
    for (uint64_t i = 0; i <= parts.blocks.size(); ++i) {
      const bool is_missing =
          i < parts.blocks.size() && !AnyHas(name, parts.blocks[i]);
      if (is_missing && !first.has_value()) {
        first = i;
      } else if (!is_missing && first.has_value()) {
        missing.push_back(*first + 1 == i
                              ? absl::StrCat("block ", *first)
                              : absl::StrCat("blocks ", *first, " to ", i - 1));
        first.reset();
      }
    }
    return missing;
  }

  // True if a copy has neither a manifest nor a segment: it is refused.
  bool HasEmptyCopy() const {
    return std::any_of(places.begin() + 1, places.end(), [](const auto& copy) {
      return std::ranges::none_of(copy, [](const auto& file) {
        return file.first == "MANIFEST" ||
               absl::StartsWith(file.first, "segment-");
      });
    });
  }

  // True if the archive itself has the end of a segment.
  bool HasOwnFooter() const {
    const TestFiles& own = places[0];
    return std::ranges::any_of(segments, [&](const auto& segment) {
      const auto& [name, parts] = segment;
      return HasPart(own, good, name, parts.footer.offset,
                     parts.footer.size_bytes);
    });
  }
};

std::map<std::string, std::vector<std::string>> MissingOf(
    const RepairReport& report) {
  std::map<std::string, std::vector<std::string>> missing;
  for (const RepairedFile& file : report.files) {
    missing[file.name] = file.missing;
  }
  return missing;
}

class ArchiveRepairTest : public ::testing::Test {
 protected:
  // Writes an archive with three blocks of text and a copy of it.
  void WritePair(char letter = 'x') {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    options.block_size_bytes = 4096;
    options.replace = true;
    QUIRE_ASSERT_OK(WriteTestArchive(
        path_, options, {{{.id = "a", .text = std::string(12'000, letter)}}}));
    good_ = ReadTestFiles(path_);
    WriteTestFiles(copy_, good_);
  }

  absl::StatusOr<RepairReport> Repair(const RepairOptions& options = {}) const {
    return RepairArchive(path_, std::vector<std::string>{copy_}, options);
  }

  void Flip(const std::string& path, const std::string& name,
            size_t offset) const {
    std::string bytes = ReadTestFile(absl::StrCat(path, "/", name));
    bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
    WriteTestFile(absl::StrCat(path, "/", name), bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.quire";
  const std::string copy_ = directory_ / "b.quire";
  TestFiles good_;
};

TEST_F(ArchiveRepairTest, RestoresWhatSomeCopyHasAndNamesTheRest) {
  std::mt19937 seeds(TestSeed());
  uint64_t whole_count = 0;
  uint64_t missing_count = 0;
  for (int round = 0; round < 150; ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::filesystem::remove_all(path_);
    WriteRandomArchive(path_, random);
    const TestFiles good = ReadTestFiles(path_);
    const auto segments = PartsOf(path_);
    std::vector<TestFiles> places(random() % 2 + 2, good);
    std::vector<std::string> copies;
    for (size_t i = 0; i < places.size(); ++i) {
      for (const auto& [name, bytes] : good) {
        if (random() % (name == "MANIFEST" ? 6 : 2) == 0) {
          DamageFile(name, random, places[i]);
        }
      }
      const std::string path = i == 0 ? path_ : absl::StrCat(copy_, i);
      WriteTestFiles(path, places[i]);
      if (i > 0) {
        copies.push_back(path);
      }
    }
    const RepairModel model{good, places, segments};
    const bool has_manifest =
        std::ranges::any_of(places, [&](const TestFiles& place) {
          const auto found = place.find("MANIFEST");
          return found != place.end() && found->second == good.at("MANIFEST");
        });
    const auto report = RepairArchive(path_, copies, {});
    const TestFiles after = ReadTestFiles(path_);
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
    if (!report.ok()) {
      EXPECT_TRUE(!has_manifest || !model.HasOwnFooter() ||
                  model.HasEmptyCopy())
          << report.status();
      EXPECT_TRUE(after == places[0]);
      continue;
    }
    ASSERT_TRUE(has_manifest);
    EXPECT_FALSE(model.HasEmptyCopy());
    const auto missing = MissingOf(*report);
    bool is_whole = true;
    for (const auto& [name, bytes] : good) {
      SCOPED_TRACE(name);
      const std::vector<std::string> expected = model.MissingOf(name);
      const auto before = places[0].find(name);
      const bool was_damaged =
          before == places[0].end() || before->second != bytes;
      EXPECT_EQ(missing.contains(name), was_damaged);
      if (!was_damaged || expected.empty()) {
        ASSERT_TRUE(after.contains(name));
        EXPECT_TRUE(after.at(name) == bytes);
        continue;
      }
      is_whole = false;
      ++missing_count;
      EXPECT_EQ(missing.at(name), expected);
      const auto left = after.find(name);
      EXPECT_EQ(left == after.end(), before == places[0].end());
      EXPECT_TRUE(left == after.end() || left->second == before->second);
    }
    EXPECT_EQ(report->IsWhole(), is_whole);
    whole_count += is_whole ? 1 : 0;
    // Once more: the same is missing, and nothing changes.
    QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport again,
                               RepairArchive(path_, copies, {}));
    for (const RepairedFile& file : again.files) {
      EXPECT_EQ(missing.at(file.name), file.missing);
      EXPECT_FALSE(file.missing.empty());
    }
    EXPECT_EQ(again.IsWhole(), is_whole);
    EXPECT_TRUE(ReadTestFiles(path_) == after);
  }
  // The test has cases of both kinds.
  EXPECT_GT(whole_count, 5u);
  EXPECT_GT(missing_count, 5u);
}

TEST_F(ArchiveRepairTest, ChangesNothingInAWholeArchive) {
  WritePair();
  const auto before =
      std::filesystem::last_write_time(path_ + "/segment-00000000");
  QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport report, Repair());
  EXPECT_THAT(report.files, IsEmpty());
  EXPECT_EQ(report.file_count, 2u);
  EXPECT_EQ(std::filesystem::last_write_time(path_ + "/segment-00000000"),
            before);
}

TEST_F(ArchiveRepairTest, ADryRunChangesNothing) {
  WritePair();
  Flip(path_, "segment-00000000", 100);
  const TestFiles before = ReadTestFiles(path_);
  QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport report,
                             Repair({.dry_run = true}));
  ASSERT_THAT(report.files, SizeIs(1));
  EXPECT_EQ(report.files[0].replaced_count, 1u);
  EXPECT_EQ(report.files[0].replaced_size_bytes, 4096u + 12);
  EXPECT_TRUE(ReadTestFiles(path_) == before);
}

// The magic at the end is outside of all checksums, and the same in each file.
TEST_F(ArchiveRepairTest, RestoresAnEndThatNoCopyHasWhole) {
  WritePair();
  const std::string name = "segment-00000000";
  const std::string cut = good_.at(name).substr(0, good_.at(name).size() - 3);
  WriteTestFile(absl::StrCat(path_, "/", name), cut);
  WriteTestFile(absl::StrCat(copy_, "/", name), cut);
  QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport report, Repair());
  EXPECT_TRUE(report.IsWhole());
  EXPECT_TRUE(ReadTestFiles(path_) == good_);
}

TEST_F(ArchiveRepairTest, KeepsTheRightsOfAFile) {
  WritePair();
  Flip(path_, "segment-00000000", 100);
  const std::string name = path_ + "/segment-00000000";
  ASSERT_EQ(chmod(name.c_str(), 0600), 0);
  QUIRE_ASSERT_OK(Repair());
  struct stat status;
  ASSERT_EQ(stat(name.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_TRUE(ReadTestFiles(path_) == good_);
}

TEST_F(ArchiveRepairTest, RefusesTheCopyOfAnotherArchive) {
  WritePair();
  const TestFiles first = good_;
  WritePair('y');
  WriteTestFiles(path_, first);
  EXPECT_THAT(Repair(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("not a copy of the same archive")));
  // Nor does it take a directory over that has nothing of the archive.
  TestFiles bare = first;
  bare.erase("MANIFEST");
  WriteTestFiles(path_, bare);
  EXPECT_THAT(Repair(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("copy the whole directory")));
  EXPECT_TRUE(ReadTestFiles(path_) == bare);
}

// Without MANIFEST a later state must not become an earlier one.
TEST_F(ArchiveRepairTest, RefusesTheCopyOfAnEarlierState) {
  WritePair();
  TestFiles later = good_;
  later["segment-00000001"] = "appended";
  later.erase("MANIFEST");
  WriteTestFiles(path_, later);
  EXPECT_THAT(Repair(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("an earlier state")));
  EXPECT_TRUE(ReadTestFiles(path_) == later);
}

// A block that is undamaged by its own checksum, and not that of the archive.
TEST_F(ArchiveRepairTest, FindsForeignBlocksByTheChain) {
  WritePair('y');
  const std::string foreign = good_.at("segment-00000000");
  WritePair();
  const auto parts = PartsOf(path_);
  const TestPart& block = parts.at("segment-00000000").blocks[1];
  TestFiles files = good_;
  files.at("segment-00000000")
      .replace(block.offset, block.size_bytes,
               foreign.substr(block.offset, block.size_bytes));
  WriteTestFiles(path_, files);
  QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport report, Repair());
  ASSERT_THAT(report.files, SizeIs(1));
  EXPECT_EQ(report.files[0].replaced_count, 1u);
  EXPECT_TRUE(ReadTestFiles(path_) == good_);
  // In both: neither has the blocks.
  WriteTestFiles(path_, files);
  WriteTestFiles(copy_, files);
  QUIRE_ASSERT_OK_AND_ASSIGN(const RepairReport none, Repair());
  ASSERT_THAT(none.files, SizeIs(1));
  EXPECT_THAT(none.files[0].missing,
              ElementsAre("blocks with the checksum that the trailer has"));
  EXPECT_TRUE(ReadTestFiles(path_) == files);
}

TEST_F(ArchiveRepairTest, KeepsAwayFromWritersAndTheirUnfinishedWork) {
  WritePair();
  Flip(path_, "segment-00000000", 100);
  std::filesystem::create_directory(path_ + ".partial");
  WriteTestFile(path_ + ".partial/PARTIAL", "");
  WriteTestFile(path_ + ".partial/JOURNAL", "journal");
  EXPECT_THAT(Repair(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("unfinished archive")));
  EXPECT_EQ(ReadTestFile(path_ + ".partial/JOURNAL"), "journal");
  std::filesystem::remove_all(path_ + ".partial");
  // Files of a killed repair are removed.
  std::filesystem::create_directory(path_ + ".partial");
  WriteTestFile(path_ + ".partial/PARTIAL", "");
  WriteTestFile(path_ + ".partial/segment-00000000", "half");
  QUIRE_ASSERT_OK(Repair());
  EXPECT_TRUE(ReadTestFiles(path_) == good_);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

// A writer that ends when the repair is about to lock has replaced MANIFEST.
TEST_F(ArchiveRepairTest, NeverRestoresAStateThatAWriterReplaced) {
  WritePair();
  bool has_appended = false;
  const ScopedSystemCallHooks hooks({.before_flock = [&] {
    if (std::exchange(has_appended, true)) {
      return;
    }
    auto change = ArchiveChange::Begin(path_);
    QUIRE_ASSERT_OK(change);
    const auto writer = ArchiveWriter::Append(*std::move(change), "test");
    QUIRE_ASSERT_OK(WriteTestSegment({{.id = "b", .text = "appended"}}, 4096,
                                     nullptr, *writer));
    QUIRE_ASSERT_OK(writer->Commit());
  }});
  EXPECT_THAT(Repair(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("not a copy of the same archive")));
  ASSERT_TRUE(has_appended);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(archive->info().document_count, 2u);
}

TEST_F(ArchiveRepairTest, NamesADirectoryThatIsNotThere) {
  WritePair();
  EXPECT_THAT(RepairArchive(path_, std::vector<std::string>{copy_ + "x"}, {}),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("b.quirex")));
  EXPECT_THAT(RepairArchive(path_ + "x", std::vector<std::string>{copy_}, {}),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("a.quirex")));
}

}  // namespace
}  // namespace quire
