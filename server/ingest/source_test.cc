// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_matchers.h"
#include "server/ingest/ingest_testing.h"
#include "server/ingest/spool.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string KindOf(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<Source>> source =
      OpenSource(path, ::testing::TempDir());
  return source.ok() ? (*source)->kind() : source.status().ToString();
}

TEST(DirectorySourceTest, OrdersByPathBytewise) {
  const TestFolder folder;
  // '!' < '.' < '/' < '0', so the folder's contents come between.
  for (const char* name :
       {"in/a/x", "in/a/b/y", "in/a!", "in/a.txt", "in/a0", "in/\xFF", "in/Z",
        "in/empty/.hidden", "in/new\nline"}) {
    folder.Write(name, name);
  }
  std::filesystem::create_directories(folder / "in/nothing/here");
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(folder / "in"));
  std::vector<std::string> ids;
  for (const auto& [id, contents] : files) {
    EXPECT_EQ(contents, "in/" + id);
    ids.push_back(id);
  }
  EXPECT_THAT(ids, ElementsAre("Z", "a!", "a.txt", "a/b/y", "a/x", "a0",
                               "empty/.hidden", "new\nline", "\xFF"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents same,
                             ReadInput(folder / "in/"));
  EXPECT_EQ(same, files);
}

TEST(DirectorySourceTest, LeavesOutLinksAndSpecialFiles) {
  const TestFolder folder;
  folder.Write("in/file", "contents");
  folder.Write("outside/secret", "secret");
  std::filesystem::create_symlink("file", folder / "in/link");
  std::filesystem::create_symlink("../outside", folder / "in/folder-link");
  std::filesystem::create_symlink(".", folder / "in/loop");
  std::filesystem::create_symlink("nowhere", folder / "in/dangling");
  ASSERT_EQ(mkfifo((folder / "in/pipe").c_str(), 0600), 0);
  SkippedEntries skipped;
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(folder / "in", &skipped));
  EXPECT_THAT(files, ElementsAre(Pair("file", "contents")));
  EXPECT_EQ(skipped.symbolic_links, 4);
  EXPECT_EQ(skipped.special_files, 1);
  EXPECT_EQ(skipped.total(), 5);

  std::filesystem::create_symlink("in", folder / "in-link");
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents by_link,
                             ReadInput(folder / "in-link"));
  EXPECT_EQ(by_link, files);
}

TEST(DirectorySourceTest, AFileThatGoesAwayIsAnError) {
  const TestFolder folder;
  folder.Write("in/a", "1");
  folder.Write("in/b", "2");
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source,
                             OpenSource(folder / "in", folder.path()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  QUIRE_ASSERT_OK(reader->Next());
  std::filesystem::remove(folder / "in/b");
  EXPECT_THAT(reader->Next(),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("in/b")));
}

TEST(DirectorySourceTest, NothingInsideIsUnpacked) {
  const TestFolder folder;
  const std::string tar = MakeTestArchive("ustar", "gzip", {{"a", "1"}});
  folder.Write("in/x.tar.gz", tar);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(folder / "in"));
  EXPECT_THAT(files, ElementsAre(Pair("x.tar.gz", tar)));
}

TEST(OpenSourceTest, APlainFileIsOneDocument) {
  const TestFolder folder;
  const std::vector<std::string> contents = {
      "",
      "text",
      MakeTestText(1000000, 1),
      std::string(10240, '\0'),
      "WARC",
      "PK is not a zip",
      "\x1F\x8B",
      Gzip("text in a gzip stays as it is"),
      MakeTestArchive("cpio", "none", {{"a", "1"}}),
      "begin 644 uuencode\n#86)C\n`\nend\n",
      "#!/bin/sh\n"};
  for (const std::string& content : contents) {
    const std::string path = folder.Write("x.tar.gz", content);
    SkippedEntries skipped;
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                               ReadInput(path, &skipped));
    EXPECT_THAT(files, ElementsAre(Pair("x.tar.gz", content)));
    EXPECT_EQ(skipped.total(), 0);
    EXPECT_EQ(KindOf(path), "file");
  }
}

TEST(OpenSourceTest, LooksAtContentsNotAtNames) {
  const TestFolder folder;
  const std::string warc =
      MakeWarcRecord({"WARC-Target-URI: a"}, "block", "WARC/1.1");
  EXPECT_EQ(KindOf(folder.Write("a.txt", warc)), "warc");
  EXPECT_EQ(KindOf(folder.Write("a.txt", Gzip(warc) + Gzip(warc))), "warc");
  EXPECT_EQ(KindOf(folder.Write(
                "a.warc", MakeTestArchive("ustar", "none", {{"a", "1"}}))),
            "tar");
  EXPECT_EQ(KindOf(folder.Write(
                "a.warc.gz", MakeTestArchive("ustar", "gzip", {{"a", "1"}}))),
            "tar");
  EXPECT_EQ(KindOf(folder.Write("a.txt", MakeTestArchive("zip", "none", {}))),
            "zip");
  EXPECT_EQ(KindOf(folder.path()), "folder");
}

TEST(OpenSourceTest, ReadsCompressedWarcs) {
  const TestFolder folder;
  const std::string warc =
      MakeWarcRecord({"WARC-Target-URI: a"}, MakeTestText(100000, 1));
  const std::string path = folder.Write("x", Gzip(warc) + Gzip(warc));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  EXPECT_THAT(files, ElementsAre(Pair("a", warc), Pair("a", warc)));
}

TEST(OpenSourceTest, RefusesWhatOnlyLooksLikeAnArchive) {
  const TestFolder folder;
  std::string tar = MakeTestArchive("ustar", "none", {{"a", "1"}});
  tar[0] = 'b';
  EXPECT_THAT(OpenSource(folder.Write("x.tar", tar), folder.path()),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("put it into a folder")));
  EXPECT_THAT(
      OpenSource(folder.Write("x.gz", "\x1F\x8B\x08 no gzip"), folder.path()),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr("put it into a folder")));
}

TEST(OpenSourceTest, RefusesWhatIsNeitherFileNorFolder) {
  const TestFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(OpenSource(folder / "pipe", folder.path()),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("give - as the input")));
  EXPECT_THAT(OpenSource("/dev/null", folder.path()),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(OpenSource(folder / "missing", folder.path()),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("/missing")));
}

TEST(SpoolTest, LeavesNoNameBehind) {
  const TestFolder folder;
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = MakeTestText(3000000, 1);
  std::thread writer([&] {
    for (size_t at = 0; at < text.size();) {
      const ssize_t written =
          write(ends[1], text.data() + at, text.size() - at);
      ASSERT_GT(written, 0);
      at += static_cast<size_t>(written);
    }
    close(ends[1]);
  });
  absl::StatusOr<std::shared_ptr<const InputFile>> file =
      SpoolToUnnamedFile(ends[0], "pipe", folder.path());
  writer.join();
  close(ends[0]);
  QUIRE_ASSERT_OK(file);
  EXPECT_THAT(std::vector(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
              IsEmpty());
  FileStream stream(*file);
  std::string back(text.size() + 1, '\0');
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             ReadFully(stream, AsMutableBytes(back)));
  back.resize(size);
  EXPECT_EQ(back, text);
}

TEST(SpoolTest, NamesTheFolderThatCannotTakeIt) {
  EXPECT_THAT(
      SpoolToUnnamedFile(0, "standard input", "/nonexistent"),
      FailsWith(absl::StatusCode::kNotFound, HasSubstr("/nonexistent")));
}

}  // namespace
}  // namespace quire
