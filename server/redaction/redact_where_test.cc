// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removal of documents that a filter selects, from segments with and without
// fields.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"

#include "codecs/base/document_item.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/segment_format.h"
#include "server/redaction/redact.h"
#include "server/redaction/redaction_proof.h"
#include "server/redaction/removed_documents.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A document, and its fields by name.
struct Row {
  TestDocument document;
  std::optional<std::string> lang = {};
  std::optional<int64_t> n = {};
};

struct Case {
  const char* filter;
  std::function<bool(const Row&, uint64_t ordinal)> matches;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"n >= 40", [](const Row& row, uint64_t) { return row.n >= 40; }},
      {"n < 3 or lang = 'de'",
       [](const Row& row, uint64_t) {
         return (row.n.has_value() && *row.n < 3) || row.lang == "de";
       }},
      {"lang is null and n is not null",
       [](const Row& row, uint64_t) {
         return !row.lang.has_value() && row.n.has_value();
       }},
      {"not lang prefix 'e' and size < 700",
       [](const Row& row, uint64_t) {
         return row.lang.has_value() && !absl::StartsWith(*row.lang, "e") &&
                row.document.text.size() < 700;
       }},
      {"type = 'text/html' and time >= 1970-01-01T00:00:20Z",
       [](const Row& row, uint64_t) {
         return row.document.media_type == "text/html" &&
                row.document.capture_time_ms >= 20'000;
       }},
      {"ordinal in (1, 20, 33) or id = 'page-3'",
       [](const Row& row, uint64_t ordinal) {
         return ordinal == 1 || ordinal == 20 || ordinal == 33 ||
                row.document.id == "page-3";
       }},
      {"record_type = 'response' and lang = 'en'",
       [](const Row& row, uint64_t) {
         return row.document.record_type == "response" && row.lang == "en";
       }}};
  return *cases;
}

class RedactWhereTest : public ::testing::Test {
 protected:
  uint64_t Below(uint64_t limit) { return random_() % limit; }

