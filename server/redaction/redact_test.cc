// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removal from archives that a build made, in every encoding.
#include "server/redaction/redact.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/field_reader.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "server/redaction/inflated_block.h"
#include "server/redaction/removed_documents.h"
#include "server/redaction/window_table.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"
#include "testing/codecs/test_codec.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Windows = absl::flat_hash_set<std::string>;

void AddWindows(const std::string& text, Windows& windows) {
  const absl::string_view view(text);
  for (size_t i = 0; i + kWindowSizeBytes <= view.size(); ++i) {
    windows.emplace(view.substr(i, kWindowSizeBytes));
  }
}

// A document, and the texts that its compressed members inflate to.
struct Page {
  std::string id;
  std::string text;
  std::vector<std::string> inner = {};
  bool is_removed = false;
};

using Pages = std::vector<Page>;

std::string RandomLetters(size_t size, std::mt19937_64& random) {
  std::string letters;
  while (letters.size() < size) {
    letters.push_back(static_cast<char>('!' + random() % 90));
  }
  return letters;
}

// Some pages share long parts, some are equal, some have the id of another.
// Each has text of its own, once or repeated.
Pages RandomPages(size_t count, bool has_members, std::mt19937_64& random) {
  Pages pages;
  std::vector<std::string> parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back(MakeTestText(6000 + random() % 9000, random()));
  }
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && random() % 6 == 0) {
      pages.push_back(pages[random() % i]);
      pages.back().id = absl::StrCat("copy-", i);
      continue;
    }
    Page page;
    page.id = i > 0 && random() % 6 == 0
                  ? pages[random() % i].id
                  : absl::StrCat("http://example.org/", i, "/",
                                 RandomLetters(random() % 60, random));
    for (uint64_t n = random() % 4; n > 0; --n) {
      const std::string own = RandomLetters(random() % 300, random);
      for (uint64_t repeats = random() % 4 + 1; repeats > 0; --repeats) {
        page.text += own + (random() % 2 == 0 ? parts[random() % 4]
                                              : MakeTestText(99, random()));
      }
      if (has_members && random() % 2 == 0) {
        std::string inner = RandomLetters(80, random);
        inner += MakeTestText(3000, random() % 4) + inner + inner;
        page.text += Gzip(inner);
        page.inner.push_back(std::move(inner));
      }
    }
    pages.push_back(std::move(page));
  }
  return pages;
}

IdsAndContents Contents(const Pages& pages) {
  IdsAndContents contents;
  for (const Page& page : pages) {
    contents.emplace_back(page.id, page.text);
  }
  return contents;
}

// Marks all pages of some ids, which it returns.
std::vector<std::string> RemoveSome(Pages& pages, std::mt19937_64& random) {
  std::set<std::string> ids;
  for (uint64_t n = random() % 3 + 1; n > 0; --n) {
    const Page& page = pages[random() % pages.size()];
    if (!page.is_removed) {
      ids.insert(page.id);
    }
  }
  for (Page& page : pages) {
    page.is_removed |= ids.contains(page.id);
  }
  return {ids.begin(), ids.end()};
}

// Windows that only removed pages have.
Windows SecretsOf(const Pages& pages) {
  Windows secrets;
  std::string kept_text;
  Windows kept;
  for (const Page& page : pages) {
    if (page.is_removed) {
      AddWindows(kept_text, kept);
      kept_text.clear();
    } else {
      kept_text += page.text;
    }
    Windows& windows = page.is_removed ? secrets : kept;
    AddWindows(page.text, windows);
    AddWindows(page.id, windows);
    for (const std::string& inner : page.inner) {
      AddWindows(inner, windows);
    }
  }
  AddWindows(kept_text, kept);
  kept.insert(std::string(kWindowSizeBytes, '\0'));
  for (const std::string& window : kept) {
    secrets.erase(window);
  }
  return secrets;
}

