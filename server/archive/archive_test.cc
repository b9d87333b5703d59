// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives are written and read back through the public interface, and compared
// with a plain model of their contents.
#include "server/archive/archive.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/archive/archive_writer.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/crafted_archive.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kBlockSizeBytes = 4096;

ArchiveWriterOptions Options(const std::string& codec) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec(codec).value();
  options.block_size_bytes = kBlockSizeBytes;
  FitPartitions(kBlockSizeBytes, options.codec);
  return options;
}

// A simple model of an archive's contents.
class Model {
 public:
  explicit Model(const std::vector<TestSegment>& segments) {
    for (const TestSegment& segment : segments) {
      for (const TestDocument& document : segment) {
        by_id_.emplace(std::pair(document.id, documents_.size()), 0);
        starts_.push_back(text_.size());
        text_ += document.text;
        documents_.push_back(document);
      }
    }
  }

  void ExpectEqual(const Archive& archive) const {
    ASSERT_EQ(archive.info().size_bytes, text_.size());
    ASSERT_EQ(archive.info().document_count, documents_.size());
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::string text,
        ReadTestRange(archive, {{0}, archive.info().size_bytes}));
    ASSERT_EQ(text, text_);
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      ExpectDocument(archive, i);
      ExpectLookup(archive, documents_[i].id);
    }
    EXPECT_THAT(archive.GetDocument({documents_.size()}),
                HasCode(absl::StatusCode::kOutOfRange));
    EXPECT_THAT(archive.GetDocumentRange({documents_.size()}),
                HasCode(absl::StatusCode::kOutOfRange));
    ExpectOwners(archive);
  }

  void ExpectListing(const Archive& archive, const std::string& prefix,
                     const std::optional<Archive::IdCursor>& after) const {
    SCOPED_TRACE(absl::StrCat("prefix \"", prefix, "\""));
    std::vector<std::pair<std::string, uint64_t>> expected;
    for (const auto& [key, unused] : by_id_) {
      if (absl::StartsWith(key.first, prefix) &&
          (!after.has_value() || key > std::pair(after->id, after->ordinal))) {
        expected.push_back(key);
      }
    }
    std::vector<std::pair<std::string, uint64_t>> found;
    archive.VisitDocuments(prefix, after, [&](const Document& document) {
      found.emplace_back(document.id, document.ordinal.value);
      EXPECT_EQ(document.range.offset.value, starts_[document.ordinal.value]);
      return true;
    });
    EXPECT_EQ(found, expected);
  }

  const std::vector<TestDocument>& documents() const { return documents_; }

 private:
  void ExpectDocument(const Archive& archive, uint64_t i) const {
    const TestDocument& expected = documents_[i];
    QUIRE_ASSERT_OK_AND_ASSIGN(const Document found, archive.GetDocument({i}));
    EXPECT_EQ(found.ordinal.value, i);
    EXPECT_EQ(found.id, expected.id);
    EXPECT_EQ(found.range, (LogicalRange{{starts_[i]}, expected.text.size()}));
    EXPECT_EQ(found.capture_time_ms, expected.capture_time_ms);
    EXPECT_EQ(found.record_type, expected.record_type);
    EXPECT_EQ(found.media_type, expected.media_type);
    QUIRE_ASSERT_OK_AND_ASSIGN(const LogicalRange range,
                               archive.GetDocumentRange({i}));
    EXPECT_EQ(range, found.range);
  }

  void ExpectLookup(const Archive& archive, const std::string& id) const {
    std::vector<DocumentOrdinal> expected;
    for (auto entry = by_id_.lower_bound({id, 0});
         entry != by_id_.end() && entry->first.first == id; ++entry) {
      expected.push_back({entry->first.second});
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto found, archive.FindDocuments(id));
    EXPECT_EQ(found, expected);
    for (size_t i = 0; i <= expected.size(); ++i) {
      const Archive::FoundDocument one = archive.FindDocument(id, i);
      EXPECT_EQ(one.count, expected.size());
      EXPECT_EQ(one.ordinal, i < expected.size() ? std::optional(expected[i])
                                                 : std::nullopt);
    }
    EXPECT_EQ(archive.FindDocument(id, std::nullopt).ordinal, expected.back());
    const std::string other = id + std::string(1, '\0') + "no such document";
    EXPECT_THAT(archive.FindDocuments(other),
                HasCode(absl::StatusCode::kNotFound));
    EXPECT_EQ(archive.FindDocument(other, std::nullopt).count, 0u);
  }

  void ExpectOwners(const Archive& archive) const {
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      const uint64_t size = documents_[i].text.size();
      for (const uint64_t offset : {uint64_t{0}, size / 2, size - 1}) {
        if (offset < size) {
          QUIRE_ASSERT_OK_AND_ASSIGN(const DocumentOrdinal owner,
                                     archive.DocumentAt({starts_[i] + offset}));
          EXPECT_EQ(owner.value, i);
        }
      }
    }
    EXPECT_THAT(archive.DocumentAt({text_.size()}),
                HasCode(absl::StatusCode::kOutOfRange));
  }

  std::vector<TestDocument> documents_;
  std::vector<uint64_t> starts_;
  std::string text_;
  std::map<std::pair<std::string, uint64_t>, int> by_id_;
};

