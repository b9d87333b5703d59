// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/container_source.h"

#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "server/ingest/sources/streams/gzip_stream.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = TestEntry::Kind;

std::vector<TestEntry> SomeFiles() {
  return {{"b.txt", MakeTestText(100000, 1)},
          {"directory/", "", Kind::kDirectory},
          {"directory/empty", ""},
          {"directory/a.txt", "short"},
          {"\xFF\xFE not UTF-8", "bytes"},
          {"\xC3\xA4 is UTF-8", "more"},
          {std::string(300, 'l') + "/" + std::string(200, 'n'), "long name"}};
}

IdsAndContents FilesOf(const std::vector<TestEntry>& entries) {
  IdsAndContents files;
  for (const TestEntry& entry : entries) {
    if (entry.kind == Kind::kFile) {
      files.emplace_back(entry.name, entry.contents);
    }
  }
  return files;
}

TEST(ContainerSourceTest, ReadsTarsInEveryFormatAndCompression) {
  const TemporaryDirectory directory;
  const std::vector<TestEntry> entries = SomeFiles();
  for (const char* format : {"gnutar", "pax"}) {
    for (const char* filter : {"none", "gzip", "bzip2", "xz", "zstd", "lz4",
                               "lzip", "lzma", "compress"}) {
      SCOPED_TRACE(absl::StrCat(format, " ", filter));
      const std::string path = directory.Write(
          "no-extension", MakeTestArchive(format, filter, entries));
      QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
      EXPECT_EQ(files, FilesOf(entries));
    }
  }
}

TEST(ContainerSourceTest, ReadsZips) {
  const TemporaryDirectory directory;
  const std::vector<TestEntry> entries = SomeFiles();
  for (const char* filter : {"none", "gzip", "xz"}) {
    SCOPED_TRACE(filter);
    const std::string path =
        directory.Write("zip", MakeTestArchive("zip", filter, entries));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
    EXPECT_EQ(files, FilesOf(entries));
  }
}

TEST(ContainerSourceTest, CountsWhatIsNoRegularFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write(
      "tar", MakeTestArchive("gnutar", "none",
                             {{"link", "file", Kind::kSymbolicLink},
                              {"file", "contents"},
                              {"pipe", "", Kind::kPipe},
                              {"dangling", "elsewhere", Kind::kHardLink},
                              {"directory/", "", Kind::kDirectory}}));
  SkippedEntries skipped;
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(path, &skipped));
  EXPECT_THAT(files, ElementsAre(Pair("file", "contents")));
  EXPECT_EQ(skipped.symbolic_links, 1);
  EXPECT_EQ(skipped.special_files, 1);
  EXPECT_EQ(skipped.dangling_links, 1);
}

TEST(ContainerSourceTest, HardLinksHaveTheContentsOfTheirTarget) {
  const TemporaryDirectory directory;
  const std::string big = MakeTestText(3000000, 7);
  const std::vector<TestEntry> entries = {
      {"early", "to nothing before it", Kind::kHardLink},
      {"one", "first one"},
      {"big", big},
      {"link to one", "one", Kind::kHardLink},
      {"one", "second one"},
      {"link to big", "big", Kind::kHardLink},
      {"link to one again", "one", Kind::kHardLink},
      {"link to link", "link to one", Kind::kHardLink},
      {"gone", "was a file"},
      {"gone", "one", Kind::kSymbolicLink},
      {"link to gone", "gone", Kind::kHardLink},
      {"last", "last"}};
  for (const char* filter : {"none", "gzip"}) {
    SCOPED_TRACE(filter);
    const std::string path =
        directory.Write("tar", MakeTestArchive("gnutar", filter, entries));
    SkippedEntries skipped;
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                               ReadInput(path, &skipped));
    EXPECT_THAT(files,
                ElementsAre(Pair("one", "first one"), Pair("big", big),
                            Pair("link to one", "first one"),
                            Pair("one", "second one"), Pair("link to big", big),
                            Pair("link to one again", "second one"),
                            Pair("link to link", "first one"),
                            Pair("gone", "was a file"), Pair("last", "last")));
    EXPECT_EQ(skipped.dangling_links, 2);
  }
}

