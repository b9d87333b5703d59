// SPDX-License-Identifier: GPL-3.0-or-later
//
// Directories that contain tars, zips and WARCs.
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Notes = std::vector<std::pair<EntryNote, std::string>>;

struct Heard {
  IdsAndContents documents;
  Notes notes;
  SkippedEntries skipped;
};

// One pass with a listener.
absl::StatusOr<Heard> Hear(const std::string& path, SourceOptions options) {
  options.spool_directory = ::testing::TempDir();
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source,
                         OpenSource(path, options));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceReader> reader,
                         source->Open());
  Heard heard;
  reader->Listen([&](EntryNote note, const std::string& text) {
    heard.notes.emplace_back(note, text);
  });
  QUIRE_ASSIGN_OR_RETURN(const std::vector<IngestedDocument> documents,
                         ReadAllDocuments(*reader));
  for (const IngestedDocument& document : documents) {
    heard.documents.emplace_back(document.document.id, document.contents);
  }
  heard.skipped = reader->skipped();
  return heard;
}

std::vector<std::string> IdsOf(const IdsAndContents& documents) {
  std::vector<std::string> ids;
  for (const auto& [id, contents] : documents) {
    ids.push_back(id);
  }
  return ids;
}

std::string Warc(const std::string& uri) {
  return MakeWarcRecord({"WARC-Target-URI: " + uri, "WARC-Type: resource"},
                        "a page");
}

// A directory like those of crawlers and packagers.
void WriteCrawl(const TemporaryDirectory& directory) {
  directory.Write("in/2022/a.warc.gz", Gzip(Warc("http://u/1")));
  directory.Write("in/2022/b.warc", Warc("http://u/1"));
  directory.Write("in/docs.zip",
                  MakeTestArchive("zip", "none", {{"m/x", "1"}, {"m/y", "2"}}));
  directory.Write("in/pages.tar",
                  MakeTestArchive("pax", "none", {{"./p", "3"}, {"q", "4"}}));
  directory.Write("in/pages.txz", MakeTestArchive("ustar", "xz", {{"p", "5"}}));
  directory.Write("in/letter.docx",
                  MakeTestArchive("zip", "none", {{"word/a.xml", "6"}}));
  directory.Write("in/readme", "7");
  directory.Write("in/page.html.gz", Gzip("8"));
}

TEST(ExpandedDirectoryTest, ContainersBecomeTheirDocuments) {
  const TemporaryDirectory directory;
  WriteCrawl(directory);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard,
                             Hear(directory / "in", {.expand = true}));
  EXPECT_THAT(
      IdsOf(heard.documents),
      ElementsAre("2022/a.warc.gz/http://u/1", "2022/b.warc/http://u/1",
                  "docs.zip/m/x", "docs.zip/m/y", "letter.docx", "page.html.gz",
                  "pages.tar/p", "pages.tar/q", "pages.txz/p", "readme"));
  EXPECT_EQ(heard.documents[3].second, "2");
  EXPECT_EQ(heard.documents[8].second, "5");
  EXPECT_THAT(heard.notes, IsEmpty());

  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Heard bare,
      Hear(directory / "in",
           {.expand = true, .member_ids = MemberIds::kMember}));
  EXPECT_THAT(
      IdsOf(bare.documents),
      ElementsAre("http://u/1", "http://u/1", "m/x", "m/y", "letter.docx",
                  "page.html.gz", "p", "q", "p", "readme"));
}

TEST(ExpandedDirectoryTest, WithoutExpansionContainersAreNoted) {
  const TemporaryDirectory directory;
  WriteCrawl(directory);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard, Hear(directory / "in", {}));
  EXPECT_EQ(heard.documents.size(), 8);
  const auto noted = [&](const char* name) {
    return Pair(EntryNote::kUnexpanded, directory / name);
  };
  EXPECT_THAT(heard.notes,
              ElementsAre(noted("in/2022/a.warc.gz"), noted("in/2022/b.warc"),
                          noted("in/docs.zip"), noted("in/pages.tar"),
                          noted("in/pages.txz")));
}