void ExpectRoundTrip(const std::string& codec,
                     const std::vector<TestSegment>& segments,
                     const std::string& dictionary = "") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  const bool has_symbol_table =
      FindCodec(ParseCodecSpec(codec)->id)->needs_symbol_table;
  const auto context = std::make_shared<CodecContext>(
      CodecContext{dictionary, has_symbol_table ? CraftedSymbolTable() : ""});
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ArchiveInfo info,
      WriteTestArchive(path, Options(codec), segments, context));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  if (FindCodec(archive->info().codec.id)->needs_dictionary) {
    EXPECT_EQ(AsText(archive->dictionary()), dictionary);
    EXPECT_EQ(archive->info().dictionary_size_bytes, dictionary.size());
  } else {
    EXPECT_TRUE(archive->dictionary().empty());
    EXPECT_EQ(archive->info().dictionary_hash, "");
  }
  EXPECT_EQ(archive->info().uuid, info.uuid);
  EXPECT_EQ(archive->info().stored_size_bytes, info.stored_size_bytes);
  Model(segments).ExpectEqual(*archive);
}

TEST(ArchiveTest, MayBeEmpty) {
  ExpectRoundTrip("copy", {});
  ExpectRoundTrip("zstd", {{}, {}});
}

TEST(ArchiveTest, WorksWithEachCodec) {
  std::mt19937_64 random(3);
  const std::vector<TestSegment> segments = {
      RandomTestSegment(30, 3000, random), RandomTestSegment(30, 3000, random)};
  for (const CodecInfo& codec : AllCodecs()) {
    SCOPED_TRACE(codec.name);
    ExpectRoundTrip(std::string(codec.name), segments,
                    "what the dictionary has http://example.org/ aaabbb");
    ExpectRoundTrip(std::string(codec.name), segments, "");
    ExpectRoundTrip(std::string(codec.name), {}, "");
  }
}

TEST(ArchiveTest, HoldsOneEmptyDocumentWithAnEmptyId) {
  ExpectRoundTrip("copy", {{TestDocument{}}});
}

TEST(ArchiveTest, HoldsEmptyDocumentsBetweenOthers) {
  TestDocument empty;
  empty.id = "empty";
  TestDocument full = {.id = "full", .text = std::string(kBlockSizeBytes, 'x')};
  ExpectRoundTrip("zlib", {{empty, empty, full, empty, full, empty},
                           {empty},
                           {full, empty, empty}});
}

