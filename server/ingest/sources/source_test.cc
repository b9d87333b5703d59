// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "server/ingest/sources/spool.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(DirectorySourceTest, OrdersByPathBytewise) {
  const TemporaryDirectory directory;
  // '!' < '.' < '/' < '0', so the directory's contents come between.
  for (const char* name :
       {"in/a/x", "in/a/b/y", "in/a!", "in/a.txt", "in/a0", "in/\xFF", "in/Z",
        "in/empty/.hidden", "in/new\nline"}) {
    directory.Write(name, name);
  }
  std::filesystem::create_directories(directory / "in/nothing/here");
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(directory / "in"));
  std::vector<std::string> ids;
  for (const auto& [id, contents] : files) {
    EXPECT_EQ(contents, "in/" + id);
    ids.push_back(id);
  }
  EXPECT_THAT(ids, ElementsAre("Z", "a!", "a.txt", "a/b/y", "a/x", "a0",
                               "empty/.hidden", "new\nline", "\xFF"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents same,
                             ReadInput(directory / "in/"));
  EXPECT_EQ(same, files);
}

TEST(DirectorySourceTest, LeavesOutLinksAndSpecialFiles) {
  const TemporaryDirectory directory;
  directory.Write("in/file", "contents");
  directory.Write("outside/secret", "secret");
  std::filesystem::create_symlink("file", directory / "in/link");
  std::filesystem::create_symlink("../outside",
                                  directory / "in/directory-link");
  std::filesystem::create_symlink(".", directory / "in/loop");
  std::filesystem::create_symlink("nowhere", directory / "in/dangling");
  ASSERT_EQ(mkfifo((directory / "in/pipe").c_str(), 0600), 0);
  SkippedEntries skipped;
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(directory / "in", &skipped));
  EXPECT_THAT(files, ElementsAre(Pair("file", "contents")));
  EXPECT_EQ(skipped.symbolic_links, 4);
  EXPECT_EQ(skipped.special_files, 1);

  std::filesystem::create_symlink("in", directory / "in-link");
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents by_link,
                             ReadInput(directory / "in-link"));
  EXPECT_EQ(by_link, files);
}

TEST(DirectorySourceTest, AFileThatGoesAwayOrBecomesALinkIsAnError) {
  const TemporaryDirectory directory;
  directory.Write("in/a", "1");
  directory.Write("in/b", "2");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(directory / "in", {.spool_directory = directory.path()}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> other,
                             source->Open());
  QUIRE_ASSERT_OK(reader->Next());
  QUIRE_ASSERT_OK(other->Next());
  std::filesystem::remove(directory / "in/b");
  EXPECT_THAT(reader->Next(),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("in/b")));
  std::filesystem::create_symlink("a", directory / "in/b");
  EXPECT_THAT(other->Next(),
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("in/b: was a regular file when")));
}

TEST(DirectorySourceTest, NothingInsideIsUnpacked) {
  const TemporaryDirectory directory;
  const std::string tar = MakeTestArchive("ustar", "gzip", {{"a", "1"}});
  directory.Write("in/x.tar.gz", tar);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(directory / "in"));
  EXPECT_THAT(files, ElementsAre(Pair("x.tar.gz", tar)));
}

TEST(OpenSourceTest, APlainFileIsOneDocument) {
  const TemporaryDirectory directory;
  const std::vector<std::string> contents = {
      "",
      "text",
      MakeTestText(1000000, 1),
      std::string(10240, '\0'),
      "WARC",
      "PK is not a zip",
      "\x1F\x8B",
      "\x1F\x8B\x07 is no method of gzip",
      Gzip("text in a gzip stays as it is"),
      MakeTestArchive("cpio", "none", {{"a", "1"}}),
      "begin 644 uuencode\n#86)C\n`\nend\n",
      "#!/bin/sh\n"};
  for (const std::string& content : contents) {
    const std::string path = directory.Write("x.gz", content);
    SkippedEntries skipped;
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                               ReadInput(path, &skipped));
    EXPECT_THAT(files, ElementsAre(Pair("x.gz", content)));
    EXPECT_EQ(skipped.symbolic_links, 0);
    EXPECT_EQ(KindOf(path), "file");
  }
}

// A file has the same time in a directory and as an input.
TEST(OpenSourceTest, APlainFileKeepsItsTime) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("in/file", "text");
  const timespec times[2] = {{.tv_sec = 1'111'111'111, .tv_nsec = 0},
                             {.tv_sec = 987'654'321, .tv_nsec = 999'999'999}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  for (const std::string& input : {path, directory / "in"}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Source> source,
        OpenSource(input, {.spool_directory = directory.path()}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadAllDocuments(*source));
    ASSERT_EQ(documents.size(), 1);
    EXPECT_EQ(documents[0].document.capture_time_ms, 987'654'321'000) << input;
  }
}

TEST(OpenSourceTest, LooksAtContentsNotAtNames) {
  const TemporaryDirectory directory;
  const std::string warc =
      MakeWarcRecord({"WARC-Target-URI: a"}, "block", "WARC/1.1");
  EXPECT_EQ(KindOf(directory.Write("a.txt", warc)), "warc");
  EXPECT_EQ(KindOf(directory.Write("a.txt", Gzip(warc) + Gzip(warc))), "warc");
  EXPECT_EQ(KindOf(directory.Write(
                "a.warc", MakeTestArchive("ustar", "none", {{"a", "1"}}))),
            "tar");
  EXPECT_EQ(KindOf(directory.Write(
                "a.warc.gz", MakeTestArchive("ustar", "gzip", {{"a", "1"}}))),
            "tar");
  EXPECT_EQ(
      KindOf(directory.Write("a.txt", MakeTestArchive("zip", "none", {}))),
      "zip");
  EXPECT_EQ(KindOf(directory.path()), "directory");
}

TEST(OpenSourceTest, ReadsCompressedWarcs) {
  const TemporaryDirectory directory;
  const std::string warc =
      MakeWarcRecord({"WARC-Target-URI: a"}, MakeTestText(100000, 1));
  const std::string path = directory.Write("x", Gzip(warc) + Gzip(warc));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  EXPECT_THAT(files, ElementsAre(Pair("a", warc), Pair("a", warc)));
}

TEST(OpenSourceTest, RefusesWhatOnlyLooksLikeAnArchive) {
  const TemporaryDirectory directory;
  std::string tar = MakeTestArchive("ustar", "none", {{"a", "1"}});
  tar[0] = 'b';
  EXPECT_THAT(OpenSource(directory.Write("x.tar", tar),
                         {.spool_directory = directory.path()}),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("put it into a directory")));
  EXPECT_THAT(OpenSource(directory.Write("x.gz", "\x1F\x8B\x08 no gzip"),
                         {.spool_directory = directory.path()}),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("put it into a directory")));
}