  // Three segments; the one in the middle has no fields.
  void Write() {
    std::filesystem::remove_all(path_);
    rows_.clear();
    for (uint64_t i = 0; i < 45; ++i) {
      Row row{
          .document = {.id = absl::StrCat("page-", Below(30)), .text = Text()}};
      if (Below(3) > 0) {
        row.document.record_type = "response";
        row.document.media_type = Below(2) == 0 ? "text/html" : "text/plain";
        row.document.capture_time_ms = static_cast<int64_t>(i * 1000);
      }
      if (i / 15 != 1) {
        if (Below(4) > 0) {
          const char* const langs[] = {"de", "en", "fr"};
          row.lang = langs[Below(3)];
        }
        if (Below(4) > 0) {
          row.n = static_cast<int64_t>(Below(60));
        }
      }
      rows_.push_back(std::move(row));
    }
    std::string dictionary;
    for (const Row& row : rows_) {
      dictionary += row.document.text.substr(0, 300);
    }
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("rlz").value();
    options.block_size_bytes = 4096;
    const auto context = std::make_shared<CodecContext>(
        CodecContext{.dictionary = dictionary, .symbol_table = ""});
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto codec,
        MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path_, options, context));
    for (size_t i = 0; i < 3; ++i) {
      QUIRE_ASSERT_OK(writer->SetFields(
          i == 0   ? std::vector<FieldColumn>{kLang, kN}
          : i == 1 ? std::vector<FieldColumn>{}
                   : std::vector<FieldColumn>{kN, kSecret, kLang}));
      TestSegment segment;
      for (size_t k = 15 * i; k < 15 * (i + 1); ++k) {
        segment.push_back(rows_[k].document);
        const FieldValue lang = rows_[k].lang.has_value()
                                    ? FieldValue(*rows_[k].lang)
                                    : FieldValue();
        const FieldValue n =
            rows_[k].n.has_value() ? FieldValue(*rows_[k].n) : FieldValue();
        if (i == 0) {
          segment.back().fields = {lang, n};
        } else if (i == 2) {
          segment.back().fields = {n, SecretOf(k), lang};
        }
      }
      QUIRE_ASSERT_OK(WriteTestSegment(segment, 4096, codec.get(), *writer));
    }
    QUIRE_ASSERT_OK(writer->Commit().status());
  }

  std::string Text() {
    std::string text;
    for (uint64_t size = Below(1500); text.size() < size;) {
      text.push_back(static_cast<char>('!' + Below(90)));
    }
    return text;
  }

  static std::string SecretOf(uint64_t ordinal) {
    return absl::StrCat("the secret of the document with the number ", ordinal,
                        ", which is long enough to be searched");
  }

  // Items that name some documents, and the ordinals of these.
  std::vector<std::string> RandomItems(std::set<uint64_t>& named) {
    std::vector<std::string> items;
    for (uint64_t count = Below(3); count > 0; --count) {
      const uint64_t ordinal = Below(rows_.size());
      const std::string& id = rows_[ordinal].document.id;
      const bool is_one = Below(2) == 0;
      uint64_t occurrence = 0;
      for (uint64_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].document.id != id) {
          continue;
        }
        if (!is_one || i == ordinal) {
          named.insert(i);
        }
        occurrence += i < ordinal ? 1 : 0;
      }
      items.push_back(FormatDocumentItem(
          id, is_one ? std::optional(occurrence) : std::nullopt));
    }
    return items;
  }

  void ExpectOnly(const std::set<uint64_t>& removed) {
    QUIRE_ASSERT_OK(VerifyArchive(path_, {}, [](const ArchiveDamage& damage) {
                      ADD_FAILURE() << damage.status;
                    }).status());
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const std::vector<std::string> fields = ReadTestFields(*archive);
    ASSERT_EQ(archive->info().document_count, rows_.size());
    for (uint64_t i = 0; i < rows_.size(); ++i) {
      const Document document = archive->GetDocument({i}).value();
      const Row& row = rows_[i];
      const bool is_removed = removed.contains(i);
      ASSERT_EQ(archive->IsRedacted({i}), is_removed) << i;
      EXPECT_EQ(ReadTestRange(*archive, document.range).value(),
                is_removed ? std::string(row.document.text.size(), '\0')
                           : row.document.text);
      EXPECT_EQ(document.id, is_removed ? "" : row.document.id);
      EXPECT_EQ(
          fields[i],
          absl::StrCat(
              "lang=",
              is_removed || !row.lang.has_value()
                  ? "null"
                  : FormatField(FieldView(absl::string_view(*row.lang))),
              " n=",
              is_removed || !row.n.has_value() ? "null" : absl::StrCat(*row.n),
              " secret=",
              is_removed || i < 30
                  ? "null"
                  : FormatField(FieldView(absl::string_view(SecretOf(i))))))
          << i;
    }
    for (const auto& [name, bytes] : ReadTestFiles(path_)) {
      for (const uint64_t ordinal : removed) {
        EXPECT_FALSE(absl::StrContains(bytes, SecretOf(ordinal)))
            << name << " " << ordinal;
      }
    }
  }

  static Filter Parse(absl::string_view text) {
    return Filter::Parse(text).value();
  }

  static const FieldColumn kLang;
  static const FieldColumn kN;
  static const FieldColumn kSecret;

  std::mt19937_64 random_;
  std::vector<Row> rows_;
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
};

const FieldColumn RedactWhereTest::kLang = {"lang", FieldType::kString};
const FieldColumn RedactWhereTest::kN = {"n", FieldType::kInteger};
const FieldColumn RedactWhereTest::kSecret = {"secret", FieldType::kString};