// Returns everything that the files of an archive contain, encoded or not.
std::map<std::string, std::string> AllTexts(const std::string& path,
                                            const Archive& archive) {
  std::map<std::string, std::string> texts = FilesOf(path);
  texts["dictionary"] = std::string(AsText(archive.dictionary()));
  texts["symbol table"] = std::string(AsText(archive.symbol_table()));
  const auto scratch = archive.codec().NewScratch();
  for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
    std::string& stored = texts[absl::StrCat("stored text ", s)];
    std::string& inflated = texts[absl::StrCat("inflated text ", s)];
    for (uint64_t i = 0; i < archive.SegmentBlockCount(s); ++i) {
      std::vector<uint8_t> raw(archive.BlockSizeBytes({s, i}));
      EXPECT_THAT(archive.ReadBlock({s, i}, raw, *scratch), IsOk());
      stored += std::string(AsText(raw));
      std::vector<uint8_t> frame;
      Recipe recipe;
      const auto payload = archive.ReadPayload({s, i}, frame);
      EXPECT_THAT(payload, IsOk());
      EXPECT_THAT(archive.codec().DecodeInflated(*payload, raw.size(), raw,
                                                 recipe, *scratch),
                  IsOk());
      inflated += std::string(AsText(raw));
    }
  }
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    const Document document = archive.GetDocument({i}).value();
    texts["descriptions"] += absl::StrCat(
        document.id, "\n", document.media_type, "\n", document.record_type);
  }
  return texts;
}

std::string ReadText(const Archive& archive, LogicalRange range) {
  const auto scratch = archive.codec().NewScratch();
  std::string text;
  const std::vector<BlockSlice> slices = archive.Plan(range).value();
  for (const BlockSlice& slice : slices) {
    std::vector<uint8_t> raw(archive.BlockSizeBytes(slice.block));
    EXPECT_THAT(archive.ReadBlock(slice.block, raw, *scratch), IsOk());
    text += std::string(
        AsText(raw).substr(slice.offset_in_block, slice.size_bytes));
  }
  return text;
}

class RedactTest : public ::testing::Test {
 protected:
  void Build(const Pages& pages, const BuildOptions& options) {
    fs::remove_all(path_);
    QUIRE_ASSERT_OK(
        BuildArchive(path_, OneSource(Contents(pages)), options).status());
  }