// Links in another order than their targets, several to one target.
std::vector<TestEntry> FilesAndManyLinks() {
  std::vector<TestEntry> entries;
  for (uint64_t i = 0; i < 10; ++i) {
    entries.push_back({absl::StrCat("file", i), MakeTestText(5000 + i, i)});
  }
  for (int i = 0; i < 60; ++i) {
    entries.push_back({absl::StrCat("link", i),
                       absl::StrCat("file", 9 - i % 10), Kind::kHardLink});
  }
  entries.push_back({"empty", ""});
  entries.push_back({"link to empty", "empty", Kind::kHardLink});
  return entries;
}

TEST(ContainerSourceTest, LinksOfACompressedTarDoNotDecompressItOnceEach) {
  const TemporaryDirectory directory;
  const std::vector<TestEntry> entries = FilesAndManyLinks();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::shared_ptr<const InputFile> file,
      InputFile::Open(directory.Write(
          "tar.gz", MakeTestArchive("gnutar", "gzip", entries))));
  int opened_count = 0;
  ContainerInput input;
  input.name = file->name();
  input.open = [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
    ++opened_count;
    return OpenGzipStream(std::make_unique<FileStream>(file), "tar.gz");
  };
  input.spool_directory = directory.path();
  const std::unique_ptr<Source> source = MakeTarSource(std::move(input));
  for (int pass = 1; pass <= 3; ++pass) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadAllDocuments(*source));
    ASSERT_EQ(documents.size(), entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool is_link = entries[i].kind == Kind::kHardLink;
      const size_t target = i < 70 ? 9 - (i - 10) % 10 : 70;
      EXPECT_EQ(documents[i].document.id, entries[i].name);
      EXPECT_EQ(documents[i].contents, entries[is_link ? target : i].contents);
    }
    // Two passes to find the targets, and one per reader.
    EXPECT_EQ(opened_count, 2 + pass);
  }
  // The spool is unnamed.
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(directory.path()), {}),
      1);
}

TEST(ContainerSourceTest, TargetsOfLinksAreBounded) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write(
      "tar.gz", MakeTestArchive("gnutar", "gzip",
                                {{"a", "x"},
                                 {"l", "a", Kind::kHardLink},
                                 {"a", std::string(100000, 'x')}}));
  for (const uint64_t size_bytes_max : {100000u, 100001u}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const InputFile> file,
                               InputFile::Open(path));
    ContainerInput input;
    input.name = path;
    input.open = [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
      return OpenGzipStream(std::make_unique<FileStream>(file), path);
    };
    input.spool_directory = directory.path();
    input.size_bytes_max = size_bytes_max;
    const absl::StatusOr<std::vector<IngestedDocument>> documents =
        ReadAllDocuments(*MakeTarSource(std::move(input)));
    if (size_bytes_max == 100001) {
      EXPECT_THAT(documents, IsOk());
    } else {
      EXPECT_THAT(documents,
                  FailsWith(absl::StatusCode::kResourceExhausted,
                            HasSubstr("entry 2 (from 0), \"a\", at byte ")));
    }
  }
}

TEST(ContainerSourceTest, HolesOfSparseFilesAreZeros) {
  const TemporaryDirectory directory;
  const std::string data = MakeTestText(1000, 3);
  const std::string path =
      directory.Write("tar", GnuSparseTar(data, 500000, 1000000));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  ASSERT_EQ(files.size(), 1);
  EXPECT_EQ(files[0].first, "sparse");
  EXPECT_EQ(files[0].second, std::string(500000, '\0') + data +
                                 std::string(1000000 - 501000, '\0'));
}

TEST(ContainerSourceTest, CaptureTimesAreInMilliseconds) {
  const TemporaryDirectory directory;
  // The older format has whole seconds.
  for (const auto& [format, time_ms] :
       {std::pair("ustar", int64_t{1'000'000'000'000}),
        std::pair("pax", int64_t{1'000'000'000'250})}) {
    const std::string path =
        directory.Write("tar", MakeTestArchive(format, "none", {{"a", "1"}}));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Source> source,
        OpenSource(path, {.spool_directory = directory.path()}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                               source->Open());
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::optional<SourceDocument> document,
                               reader->Next());
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(document->capture_time_ms, time_ms) << format;
  }
}