TEST_F(RedactWhereTest, RemovesWhatMatchesOrIsNamed) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  random_.seed(seed);
  for (int round = 0; round < TestRounds(10, 100); ++round) {
    ASSERT_NO_FATAL_FAILURE(Write());
    const Case& example = Cases()[static_cast<size_t>(round) % Cases().size()];
    SCOPED_TRACE(example.filter);
    std::set<uint64_t> named;
    const std::vector<std::string> items = RandomItems(named);
    SCOPED_TRACE(absl::StrJoin(items, ", "));
    std::set<uint64_t> expected = named;
    uint64_t matched_count = 0;
    for (uint64_t i = 0; i < rows_.size(); ++i) {
      if (example.matches(rows_[i], i)) {
        expected.insert(i);
        ++matched_count;
      }
    }
    RedactOptions options = {
        .where = Parse(example.filter), .prove = true, .threads = 2};
    if (matched_count == 0) {
      EXPECT_THAT(RedactArchive(path_, items, options),
                  HasCode(absl::StatusCode::kNotFound));
      ASSERT_NO_FATAL_FAILURE(ExpectOnly({}));
      continue;
    }
    options.dry_run = true;
    QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport planned,
                               RedactArchive(path_, items, options));
    EXPECT_EQ(planned.document_count, expected.size());
    ASSERT_NO_FATAL_FAILURE(ExpectOnly({}));
    options.dry_run = false;
    QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport report,
                               RedactArchive(path_, items, options));
    EXPECT_EQ(report.document_count, expected.size());
    EXPECT_EQ(report.named_count, named.size());
    EXPECT_EQ(report.matched_count, matched_count);
    std::set<std::string> renumbered;
    for (const uint64_t ordinal : expected) {
      for (uint64_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].document.id == rows_[ordinal].document.id &&
            !expected.contains(i)) {
          renumbered.insert(rows_[i].document.id);
        }
      }
    }
    EXPECT_EQ(report.renumbered_id_count, renumbered.size());
    ASSERT_TRUE(report.proof.has_value());
    EXPECT_THAT(report.proof->failures, IsEmpty());
    ASSERT_NO_FATAL_FAILURE(ExpectOnly(expected));
    // Removed documents match nothing, so that a repeated command fails.
    EXPECT_THAT(RedactArchive(path_, {}, options),
                FailsWith(absl::StatusCode::kNotFound,
                          AllOf(HasSubstr("no document matches --where"),
                                HasSubstr("nothing was changed"))));
    options.where = Parse("id = '' or record_type = 'withdrawn'");
    EXPECT_THAT(RedactArchive(path_, {}, options),
                HasCode(absl::StatusCode::kNotFound));
  }
}

TEST_F(RedactWhereTest, ErrorsNameTheFaultAndChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Write());
  const TestFiles files = ReadTestFiles(path_);
  EXPECT_THAT(
      RedactArchive(path_, {}, {.where = Parse("n = 1 and language = 'de'")}),
      FailsWith(absl::StatusCode::kNotFound,
                AllOf(HasSubstr(path_ + ": --where: column 11: no field "
                                        "\"language\""),
                      HasSubstr(": lang, n, secret, id, "))));
  EXPECT_THAT(RedactArchive(path_, {}, {.where = Parse("n = '1'")}),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("--where: column 5: found a value of the "
                                  "type string, expected integer")));
  EXPECT_THAT(RedactArchive(path_, std::vector<std::string>{"none"},
                            {.where = Parse("n >= 0")}),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("\"none\"")));
  EXPECT_EQ(ReadTestFiles(path_), files);
}