TEST(ExpandedDirectoryTest, NamesThatDisagreeWithContentsAreNoted) {
  const TemporaryDirectory directory;
  directory.Write("in/bad.warc.gz", "no gzip at all");
  directory.Write("in/damaged.tar.gz", "\x1F\x8B\x08 looks like it");
  directory.Write("in/empty.zip", "");
  directory.Write("in/good.warc.gz", Gzip(Warc("http://u/1")));
  directory.Write("in/no.warc.gz", Gzip("no WARC"));
  directory.Write("in/plain.warc.gz", Warc("http://u/2"));
  directory.Write("in/x.tar", Warc("http://u/3"));
  for (const bool expand : {false, true}) {
    SCOPED_TRACE(expand);
    QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard,
                               Hear(directory / "in", {.expand = expand}));
    // Misnamed files lose nothing.
    ASSERT_EQ(heard.documents.size(), 7);
    EXPECT_EQ(heard.documents[0], (std::pair<std::string, std::string>(
                                      "bad.warc.gz", "no gzip at all")));
    std::vector<std::string> misnamed;
    for (const auto& [note, text] : heard.notes) {
      if (note == EntryNote::kMisnamed) {
        misnamed.push_back(text);
      }
    }
    EXPECT_THAT(misnamed,
                ElementsAre(HasSubstr("bad.warc.gz: is named like a WARC"),
                            HasSubstr("damaged.tar.gz"), HasSubstr("empty.zip"),
                            HasSubstr("no.warc.gz: is named like a WARC"),
                            HasSubstr("plain.warc.gz: is named like a "
                                      "compressed file"),
                            HasSubstr("x.tar: is named like a tar")));
  }
  for (const char* name : {"in/bad.warc.gz", "in/x.tar"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard, Hear(directory / name, {}));
    EXPECT_THAT(heard.notes,
                ElementsAre(Pair(EntryNote::kMisnamed, HasSubstr(name))));
  }
}

TEST(ExpandedDirectoryTest, EntriesOfContainersAreCountedAndNamed) {
  const TemporaryDirectory directory;
  directory.Write(
      "in/x.tar",
      MakeTestArchive("pax", "none",
                      {{"a", "1"},
                       {"link", "a", TestEntry::Kind::kSymbolicLink},
                       {"pipe", "", TestEntry::Kind::kPipe},
                       {"hard", "gone", TestEntry::Kind::kHardLink}}));
  ASSERT_EQ(mkfifo((directory / "in/fifo").c_str(), 0600), 0);
  QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard,
                             Hear(directory / "in", {.expand = true}));
  EXPECT_EQ(heard.skipped.symbolic_links, 1);
  EXPECT_EQ(heard.skipped.special_files, 2);
  EXPECT_EQ(heard.skipped.dangling_links, 1);
  const std::string tar = directory / "in/x.tar";
  EXPECT_THAT(heard.notes,
              ElementsAre(Pair(EntryNote::kSpecialFile, directory / "in/fifo"),
                          Pair(EntryNote::kSymbolicLink, tar + ": link"),
                          Pair(EntryNote::kSpecialFile, tar + ": pipe"),
                          Pair(EntryNote::kDanglingLink, tar + ": hard")));
}

TEST(ExpandedDirectoryTest, ExcludesAndRenames) {
  const TemporaryDirectory directory;
  WriteCrawl(directory);
  // Neither opened nor listed, which would fail.
  directory.Write("in/private/secret", "");
  SourceOptions options{.expand = true};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      options.id_rules,
      IdRules::Create(
          {.exclude_globs = {"private/", "*.zip", "/readme", "q", "a.warc.gz"},
           .strip_prefix = "pages.tar/",
           .prefix = "new/"}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const Heard heard,
                             Hear(directory / "in", options));
  EXPECT_THAT(IdsOf(heard.documents),
              ElementsAre("new/2022/b.warc/http://u/1", "new/letter.docx",
                          "new/page.html.gz", "new/p", "new/pages.txz/p"));
  EXPECT_EQ(heard.skipped.excluded, 5);
  EXPECT_EQ(heard.notes.size(), 5);
}

TEST(ExpandedDirectoryTest, OneContainerMayNotExpandWithoutBound) {
  const TemporaryDirectory directory;
  directory.Write(
      "in/x.tar.gz",
      MakeTestArchive("pax", "gzip", {{"a", MakeTestText(5000, 1)}}));
  EXPECT_THAT(
      Hear(directory / "in", {.input_size_bytes_max = 4000, .expand = true}),
      FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("x.tar.gz")));
}

}  // namespace
}  // namespace quire
