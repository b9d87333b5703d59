// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares the program with the golden files next to this test.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "codecs/base/checksum.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/deposited_files.h"
#include "server/archive/document_captures.h"
#include "server/archive/field_reader.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string GoldenDirectory() {
  const char* source = std::getenv("QUIRE_SOURCE_DIR");
  return absl::StrCat(source == nullptr ? "." : source,
                      "/testing/archive/golden/");
}

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenDirectory() + directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string Escaped(const std::string& bytes) {
  std::string result;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x21 && byte <= 0x7E && c != '"' && c != '\\') {
      result.push_back(c);
    } else {
      absl::StrAppendFormat(&result, "\\x%02x", byte);
    }
  }
  return result;
}

// Returns the output of reference_reader.py: `check`, then `list`.
std::string FieldsOf(const Archive& archive, DocumentOrdinal ordinal) {
  std::vector<uint32_t> columns(archive.fields().size());
  std::iota(columns.begin(), columns.end(), uint32_t{0});
  DocumentFieldReader reader(archive, columns, BlockingPartLoader(archive));
  std::vector<FieldView> values;
  const absl::StatusOr<bool> is_read = reader.Read(ordinal, values);
  if (!is_read.ok()) {
    return is_read.status().ToString();
  }
  std::string fields;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto* const text = std::get_if<absl::string_view>(&values[i]);
    const auto* const time = std::get_if<FieldTime>(&values[i]);
    absl::StrAppend(&fields, " ", archive.fields()[i].name, "=",
                    text != nullptr
                        ? absl::StrCat("\"", Escaped(std::string(*text)), "\"")
                    : time != nullptr ? absl::StrCat(time->us, "us")
                                      : FormatField(values[i]));
  }
  return fields;
}

// " capture="KEY" "URL" STATUS "DIGEST"" of a document that is one.
std::string CaptureOf(DocumentCaptures& captures, const Document& document) {
  const auto capture = captures.Find(document.ordinal, document.id);
  if (!capture.ok()) {
    return capture.status().ToString();
  }
  return !capture->has_value()
             ? ""
             : absl::StrCat(" capture=\"",
                            Escaped(std::string((*capture)->key)), "\" \"",
                            Escaped(std::string((*capture)->url)), "\" ",
                            (*capture)->status, " \"",
                            Escaped(std::string((*capture)->digest)), "\"");
}

std::string Listing(const Archive& archive) {
  DocumentCaptures captures(archive);
  std::string listing =
      absl::StrCat(absl::StrReplaceAll(archive.info().uuid, {{"-", ""}}), "\n");
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    const auto document = archive.GetDocument({i});
    if (!document.ok()) {
      return document.status().ToString();
    }
    const auto text = ReadTestRange(archive, document->range);
    if (!text.ok()) {
      return text.status().ToString();
    }
    const auto or_dash = [](const std::string& value) {
      return value.empty() ? "-" : Escaped(value);
    };
    absl::StrAppend(
        &listing, i, " ", document->range.offset.value, " ",
        document->range.size_bytes, " ",
        document->capture_time_ms.has_value()
            ? absl::StrCat(*document->capture_time_ms)
            : "-",
        " ", or_dash(document->media_type), " ", or_dash(document->record_type),
        " \"", Escaped(document->id), "\" ",
        absl::Hex(Checksum64(AsBytes(*text)), absl::kZeroPad16),
        FieldsOf(archive, {i}), CaptureOf(captures, *document), "\n");
  }
  for (const DepositedFile& file : archive.deposited_files().files()) {
    const bool is_kept = file.state == DepositState::kKept;
    absl::StrAppend(&listing, "file \"", Escaped(std::string(file.path)), "\" ",
                    is_kept ? absl::StrCat(file.size_bytes) : "withdrawn", " ",
                    is_kept ? absl::BytesToHexString(AsText(file.digest)) : "-",
                    "\n");
  }
  return listing;
}

TEST(GoldenTest, ReadsTheGood) {
  const std::set<std::string> names = NamesIn("good");
  EXPECT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string path = GoldenDirectory() + "good/" + name;
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
    EXPECT_EQ(Listing(*archive),
              ReadTestFile(GoldenDirectory() + "expected/" + name + ".txt"));
    QUIRE_EXPECT_OK(VerifyArchive(path, {}, [](const ArchiveDamage& damage) {
      ADD_FAILURE() << damage.status;
    }));
  }
}