TEST(ArchiveTest, HoldsDocumentsOfManyBlocks) {
  std::mt19937_64 random(7);
  std::string text(10 * kBlockSizeBytes + 17, '\0');
  std::ranges::generate(text,
                        [&random] { return static_cast<char>(random()); });
  ExpectRoundTrip("lz4", {{{.id = "small", .text = "abc"},
                           {.id = "large", .text = text},
                           {.id = "after", .text = "def"}}});
}

TEST(ArchiveTest, TakesAnyBytesInIds) {
  TestSegment segment;
  for (const std::string& id :
       {std::string("\0", 1), std::string("\0\0", 2), std::string("a\0b", 3),
        std::string("\xFF"), std::string("\xFF\xFF\xFF"), std::string("a\nb"),
        std::string("a"), std::string(), std::string(65535, 'z')}) {
    segment.push_back({.id = id, .text = "x"});
  }
  ExpectRoundTrip("copy", {segment});
}

TEST(ArchiveTest, AnswersAsTheModelDoes) {
  std::mt19937 seeds(TestSeed());
  for (int round = 0; round < 12; ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    std::vector<TestSegment> segments;
    for (uint64_t count = random() % 4; count > 0; --count) {
      segments.push_back(
          RandomTestSegment(random() % 200, random() % 3000, random));
    }
    const TemporaryDirectory directory;
    const std::string path = directory / "a.quire";
    QUIRE_ASSERT_OK(WriteTestArchive(path, Options("zstd:3"), segments));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
    const Model model(segments);
    model.ExpectEqual(*archive);
    model.ExpectListing(*archive, "", std::nullopt);
    for (int i = 0; i < 20 && !model.documents().empty(); ++i) {
      const std::string& id =
          model.documents()[random() % model.documents().size()].id;
      const std::string prefix = id.substr(0, random() % (id.size() + 1));
      model.ExpectListing(*archive, prefix, std::nullopt);
      const Archive::IdCursor after = {
          id, random() % (model.documents().size() + 1)};
      model.ExpectListing(*archive, prefix, after);
      model.ExpectListing(*archive, "", after);
      model.ExpectListing(*archive, "", Archive::IdCursor{prefix, 0});
    }
  }
}

TEST(ArchiveTest, PlansAnyRange) {
  std::mt19937_64 random(11);
  const std::vector<TestSegment> segments = {
      RandomTestSegment(50, 1000, random), RandomTestSegment(3, 0, random),
      RandomTestSegment(50, 1000, random)};
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  QUIRE_ASSERT_OK(WriteTestArchive(path, Options("copy"), segments));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  const uint64_t size = archive->info().size_bytes;
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string all,
                             ReadTestRange(*archive, {{0}, size}));
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % (size + 1);
    const uint64_t length = random() % (size - offset + 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string part,
                               ReadTestRange(*archive, {{offset}, length}));
    EXPECT_EQ(part, all.substr(offset, length));
  }
  for (const LogicalRange& range :
       {LogicalRange{{size}, 1}, LogicalRange{{size + 1}, 0},
        LogicalRange{{1}, size}, LogicalRange{{1}, ~uint64_t{0}},
        LogicalRange{{~uint64_t{0}}, 2}}) {
    EXPECT_THAT(archive->Plan(range), HasCode(absl::StatusCode::kOutOfRange));
  }
}

TEST(ArchiveTest, KnowsWhereBlocksLie) {
  std::mt19937_64 random(13);
  const std::vector<TestSegment> segments = {
      RandomTestSegment(40, 2000, random), RandomTestSegment(40, 2000, random)};
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  QUIRE_ASSERT_OK(WriteTestArchive(path, Options("zlib:9"), segments));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  uint64_t offset = 0;
  uint64_t block_count = 0;
  for (uint32_t s = 0; s < archive->info().segment_count; ++s) {
    uint64_t file_offset = 48;
    for (uint64_t b = 0; b < archive->SegmentBlockCount(s); ++b) {
      const BlockAddress block = {s, b};
      EXPECT_EQ(archive->BlockExtent(block).offset.value, file_offset);
      offset += archive->BlockSizeBytes(block);
      file_offset += archive->BlockExtent(block).size_bytes;
      ++block_count;
    }
  }
  EXPECT_EQ(offset, archive->info().size_bytes);
  EXPECT_EQ(block_count, archive->info().block_count);
}