TEST(ContainerSourceTest, ReadsTarsWhoseChecksumIsOfSignedBytes) {
  const TemporaryDirectory directory;
  std::string tar = MakeTestArchive("ustar", "none", {{"\xC3\xA4", "1"}});
  constexpr size_t kChecksumOffset = 148;
  tar.replace(kChecksumOffset, 8, 8, ' ');
  int sum = 0;
  for (const char byte : tar.substr(0, 512)) {
    sum += static_cast<signed char>(byte);
  }
  tar.replace(kChecksumOffset, 6, absl::StrFormat("%06o", sum));
  tar[kChecksumOffset + 6] = '\0';
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(directory.Write("tar", tar)));
  EXPECT_THAT(files, ElementsAre(Pair("\xC3\xA4", "1")));
}

// Returns the sentences that one pass notes.
std::vector<std::string> NotesOf(const std::string& path) {
  std::vector<std::string> notes;
  const absl::StatusOr<std::unique_ptr<Source>> source = OpenSource(path, {});
  const std::unique_ptr<SourceReader> reader = *(*source)->Open();
  reader->Listen([&notes](EntryNote /*note*/, const std::string& text) {
    notes.push_back(text);
  });
  ReadAllDocuments(*reader).IgnoreError();
  return notes;
}

TEST(ContainerSourceTest, ATarCutAnywhereIsAnErrorExceptBetweenEntries) {
  const TemporaryDirectory directory;
  std::vector<TestEntry> entries;
  for (uint64_t i = 0; i < 3; ++i) {
    entries.push_back({absl::StrCat("file", i), MakeTestText(700 + i, i)});
  }
  const std::string tar = MakeTestArchive("ustar", "none", entries);
  const size_t end = size_t{3} * (512 + 1024);
  for (size_t size = 512; size < end; size += 128) {
    const std::string path = directory.Write("tar", tar.substr(0, size));
    const absl::StatusOr<IdsAndContents> files = ReadInput(path);
    if (size % (512 + 1024) == 0) {
      // Between entries, as some programs end a tar.
      ASSERT_THAT(files, IsOk());
      EXPECT_EQ(files->size(), size / (512 + 1024));
      EXPECT_THAT(NotesOf(path),
                  ElementsAre(HasSubstr("without the zeros that end a tar")));
      continue;
    }
    EXPECT_THAT(files, FailsWith(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << size;
  }
  // Only the end mark, without the usual padding.
  const std::string path = directory.Write("tar", tar.substr(0, end + 1024));
  EXPECT_THAT(ReadInput(path), IsOk());
  EXPECT_THAT(NotesOf(path), IsEmpty());
}

// Returns a tar header with a right checksum.
std::string TarHeader(const std::string& name, char type, size_t size) {
  std::string header = MakeTestArchive("ustar", "none", {{name, ""}});
  header.resize(512);
  header[156] = type;
  header.replace(124, 12, absl::StrFormat("%011o", size) + '\0');
  header.replace(148, 8, 8, ' ');
  int sum = 0;
  for (const char byte : header) {
    sum += static_cast<unsigned char>(byte);
  }
  header.replace(148, 7, absl::StrFormat("%06o", sum) + '\0');
  return header;
}

TEST(ContainerSourceTest, RefusesLaterVolumesOfATar) {
  const TemporaryDirectory directory;
  const std::string rest = "rest of it" + std::string(502 + 1024, '\0');
  const std::string keyword = "30 GNU.volume.filename=./name\n";
  for (const std::string& start :
       {TarHeader("name", 'M', 10),
        TarHeader("label", 'V', 0) + TarHeader("name", 'M', 10),
        TarHeader("pax", 'g', keyword.size()) + keyword +
            std::string(512 - keyword.size(), '\0') +
            TarHeader("name", '0', 10)}) {
    EXPECT_THAT(ReadInput(directory.Write("tar", start + rest)),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr("is a later volume of a tar of several")));
  }
  // A label alone is not an entry, and other global headers are no volumes.
  const std::string comment = "13 comment=x\n";
  for (const std::string& start :
       {TarHeader("label", 'V', 0) + TarHeader("name", '0', 10),
        TarHeader("pax", 'g', comment.size()) + comment +
            std::string(512 - comment.size(), '\0') +
            TarHeader("name", '0', 10)}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                               ReadInput(directory.Write("tar", start + rest)));
    EXPECT_THAT(files, ElementsAre(Pair("name", "rest of it")));
  }
  // The first volume.
  EXPECT_THAT(
      ReadInput(directory.Write("tar", TarHeader("name", '0', 5000) + rest)),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr("is one of several volumes")));
}