TEST(OpenSourceTest, RefusesWhatIsNeitherFileNorDirectory) {
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      OpenSource(directory / "pipe", {.spool_directory = directory.path()}),
      FailsWith(absl::StatusCode::kInvalidArgument,
                HasSubstr("give - as the input")));
  EXPECT_THAT(OpenSource("/dev/null", {.spool_directory = directory.path()}),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      OpenSource(directory / "missing", {.spool_directory = directory.path()}),
      FailsWith(absl::StatusCode::kNotFound, HasSubstr("/missing")));
}

TEST(SpoolTest, LeavesNoNameBehind) {
  const TemporaryDirectory directory;
  int ends[2] = {-1, -1};
  // Non-blocking, as a pipe or socket of another program may be.
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
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
      SpoolToUnnamedFile(ends[0], "pipe", directory.path(), text.size());
  writer.join();
  close(ends[0]);
  QUIRE_ASSERT_OK(file);
  EXPECT_THAT(std::vector(std::filesystem::directory_iterator(directory.path()),
                          std::filesystem::directory_iterator()),
              IsEmpty());
  FileStream stream(*file);
  std::string back(text.size() + 1, '\0');
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             ReadFully(stream, AsMutableBytes(back)));
  back.resize(size);
  EXPECT_EQ(back, text);
}

TEST(SpoolTest, StopsAtTheLimit) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("in", MakeTestText(3000, 1));
  for (const uint64_t size_bytes_max : {3000u, 2999u}) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY));
    const absl::StatusOr<std::shared_ptr<const InputFile>> file =
        SpoolToUnnamedFile(fd.get(), "in", directory.path(), size_bytes_max);
    EXPECT_EQ(file.status().code(), size_bytes_max == 3000
                                        ? absl::StatusCode::kOk
                                        : absl::StatusCode::kResourceExhausted);
  }
}

TEST(SpoolTest, KeepsZerosInHoles) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK_AND_ASSIGN(Spool spool,
                             Spool::Create(directory.path(), "test"));
  const std::string zeros(1 << 20, '\0');
  const std::string text = MakeTestText(5000, 1);
  for (int i = 0; i < 64; ++i) {
    QUIRE_ASSERT_OK(spool.Append(AsBytes(zeros)));
  }
  QUIRE_ASSERT_OK(spool.Append(AsBytes(text)));
  QUIRE_ASSERT_OK(spool.Append(AsBytes(zeros)));
  EXPECT_EQ(spool.size_bytes(), 65 * zeros.size() + text.size());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const InputFile> file,
                             std::move(spool).Finish("spool"));
  EXPECT_EQ(*file->SizeBytes(), 65 * zeros.size() + text.size());
  std::string back(text.size() + 2, 'x');
  QUIRE_ASSERT_OK(
      file->ReadAt(64 * zeros.size() - 1, AsMutableBytes(back)).status());
  EXPECT_EQ(back, std::string(1, '\0') + text + std::string(1, '\0'));
}

TEST(SpoolTest, ReadsZerosAtItsEnd) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK_AND_ASSIGN(Spool spool,
                             Spool::Create(directory.path(), "test"));
  QUIRE_ASSERT_OK(spool.Append(AsBytes("text")));
  QUIRE_ASSERT_OK(spool.Append(AsBytes(std::string(6, '\0'))));
  std::string back(10, 'x');
  QUIRE_ASSERT_OK(spool.ReadAt(0, AsMutableBytes(back)));
  EXPECT_EQ(back, "text" + std::string(6, '\0'));
}

TEST(FileStreamTest, SkipsToTheEndAndNoFurther) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::shared_ptr<const InputFile> file,
      InputFile::Open(directory.Write("file", "0123456789")));
  FileStream stream(file);
  QUIRE_ASSERT_OK_AND_ASSIGN(uint64_t skipped, stream.Skip(7));
  EXPECT_EQ(skipped, 7u);
  QUIRE_ASSERT_OK_AND_ASSIGN(skipped, stream.Skip(7));
  EXPECT_EQ(skipped, 3u);
  QUIRE_ASSERT_OK_AND_ASSIGN(skipped, stream.Skip(7));
  EXPECT_EQ(skipped, 0u);
}

TEST(SpoolTest, NamesTheDirectoryThatCannotTakeIt) {
  EXPECT_THAT(
      SpoolToUnnamedFile(0, "standard input", "/nonexistent", 1),
      FailsWith(absl::StatusCode::kNotFound, HasSubstr("/nonexistent")));
}

}  // namespace
}  // namespace quire