  // Fails unless the archive is whole, has the pages at their places, and
  // nothing of those that were removed.
  void Expect(const Pages& pages) {
    const auto report = VerifyArchive(
        path_, {}, [](const ArchiveDamage& d) { ADD_FAILURE() << d.status; });
    QUIRE_ASSERT_OK(report.status());
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    ASSERT_EQ(archive->info().document_count, pages.size());
    uint64_t offset = 0;
    for (uint64_t i = 0; i < pages.size(); ++i) {
      const Page& page = pages[i];
      const Document document = archive->GetDocument({i}).value();
      ASSERT_EQ(document.range.offset.value, offset);
      ASSERT_EQ(document.range.size_bytes, page.text.size());
      offset += page.text.size();
      EXPECT_EQ(document.id, page.is_removed ? "" : page.id);
      EXPECT_EQ(document.record_type,
                page.is_removed ? kWithdrawnRecordType : "");
      ASSERT_EQ(
          ReadText(*archive, document.range),
          page.is_removed ? std::string(page.text.size(), '\0') : page.text)
          << i;
    }
    const Windows secrets = SecretsOf(pages);
    // Under sanitizers this would take most of the time.
    constexpr size_t kStep = kIsSanitized ? 16 : 1;
    for (const auto& [name, text] : AllTexts(path_, *archive)) {
      const absl::string_view view(text);
      for (size_t i = 0; i + kWindowSizeBytes <= view.size(); i += kStep) {
        ASSERT_FALSE(secrets.contains(view.substr(i, kWindowSizeBytes)))
            << name << " at " << i << ": " << view.substr(i, kWindowSizeBytes);
      }
    }
    EXPECT_FALSE(fs::exists(path_ + ".partial"));
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "x.quire";
};

struct Encoding {
  const char* codec;
  ReorderMode reorder;
};

class RandomRedactTest : public RedactTest,
                         public ::testing::WithParamInterface<Encoding> {};

INSTANTIATE_TEST_SUITE_P(Encodings, RandomRedactTest,
                         ::testing::ValuesIn(SomeOf<Encoding>(
                             {{"copy", ReorderMode::kOff},
                              {"copy", ReorderMode::kFull},
                              {"rlz:1", ReorderMode::kOff},
                              {"rlz:2", ReorderMode::kDuplicates},
                              {"rlz:2", ReorderMode::kFull},
                              {"rlz:3/parts", ReorderMode::kDuplicates},
                              {"rlz:2/inflate", ReorderMode::kOff},
                              {"rlz:2/parts/inflate", ReorderMode::kFull},
                              {"auto", ReorderMode::kDuplicates},
                              {"auto/inflate", ReorderMode::kOff},
                              {"auto/parts/inflate", ReorderMode::kDuplicates},
                              {"zstd:3/inflate", ReorderMode::kDuplicates},
                              {"rlz-zz", ReorderMode::kFull},
                              {"rlz-zzz", ReorderMode::kOff},
                              {"rlz-pv", ReorderMode::kDuplicates},
                              {"zlib-primed", ReorderMode::kOff},
                              {"zlib/parts", ReorderMode::kDuplicates},
                              {"fsst", ReorderMode::kDuplicates},
                              {"xz", ReorderMode::kFull}},
                             3)));

TEST_P(RandomRedactTest, RemovesDocumentsAndLeavesTheRest) {
  const TestCodec codec = ParseTestCodec(GetParam().codec);
  BuildOptions options;
  options.archive.codec = codec.spec;
  options.inflate = codec.inflated_text_size_max != 0;
  options.reorder = GetParam().reorder;
  options.archive.block_size_bytes =
      codec.spec.partition_size_bytes == 0 ? 4096 : 16384;
  uint64_t window_count = 0;
  uint64_t zeroed_bytes = 0;
  for (int seed = 0; seed < Fewer(3); ++seed) {
    SCOPED_TRACE(absl::StrCat(GetParam().codec, " seed ", seed));
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    Pages pages = RandomPages(12, options.inflate, random);
    options.dictionary_size_bytes = 4096 << random() % 5;
    options.dictionary_method = random() % 2 == 0 ? DictionaryMethod::kUniform
                                                  : DictionaryMethod::kCoverage;
    options.segment_size_bytes = random() % 2 == 0 ? 1 << 30 : 30000;
    ASSERT_NO_FATAL_FAILURE(Build(pages, options));
    // Twice, so that an archive with removed documents is one too.
    for (int round = 0; round < 2; ++round) {
      SCOPED_TRACE(round);
      const std::vector<std::string> ids = RemoveSome(pages, random);
      if (ids.empty()) {
        continue;
      }
      const auto files = FilesOf(path_);
      QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport planned,
                                 RedactArchive(path_, ids, {.dry_run = true}));
      EXPECT_EQ(FilesOf(path_), files);
      EXPECT_FALSE(planned.after.has_value());
      const std::string copy = directory_ / "copy.quire";
      fs::copy(path_, copy);
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const RedactReport report,
          RedactArchive(path_, ids,
                        {.prove = true, .windows_per_pass = 200000}));
      ASSERT_NO_FATAL_FAILURE(Expect(pages));
      EXPECT_THAT(report.old_files, IsOk());
      EXPECT_THAT(report.proof->failures, IsEmpty());
      window_count += report.proof->window_count;
      zeroed_bytes += report.dictionary_zeroed_bytes;
      EXPECT_THAT(report.after->history, IsEmpty());
      ASSERT_FALSE(report.after->redacted_states.empty());
      EXPECT_EQ(report.after->redacted_states.back().uuid, report.before.uuid);
      EXPECT_EQ(planned.document_count, report.document_count);
      EXPECT_EQ(planned.changed_block_count, report.changed_block_count);
      EXPECT_EQ(planned.reencoded_block_count, report.reencoded_block_count);
      EXPECT_EQ(planned.segment_count, report.segment_count);
      EXPECT_EQ(planned.dictionary_zeroed_bytes,
                report.dictionary_zeroed_bytes);
      // A copy becomes the same archive.
      QUIRE_ASSERT_OK(RedactArchive(copy, ids, {.threads = 3}).status());
      EXPECT_EQ(FilesOf(copy), FilesOf(path_));
      fs::remove_all(copy);
      // Once more: nothing is there to remove.
      const auto after = FilesOf(path_);
      EXPECT_THAT(RedactArchive(path_, ids, {}),
                  HasCode(absl::StatusCode::kNotFound));
      EXPECT_EQ(FilesOf(path_), after);
    }
  }
  EXPECT_GT(window_count, 1000u / 3);
  if (!FindCodec(codec.spec.id)->needs_dictionary) {
    EXPECT_EQ(zeroed_bytes, 0u);
  }
}