// Volumes that were joined: the header of each is in the text of a file.
TEST(ContainerSourceTest, NamesFilesThatAreContinued) {
  const TemporaryDirectory directory;
  const std::string tar = TarHeader("a", '0', 0) + TarHeader("b", 'M', 10) +
                          "rest of it" + std::string(502 + 1024, '\0');
  EXPECT_THAT(ReadInput(directory.Write("tar", tar)),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("continues a file of an earlier volume")));
}

TEST(ContainerSourceTest, NamesTheOffsetOfADamagedHeader) {
  const TemporaryDirectory directory;
  const std::string tar = TarHeader("a", '0', 10) + "first file" +
                          std::string(502, '\0') + std::string(512, 'x');
  EXPECT_THAT(ReadInput(directory.Write("tar", tar)),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("entry 1, from 0, at byte 1024")));
}

TEST(ContainerSourceTest, NamesWhatFollowsACompressedZip) {
  const TemporaryDirectory directory;
  const std::string zip = MakeTestArchive("zip", "none", {{"name", "text"}});
  for (const auto& [text, message] :
       {std::pair(zip + zip, "entries follow the list"),
        {zip + "words", "left out: 5 bytes after"},
        {zip.substr(0, zip.size() - 30), "the list that ends a zip is missing"},
        {zip.substr(0, zip.size() - 3), "the list that ends a zip"}}) {
    EXPECT_THAT(ReadInput(directory.Write("zip.gz", Gzip(text))),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  }
  std::string commented = zip + "a comment";
  commented[zip.size() - 2] = 9;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdsAndContents files,
      ReadInput(directory.Write("zip.gz", Gzip(commented))));
  EXPECT_THAT(files, ElementsAre(Pair("name", "text")));
}

TEST(ContainerSourceTest, NamesTextOfDirectoriesInAZip) {
  const TemporaryDirectory directory;
  std::string zip = MakeTestArchive("zip", "none", {{"name", "text"}});
  for (size_t at = zip.find("name"); at != std::string::npos;
       at = zip.find("name", at)) {
    zip.replace(at, 4, "nam/");
  }
  EXPECT_THAT(ReadInput(directory.Write("zip", zip)),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("4 bytes of text, which are left out")));
}

TEST(ContainerSourceTest, ATarOfZerosHasNoEntries) {
  const TemporaryDirectory directory;
  const std::string zeros(10240, '\0');
  for (const auto& [name, contents] :
       IdsAndContents{{"x.tar", zeros},
                      {"x.TAR", zeros.substr(0, 1024)},
                      {"x.tgz", Gzip(zeros)},
                      {"x.tar.zst", Zstd(zeros)}}) {
    const std::string path = directory.Write("in/" + name, contents);
    EXPECT_EQ(KindOf(path), "tar");
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
    EXPECT_THAT(files, IsEmpty());
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source,
                               OpenSource(directory / "in", {.expand = true}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadAllDocuments(*source));
    EXPECT_TRUE(documents.empty());
  }
  EXPECT_EQ(KindOf(directory.Write("zeros", zeros)), "file");
  EXPECT_THAT(ReadInput(directory.Write("x.tar", zeros + "text")),
              HasCode(absl::StatusCode::kDataLoss));
}

TEST(ContainerSourceTest, ACompressedTarCutAnywhereIsAnError) {
  const TemporaryDirectory directory;
  const std::vector<TestEntry> entries = {{"a", MakeTestText(2000, 1)},
                                          {"b", MakeTestText(2000, 2)}};
  for (const char* filter : {"gzip", "xz", "zstd", "bzip2"}) {
    const std::string tar = MakeTestArchive("ustar", filter, entries);
    for (size_t cut = 1; cut < tar.size() - 20; cut += 97) {
      const std::string path =
          directory.Write("tar", tar.substr(0, tar.size() - cut));
      EXPECT_THAT(ReadInput(path),
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr(path)))
          << filter << " without its last " << cut << " bytes";
    }
  }
}