TEST(ArchiveTest, StopsAListingWhenAsked) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  QUIRE_ASSERT_OK(
      WriteTestArchive(path, Options("copy"),
                       {{{.id = "b", .text = "1"}, {.id = "a", .text = "2"}},
                        {{.id = "a", .text = "3"}, {.id = "c", .text = "4"}}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  std::vector<uint64_t> ordinals;
  archive->VisitDocuments("", std::nullopt, [&](const Document& document) {
    ordinals.push_back(document.ordinal.value);
    return ordinals.size() < 3;
  });
  EXPECT_THAT(ordinals, ElementsAre(1, 2, 0));
}

TEST(ArchiveTest, IsTheSameForTheSameContents) {
  std::mt19937_64 random(17);
  const std::vector<TestSegment> segments = {
      RandomTestSegment(60, 2000, random)};
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ArchiveInfo first,
      WriteTestArchive(directory / "a", Options("zstd"), segments));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ArchiveInfo second,
      WriteTestArchive(directory / "b", Options("zstd"), segments));
  EXPECT_EQ(first.uuid, second.uuid);
  for (const char* file : {"/MANIFEST", "/segment-00000000"}) {
    EXPECT_EQ(ReadTestFile(directory / "a" + file),
              ReadTestFile(directory / "b" + file));
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ArchiveInfo other,
      WriteTestArchive(directory / "c", Options("zstd:1"), segments));
  EXPECT_NE(first.uuid, other.uuid);
}

TEST(ArchiveTest, EstimatesItsMemory) {
  std::mt19937_64 random(19);
  for (const size_t document_count : {size_t{0}, size_t{100}, size_t{20000}}) {
    const TemporaryDirectory directory;
    const std::string path = directory / "a.quire";
    QUIRE_ASSERT_OK(
        WriteTestArchive(path, Options("copy"),
                         {RandomTestSegment(document_count, 20, random)}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                               Archive::ReadOutline(path));
    const uint64_t estimate = outline.memory_bytes;
    EXPECT_EQ(outline.files, archive->files());
    EXPECT_EQ(outline.info.uuid, archive->info().uuid);
    EXPECT_EQ(outline.info.stored_size_bytes,
              archive->info().stored_size_bytes);
    EXPECT_GE(estimate * 10, archive->memory().total_bytes() * 9);
    EXPECT_LE(estimate, archive->memory().total_bytes() * 3 / 2 + (128 << 10));
  }
}

TEST(ArchiveTest, OpeningIsCancelled) {
  std::mt19937_64 random(20);
  const TemporaryDirectory directory;
  const std::string path = directory / "a.quire";
  QUIRE_ASSERT_OK(WriteTestArchive(path, Options("copy"),
                                   {RandomTestSegment(10, 20, random)}));
  std::atomic<bool> cancel = false;
  QUIRE_EXPECT_OK(Archive::Open(path, {.cancel = &cancel}));
  cancel = true;
  EXPECT_THAT(Archive::Open(path, {.cancel = &cancel}),
              HasCode(absl::StatusCode::kCancelled));
}

TEST(ArchiveTest, SaysWhyItCannotBeOpened) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      Archive::Open(directory / "none"),
      FailsWith(absl::StatusCode::kNotFound, HasSubstr("none: cannot open")));
  EXPECT_THAT(Archive::Open(directory.path()),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("MANIFEST")));
  WriteTestFile(directory / "file", "x");
  EXPECT_THAT(Archive::Open(directory / "file"),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("is a file")));
}

}  // namespace
}  // namespace quire