// The dictionary holds all of the inflated text.
TEST_F(RedactTest, RemovesTheTextOfMembersFromTheDictionary) {
  for (const char* const name : {"rlz:2/inflate", "auto/parts/inflate"}) {
    SCOPED_TRACE(name);
    std::mt19937_64 random(1);
    Pages pages;
    for (int i = 0; i < 6; ++i) {
      const std::string inner =
          RandomLetters(2000, random) + MakeTestText(6000, 3);
      pages.push_back({.id = absl::StrCat(i),
                       .text = Gzip(inner) + RandomLetters(100, random),
                       .inner = {inner}});
    }
    const TestCodec codec = ParseTestCodec(name);
    BuildOptions options;
    options.archive.codec = codec.spec;
    options.inflate = true;
    options.dictionary_size_bytes = 1 << 20;
    options.dictionary_method = DictionaryMethod::kUniform;
    ASSERT_NO_FATAL_FAILURE(Build(pages, options));
    {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
      EXPECT_TRUE(archive->info().has_recipes);
      EXPECT_THAT(std::string(AsText(archive->dictionary())),
                  HasSubstr(pages[2].inner[0].substr(100, 1000)));
    }
    pages[2].is_removed = true;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const RedactReport report,
        RedactArchive(path_, std::vector<std::string>{"2"}, {.prove = true}));
    EXPECT_THAT(report.proof->failures, IsEmpty());
    EXPECT_GT(report.dictionary_zeroed_bytes, 1900u);
    EXPECT_LT(report.dictionary_zeroed_bytes, 4000u);
    ASSERT_NO_FATAL_FAILURE(Expect(pages));
  }
}