// A domain with what belongs to its pages; a revisit of another URL is named.
TEST_F(RedactWhereTest, RemovesDomains) {
  const char* const ids[] = {"https://www.news.test:8443/a",
                             "http://b.test/",
                             "urn:pageinfo:https://news.test/a",
                             "http://b.test/",
                             "http://c.test/?http://news.test/",
                             "urn:uuid:7",
                             "http://b.test/"};
  const char* const types[] = {"response", "revisit",  "resource", "response",
                               "response", "metadata", "response"};
  TestSegment segment;
  for (size_t i = 0; i < std::size(ids); ++i) {
    rows_.push_back({.document = {.id = ids[i],
                                  .text = absl::StrCat("text of ", i),
                                  .record_type = types[i]}});
    TestDocument& document = rows_.back().document;
    if (document.record_type != "metadata") {
      document.capture_time_ms = 0;
      document.capture = TestCapture{.key = absl::StrCat("key", i),
                                     .url = ids[i],
                                     .status = i == 3 ? 404u : 200u,
                                     .digest = i < 2 ? "sha256:1" : "sha256:2"};
    }
    segment.push_back(document);
  }
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  QUIRE_ASSERT_OK(WriteTestArchive(path_, options, {segment}));
  RedactOptions redact = {
      .where = Parse("domain \"news.test\" or status = 404"),
      .dry_run = true,
      .with_items = true,
      .prove = true};
  QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport planned,
                             RedactArchive(path_, {}, redact));
  EXPECT_THAT(planned.items, ElementsAre(ids[0], ids[2], "http://b.test/\t@1"));
  EXPECT_EQ(planned.references.revisit_count, 1u);
  EXPECT_THAT(planned.references.revisits, ElementsAre("http://b.test/"));
  EXPECT_THAT(planned.references.unlocated, ElementsAre("urn:uuid:7"));
  redact.dry_run = false;
  QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport report,
                             RedactArchive(path_, {}, redact));
  EXPECT_EQ(report.document_count, 3u);
  EXPECT_EQ(report.references.revisit_count, 1u);
  EXPECT_THAT(report.proof->failures, IsEmpty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  for (uint64_t i = 0; i < std::size(ids); ++i) {
    EXPECT_EQ(archive->IsRedacted({i}), i == 0 || i == 2 || i == 3) << i;
  }
  // Items name the same documents; removed captures match no status.
  EXPECT_THAT(RedactArchive(path_, {}, redact),
              HasCode(absl::StatusCode::kNotFound));
}

// A document whose fields cannot be compared must not stay unnoticed.
TEST_F(RedactWhereTest, RefusesDamagedFields) {
  ASSERT_NO_FATAL_FAILURE(Write());
  const auto directory = OpenKnownArchive(path_).value();
  const ManifestSegment& segment = directory.manifest.segments.at(2);
  uint64_t offset = segment.file_size_bytes - kTrailerSizeBytes -
                    segment.sections.size() * kSectionEntrySizeBytes;
  auto section = segment.sections.rbegin();
  for (;; ++section) {
    offset -= section->stored_size_bytes;
    if (section->type == static_cast<uint32_t>(SectionType::kContainerData)) {
      break;
    }
  }
  // The values of the first group come before its index.
  const std::string file = path_ + "/segment-00000002";
  std::string bytes = ReadTestFile(file);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
  WriteTestFile(file, bytes);
  const TestFiles files = ReadTestFiles(path_);
  EXPECT_THAT(
      RedactArchive(path_, {}, {.where = Parse("n >= 0")}),
      FailsWith(absl::StatusCode::kDataLoss,
                AllOf(HasSubstr("segment-00000002: the fields of document 30 "
                                "cannot be read: "),
                      HasSubstr("checksum"))));
  EXPECT_EQ(ReadTestFiles(path_), files);
  // Bounds exclude a match there.
  EXPECT_THAT(RedactArchive(path_, {}, {.where = Parse("n > 1000")}),
              HasCode(absl::StatusCode::kNotFound));
}

// The proof can fail: nothing was removed here.
TEST_F(RedactWhereTest, TheProofFindsFieldsThatStay) {
  ASSERT_NO_FATAL_FAILURE(Write());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  const Filter where = Parse("ordinal = 40");
  QUIRE_ASSERT_OK_AND_ASSIGN(const RemovedDocuments removed,
                             RemovedDocuments::Find(*archive, {}, &where));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RedactionProof proof,
      ProveRedaction(*archive, *archive, removed, size_t{1} << 20,
                     [](uint64_t) { return absl::OkStatus(); }));
  EXPECT_THAT(proof.failures,
              Contains("document 40 still has a value of field secret"));
  EXPECT_THAT(proof.failures,
              Contains(HasSubstr("segment-00000002: fields has text that only "
                                 "removed documents had")));
  EXPECT_GT(proof.field_string_count, 15u);
}

}  // namespace
}  // namespace quire