TEST(GoldenTest, EarlierStatesAreThoseOfTheAppends) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(GoldenDirectory() + "good/history"));
  const ArchiveInfo& info = archive->info();
  EXPECT_EQ(info.segment_count, 3u);
  ASSERT_EQ(info.history.size(), 2u);
  EXPECT_EQ(info.history[0].document_count, 2u);
  EXPECT_EQ(info.history[0].size_bytes, 5005u);
  EXPECT_EQ(info.history[1].document_count, 4u);
  EXPECT_EQ(info.history[1].size_bytes, 11005u);
  const std::vector<size_t> pages = {1, 2, 3};
  const std::vector<std::string> uuids = {info.history[0].uuid,
                                          info.history[1].uuid, info.uuid};
  for (size_t i = 0; i < uuids.size(); ++i) {
    const auto view = archive->FindState(uuids[i]);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(
        archive->FindDocument("page", std::nullopt, view->document_count).count,
        pages[i]);
  }
}

TEST(GoldenTest, RedactedStatesAreThoseBeforeARemoval) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto archive, Archive::Open(GoldenDirectory() + "good/redacted"));
  const ArchiveInfo& info = archive->info();
  ASSERT_EQ(info.redacted_states.size(), 1u);
  ASSERT_EQ(info.history.size(), 1u);
  EXPECT_EQ(info.redacted_states[0].document_count, 3u);
  EXPECT_EQ(info.history[0].document_count, 3u);
  const auto before = archive->FindState(info.redacted_states[0].uuid);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->size_bytes, 3018u);
  EXPECT_NE(before->removals_hash, 0u);
  EXPECT_EQ(archive->FindState(info.history[0].uuid)->removals_hash, 0u);
  EXPECT_EQ(archive->FindState(info.uuid)->removals_hash, 0u);
  for (uint64_t i = 0; i < info.document_count; ++i) {
    EXPECT_EQ(archive->IsRedacted({i}), i == 1) << i;
  }
}

struct BadArchive {
  std::string name;
  // "open", "read" or "verify".
  std::string fails_at;
  std::string code;
  std::string message;
};

// The table of README.md.
std::vector<BadArchive> BadArchives() {
  std::vector<BadArchive> archives;
  std::ifstream readme(GoldenDirectory() + "README.md");
  std::string line;
  bool in_table = false;
  while (std::getline(readme, line)) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (cells.size() == 5 && in_table) {
      archives.push_back(
          {.name = std::string(absl::StripPrefix(cells[0], "| ")),
           .fails_at = cells[1],
           .code = cells[2],
           .message = cells[3]});
    }
    in_table = in_table || cells[0] == "| bad";
  }
  return archives;
}

TEST(GoldenTest, RefusesTheBadForTheReasonGiven) {
  std::set<std::string> listed;
  for (const BadArchive& bad : BadArchives()) {
    SCOPED_TRACE(bad.name);
    listed.insert(bad.name);
    const std::string path = GoldenDirectory() + "bad/" + bad.name;
    const auto archive = Archive::Open(path);
    absl::Status status = archive.status();
    if (bad.fails_at != "open") {
      ASSERT_THAT(archive, IsOk());
      const auto scratch = (*archive)->codec().NewScratch();
      std::vector<uint8_t> raw((*archive)->BlockSizeBytes({0, 0}));
      status = (*archive)->ReadBlock({0, 0}, raw, *scratch);
    }
    // Verification never reports such an archive as good.
    absl::Status damage_status;
    const auto report =
        VerifyArchive(path, {}, [&](const ArchiveDamage& damage) {
          damage_status.Update(damage.status);
        });
    EXPECT_TRUE(!report.ok() || !damage_status.ok());
    if (bad.fails_at == "verify") {
      QUIRE_EXPECT_OK(status);
      QUIRE_EXPECT_OK(report);
      status = damage_status;
    }
    EXPECT_EQ(absl::StatusCodeToString(status.code()), bad.code);
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  EXPECT_EQ(listed, NamesIn("bad"));
}

}  // namespace
}  // namespace quire