// Text and ids outside of the files that the manifest names, and in messages.
TEST_F(RedactTest, RemovesWhatOthersLeft) {
  std::mt19937_64 random(1);
  Pages pages;
  for (int i = 0; i < 12; ++i) {
    pages.push_back({.id = absl::StrCat("http://example.org/", i, "/",
                                        RandomLetters(60, random)),
                     .text = RandomLetters(5000, random)});
  }
  BuildOptions options;
  options.archive.codec = ParseCodecSpec("copy").value();
  options.archive.block_size_bytes = 4096;
  // Segments with filters.
  options.segment_size_bytes = 10000;
  InputFailures failures;
  options.failures = &failures;
  for (const std::string& reason : {pages[5].id, std::string("gone")}) {
    failures.Tolerate(1, absl::NotFoundError("a.warc: " + reason));
  }
  ASSERT_NO_FATAL_FAILURE(Build(pages, options));
  pages[5].is_removed = true;
  // A killed append and a killed salvage.
  fs::copy_file(path_ + "/" + SegmentFileName(2),
                path_ + "/" + SegmentFileName(70));
  directory_.Write("x.quire.partial/PARTIAL", "");
  directory_.Write(absl::StrCat("x.quire.partial/", SegmentFileName(71)),
                   pages[5].text);
  directory_.Write("x.quire.partial/SALVAGED/5", pages[5].text);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RedactReport report,
      RedactArchive(path_, std::vector<std::string>{pages[5].id},
                    {.prove = true}));
  EXPECT_THAT(report.proof->failures, IsEmpty());
  EXPECT_EQ(report.after->segment_count, 6u);
  EXPECT_EQ(report.after->unread_input_count, 2u);
  ASSERT_NO_FATAL_FAILURE(Expect(pages));
  // A build that can be resumed may have the text, and stays.
  directory_.Write("x.quire.partial/PARTIAL", "");
  directory_.Write("x.quire.partial/JOURNAL", "");
  EXPECT_THAT(RedactArchive(path_, std::vector<std::string>{pages[6].id}, {}),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

// Threads take parts of 64 blocks.
TEST_F(RedactTest, PartsHaveTheWindowsBetweenThem) {
  std::mt19937_64 random(1);
  Pages pages;
  std::string text;
  // The parts end at 262,144 bytes, 524,288 and 786,432.
  for (const size_t size : {200'000U, 100'000U, 250'000U, 400'000U}) {
    pages.push_back({.id = absl::StrCat(pages.size()),
                     .text = RandomLetters(size, random)});
    text += pages.back().text;
  }
  BuildOptions options;
  options.archive.codec = ParseCodecSpec("copy").value();
  options.archive.block_size_bytes = 4096;
  ASSERT_NO_FATAL_FAILURE(Build(pages, options));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RemovedDocuments removed,
      RemovedDocuments::Find(*archive, std::vector<std::string>{"2"}));
  WindowTable table(AsBytes(text), text.size());
  const size_t window_count = text.size() - kWindowSizeBytes + 1;
  table.Add(0, window_count);
  for (const size_t thread_count : {1U, 3U}) {
    std::vector<std::vector<bool>> found(thread_count,
                                         std::vector<bool>(window_count));
    std::deque<WindowScanner> scanners;
    std::vector<TextSink*> sinks;
    for (std::vector<bool>& in_sink : found) {
      sinks.push_back(&scanners.emplace_back(
          table, [&in_sink](uint32_t position) { in_sink[position] = true; }));
    }
    uint64_t read_bytes = 0;
    QUIRE_ASSERT_OK(AddKeptText(
        *archive, 0, removed.PlanFor(*archive, 0), /*with_raw=*/false,
        [&](uint64_t size_bytes) {
          read_bytes += size_bytes;
          return absl::OkStatus();
        },
        sinks));
    EXPECT_EQ(read_bytes, text.size());
    for (size_t i = 0; i < window_count; ++i) {
      ASSERT_EQ(std::ranges::any_of(
                    found, [i](const auto& in_sink) { return in_sink[i]; }),
                i + kWindowSizeBytes <= 300'000 || i >= 550'000)
          << i;
    }
    EXPECT_THAT(
        AddKeptText(
            *archive, 0, removed.PlanFor(*archive, 0), /*with_raw=*/false,
            [](uint64_t) { return absl::CancelledError(); }, sinks),
        HasCode(absl::StatusCode::kCancelled));
  }
}

// Also what another thread reads after the last text of the calling one.
// Also the bounds of a group must not have a removed value.
TEST_F(RedactTest, RemovesValuesOfFields) {
  for (const ReorderMode reorder :
       {ReorderMode::kOff, ReorderMode::kDuplicates}) {
    SCOPED_TRACE(ReorderModeName(reorder));
    directory_.Write(
        "in.jsonl",
        "{\"id\": \"a\", \"n\": 1, \"s\": \"m\", \"t\": \"first text\"}\n"
        "{\"id\": \"b\", \"n\": 99, \"s\": \"zsecret\", \"t\": \"hidden\"}\n"
        "{\"id\": \"c\", \"n\": 2, \"s\": \"k\", \"t\": \"last text\"}\n");
    SourceOptions source_options;
    source_options.spool_directory = directory_.path();
    source_options.split = LineSplit{.id_field = "id",
                                     .text_field = "t",
                                     .fields = {{"n", "n"}, {"s", "s"}}};
    std::vector<std::unique_ptr<Source>> sources;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        sources.emplace_back(),
        OpenSource(directory_ / "in.jsonl", source_options));
    BuildOptions options = SmallBuildOptions("copy");
    options.reorder = reorder;
    fs::remove_all(path_);
    QUIRE_ASSERT_OK(BuildArchive(path_, sources, options).status());
    QUIRE_ASSERT_OK(
        RedactArchive(path_, std::vector<std::string>{"b"}, {.prove = true})
            .status());
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    EXPECT_THAT(
        ReadTestFields(*archive),
        ::testing::ElementsAre("n=1 s=\"m\"", "n=null s=null", "n=2 s=\"k\""));
    DocumentFieldReader reader(*archive, {0, 1}, BlockingPartLoader(*archive));
    FieldGroup group;
    QUIRE_ASSERT_OK(reader.ReadGroup({0}, group).status());
    EXPECT_EQ(group.ranges[0].greatest, FieldView(int64_t{2}));
    EXPECT_EQ(group.ranges[1].greatest, FieldView(absl::string_view("m")));
    for (const auto& [name, bytes] : FilesOf(path_)) {
      EXPECT_THAT(bytes, ::testing::Not(HasSubstr("zsecret"))) << name;
    }
  }
}