// With quired build --keep-going.
TEST(ContainerSourceTest, TargetsInADamagedTarAreSearchedForOnce) {
  const TemporaryDirectory directory;
  const std::string tar =
      MakeTestArchive("gnutar", "gzip", FilesAndManyLinks());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const InputFile> file,
                             InputFile::Open(directory.Write(
                                 "tar.gz", tar.substr(0, tar.size() - 30))));
  int opened_count = 0;
  ContainerInput input;
  input.name = file->name();
  input.open = [&]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
    ++opened_count;
    return OpenGzipStream(std::make_unique<FileStream>(file), "tar.gz");
  };
  input.spool_directory = directory.path();
  const std::unique_ptr<Source> source = MakeTarSource(std::move(input));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SourceReader> reader,
                             source->Open());
  int failure_count = 0;
  while (true) {
    const auto document = reader->Next();
    failure_count += document.ok() ? 0 : 1;
    if (document.ok() ? !document->has_value() : !reader->CanContinue()) {
      break;
    }
  }
  EXPECT_GT(failure_count, 10);
  EXPECT_EQ(opened_count, 2);
}

// The targets of links are searched for, which skips large files.
TEST(ContainerSourceTest, DamageInASkippedFileOfACompressedTarIsAnError) {
  const TemporaryDirectory directory;
  const std::string tar = MakeTestArchive("gnutar", "gzip",
                                          {{"a", "contents"},
                                           {"link", "a", Kind::kHardLink},
                                           {"large", MakeTestText(4 << 20, 1)},
                                           {"last", "end"}});
  const std::string path =
      directory.Write("tar.gz", tar.substr(0, tar.size() / 2));
  EXPECT_THAT(ReadInput(path), FailsWith(absl::StatusCode::kDataLoss,
                                         HasSubstr("is it truncated?")));
}

TEST(ContainerSourceTest, ReadsTarsOneAfterTheOther) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write(
      "tar", MakeTestArchive("ustar", "none", {{"a", "1"}}) +
                 MakeTestArchive("ustar", "none", {{"b", "2"}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  EXPECT_THAT(files, ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST(ContainerSourceTest, GarbageBehindATarIsAnError) {
  const TemporaryDirectory directory;
  const std::string path =
      directory.Write("tar", MakeTestArchive("ustar", "none", {{"a", "1"}}) +
                                 MakeTestText(2000, 1));
  EXPECT_THAT(ReadInput(path), HasCode(absl::StatusCode::kDataLoss));
}

TEST(ContainerSourceTest, AZipCutOrDamagedIsAnError) {
  const TemporaryDirectory directory;
  const std::string zip = MakeTestArchive(
      "zip", "none", {{"a", MakeTestText(3000, 1)}, {"b", "2"}});
  for (size_t size = 30; size < zip.size(); size += 31) {
    const std::string path = directory.Write("zip", zip.substr(0, size));
    EXPECT_THAT(ReadInput(path), HasCode(absl::StatusCode::kDataLoss)) << size;
  }
  EXPECT_THAT(ReadInput(directory.Write("zip", zip.substr(0, 1000))),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("begins like a zip, but the list of its")));
  std::string damaged = zip;
  damaged[500] = static_cast<char>(damaged[500] ^ 0x10);
  EXPECT_THAT(ReadInput(directory.Write("zip", damaged)),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("\"a\"")));
}

TEST(ContainerSourceTest, ReadsZipsWhateverTheirCommentIs) {
  const TemporaryDirectory directory;
  const std::vector<TestEntry> entries = SomeFiles();
  const std::string zip = MakeTestArchive("zip", "none", entries);
  constexpr size_t kEndSize = 22;
  const std::string end = zip.substr(zip.size() - kEndSize);
  // The end of an empty zip, and one that locates bytes that are no entries.
  const std::string empty_end = end.substr(0, 4) + std::string(18, '\0');
  std::string false_end = empty_end;
  false_end[12] = 46;
  for (const std::string& comment :
       {std::string("short"), std::string("PK\5\6"),
        "PK\5\6" + std::string(100, 'x'), end, empty_end, false_end,
        std::string(20000, 'c'), std::string(0xFFFF, 'c'),
        std::string(0xFFFF - 200, 'c') + empty_end + std::string(178, 'c')}) {
    SCOPED_TRACE(comment.size());
    std::string commented = zip + comment;
    commented[zip.size() - 2] = static_cast<char>(comment.size() & 0xFF);
    commented[zip.size() - 1] = static_cast<char>(comment.size() >> 8);
    for (const char* prefix : {"", "PK\5\6 is not the end"}) {
      const std::string path = directory.Write("zip", prefix + commented);
      QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
      EXPECT_EQ(files, FilesOf(entries));
    }
  }
  // Bytes that are no comment.
  EXPECT_THAT(
      ReadInput(directory.Write("zip", zip + std::string(1000, 'g'))),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr(absl::StrCat("1,000 bytes at offset ", zip.size()))));
}

// A zip of Python's, with a byte more in its list: libarchive finds no entry,
// and no error.
TEST(ContainerSourceTest, RefusesAZipWhoseListIsElsewhere) {
  const TemporaryDirectory directory;
  const std::string zip = absl::HexStringToBytes(
      "504b0304140000000000000021001d289214110000001100000004000000"
      "643030303c3030303030303a36666537323538303e504b01021403140000"
      "000000000021000a1d289214110000001100000004000000000000000000"
      "000080010000000064303030504b05060000000001000100320000003300"
      "00000000");
  EXPECT_THAT(ReadInput(directory.Write("zip", zip)),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("the list of its entries is damaged")));
}