TEST_F(RedactTest, RemovesCaptures) {
  const auto record = [](const std::string& url) {
    return MakeWarcRecord(
        {"WARC-Type: response", absl::StrCat("WARC-Target-URI: ", url),
         "WARC-Date: 2023-11-14T22:13:20Z"},
        "HTTP/1.1 200 OK\r\n\r\ntext of a page");
  };
  for (const ReorderMode reorder :
       {ReorderMode::kOff, ReorderMode::kDuplicates}) {
    SCOPED_TRACE(ReorderModeName(reorder));
    directory_.Write("in.warc", absl::StrCat(record("http://a.com/"),
                                             record("http://zsecret.com/"),
                                             record("http://zz.com/")));
    SourceOptions source_options;
    source_options.spool_directory = directory_.path();
    std::vector<std::unique_ptr<Source>> sources;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        sources.emplace_back(),
        OpenSource(directory_ / "in.warc", source_options));
    BuildOptions options = SmallBuildOptions("copy");
    options.reorder = reorder;
    fs::remove_all(path_);
    QUIRE_ASSERT_OK(BuildArchive(path_, sources, options).status());
    QUIRE_ASSERT_OK(
        RedactArchive(path_, std::vector<std::string>{"http://zsecret.com/"},
                      {.prove = true})
            .status());
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    EXPECT_THAT(
        ReadTestCaptures(*archive),
        ::testing::ElementsAre("com,a)/ 1700000000000 0 200  http://a.com/",
                               "com,zz)/ 1700000000000 2 200  http://zz.com/"));
    for (const auto& [name, bytes] : FilesOf(path_)) {
      EXPECT_THAT(bytes, ::testing::Not(HasSubstr("zsecret"))) << name;
    }
  }
}

TEST_F(RedactTest, CountsTheTextOfEveryThread) {
  BuildOptions options;
  options.archive.codec = ParseCodecSpec("copy").value();
  options.archive.block_size_bytes = 4096;
  // Four parts, of which each thread takes one at least.
  ASSERT_NO_FATAL_FAILURE(
      Build({{.id = "a", .text = std::string(1'000'000, 'a')}}, options));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  const std::thread::id caller = std::this_thread::get_id();
  absl::Notification other_began;
  absl::Notification caller_has_read;
  uint64_t read_bytes = 0;
  QUIRE_ASSERT_OK(ForEachPart(
      *archive, 0, /*thread_count=*/2,
      [&](uint64_t size_bytes) {
        read_bytes += size_bytes;
        return absl::OkStatus();
      },
      [&](size_t /*thread*/, const StoredPart& /*part*/,
          const OnTextRead& on_part_read) {
        const bool is_caller = std::this_thread::get_id() == caller;
        if ((is_caller ? caller_has_read : other_began).HasBeenNotified()) {
          return absl::OkStatus();
        }
        if (is_caller) {
          other_began.WaitForNotification();
        } else {
          other_began.Notify();
          caller_has_read.WaitForNotification();
        }
        const absl::Status status = on_part_read(7);
        if (is_caller) {
          caller_has_read.Notify();
        }
        return status;
      }));
  EXPECT_EQ(read_bytes, 14);
}

}  // namespace
}  // namespace quire