// Sets the system that made each entry and its flags, in the list of a zip.
void SetMaker(char system, char high_flags, std::string& zip) {
  for (size_t at = zip.find("PK\1\2"); at != std::string::npos;
       at = zip.find("PK\1\2", at + 4)) {
    zip[at + 5] = system;
    zip[at + 9] = high_flags;
  }
}

TEST(ContainerSourceTest, NamesFromPcsAreConverted) {
  const TemporaryDirectory directory;
  const std::string zip = MakeTestArchive(
      "zip", "none",
      {{"plain", "1"}, {"caf\x82.txt", "2"}, {"\xFFz\xB0", "3"}});
  for (const char system : {'\0', '\x0A'}) {
    std::string from_pc = zip;
    SetMaker(system, 0, from_pc);
    const std::string path = directory.Write("zip", from_pc);
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
    EXPECT_THAT(files,
                ElementsAre(Pair("plain", "1"), Pair("caf\xC3\xA9.txt", "2"),
                            Pair("\xC2\xA0z\xE2\x96\x91", "3")));
    EXPECT_THAT(NotesOf(path),
                ElementsAre(HasSubstr("was converted from code page 437"),
                            HasSubstr("was converted from code page 437")));
  }
  // By a program for Unix, which wrote what the file system had.
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(directory.Write("zip", zip)));
  EXPECT_THAT(files, ElementsAre(Pair("plain", "1"), Pair("caf\x82.txt", "2"),
                                 Pair("\xFFz\xB0", "3")));
  // Some programs do not mark UTF-8.
  std::string utf8 = MakeTestArchive("zip", "none", {{"caf\xC3\xA9", "1"}});
  SetMaker(0, 0, utf8);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents unmarked,
                             ReadInput(directory.Write("zip", utf8)));
  EXPECT_THAT(unmarked, ElementsAre(Pair("caf\xC3\xA9", "1")));
}

TEST(ContainerSourceTest, AZipMayHaveNoEntries) {
  const TemporaryDirectory directory;
  const std::string empty = "PK\5\6" + std::string(18, '\0');
  std::string commented = empty + "PK\5\6";
  commented[20] = 4;
  for (const std::string& zip : {empty, commented}) {
    const std::string path = directory.Write("zip", zip);
    EXPECT_EQ(KindOf(path), "zip");
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
    EXPECT_THAT(files, IsEmpty());
  }
  EXPECT_THAT(ReadInput(directory.Write("zip", empty + "and more")),
              HasCode(absl::StatusCode::kDataLoss));
  const std::vector<TestEntry> entries = SomeFiles();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const IdsAndContents files,
      ReadInput(directory.Write(
          "zip", empty + MakeTestArchive("zip", "none", entries))));
  EXPECT_EQ(files, FilesOf(entries));
}

TEST(ContainerSourceTest, EveryPassIsTheSame) {
  const TemporaryDirectory directory;
  const std::string path =
      directory.Write("tar", MakeTestArchive("pax", "xz", SomeFiles()));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Source> source,
      OpenSource(path, {.spool_directory = directory.path()}));
  EXPECT_STREQ(source->kind(), "tar");
  // Deleted or replaced: the descriptor stays valid.
  directory.Write("other", "not a tar");
  ASSERT_EQ(std::rename((directory / "other").c_str(), path.c_str()), 0);
  for (int pass = 0; pass < 3; ++pass) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadAllDocuments(*source));
    EXPECT_EQ(documents.size(), FilesOf(SomeFiles()).size());
  }
}

}  // namespace
}  // namespace quire
