// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/container_source.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_matchers.h"
#include "server/ingest/ingest_testing.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Kind = TestEntry::Kind;

std::vector<TestEntry> SomeFiles() {
  return {{"b.txt", MakeTestText(100000, 1)},
          {"folder/", "", Kind::kFolder},
          {"folder/empty", ""},
          {"folder/a.txt", "short"},
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
  const TestFolder folder;
  const std::vector<TestEntry> entries = SomeFiles();
  for (const char* format : {"gnutar", "pax"}) {
    for (const char* filter : {"none", "gzip", "bzip2", "xz", "zstd", "lz4",
                               "lzip", "lzma", "compress"}) {
      SCOPED_TRACE(absl::StrCat(format, " ", filter));
      const std::string path = folder.Write(
          "no-extension", MakeTestArchive(format, filter, entries));
      QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
      EXPECT_EQ(files, FilesOf(entries));
    }
  }
}

TEST(ContainerSourceTest, ReadsZips) {
  const TestFolder folder;
  const std::vector<TestEntry> entries = SomeFiles();
  for (const char* filter : {"none", "gzip", "xz"}) {
    SCOPED_TRACE(filter);
    const std::string path =
        folder.Write("zip", MakeTestArchive("zip", filter, entries));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
    EXPECT_EQ(files, FilesOf(entries));
  }
}

TEST(ContainerSourceTest, CountsWhatIsNoRegularFile) {
  const TestFolder folder;
  const std::string path = folder.Write(
      "tar", MakeTestArchive("gnutar", "none",
                             {{"link", "file", Kind::kSymbolicLink},
                              {"file", "contents"},
                              {"pipe", "", Kind::kPipe},
                              {"dangling", "elsewhere", Kind::kHardLink},
                              {"folder/", "", Kind::kFolder}}));
  SkippedEntries skipped;
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                             ReadInput(path, &skipped));
  EXPECT_THAT(files, ElementsAre(Pair("file", "contents")));
  EXPECT_EQ(skipped.symbolic_links, 1);
  EXPECT_EQ(skipped.special_files, 1);
  EXPECT_EQ(skipped.dangling_links, 1);
}

TEST(ContainerSourceTest, HardLinksHaveTheContentsOfTheirTarget) {
  const TestFolder folder;
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
      {"last", "last"}};
  for (const char* filter : {"none", "gzip"}) {
    SCOPED_TRACE(filter);
    const std::string path =
        folder.Write("tar", MakeTestArchive("gnutar", filter, entries));
    SkippedEntries skipped;
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files,
                               ReadInput(path, &skipped));
    EXPECT_THAT(
        files,
        ElementsAre(Pair("one", "first one"), Pair("big", big),
                    Pair("link to one", "first one"), Pair("one", "second one"),
                    Pair("link to big", big),
                    Pair("link to one again", "second one"),
                    Pair("link to link", "first one"), Pair("last", "last")));
    EXPECT_EQ(skipped.dangling_links, 1);
  }
}

// Sparse files as GNU tar's oldest format ("S") writes them, made by hand:
// libarchive only writes its own.
std::string GnuSparseTar(const std::string& data, uint64_t data_offset,
                         uint64_t size_bytes) {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  const auto octal = [](uint64_t value) {
    std::string digits(11, '0');
    for (size_t i = digits.size(); i-- > 0; value /= 8) {
      digits[i] = static_cast<char>('0' + value % 8);
    }
    return digits;
  };
  put(0, "sparse");
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal(data.size()));
  put(136, octal(0));
  put(148, "        ");
  put(156, "S");
  put(257, "ustar  ");
  put(386, octal(data_offset));
  put(398, octal(data.size()));
  put(410, octal(size_bytes));
  put(422, octal(0));
  put(483, octal(size_bytes));
  uint64_t sum = 0;
  for (const char c : header) {
    sum += static_cast<uint8_t>(c);
  }
  put(148, octal(sum).substr(4) + " ");
  const size_t padding = (512 - data.size() % 512) % 512;
  return header + data + std::string(padding + 1024, '\0');
}

TEST(ContainerSourceTest, HolesOfSparseFilesAreZeros) {
  const TestFolder folder;
  const std::string data = MakeTestText(1000, 3);
  const std::string path =
      folder.Write("tar", GnuSparseTar(data, 500000, 1000000));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  ASSERT_EQ(files.size(), 1);
  EXPECT_EQ(files[0].first, "sparse");
  EXPECT_EQ(files[0].second, std::string(500000, '\0') + data +
                                 std::string(1000000 - 501000, '\0'));
}

TEST(ContainerSourceTest, ATarCutAnywhereIsAnError) {
  const TestFolder folder;
  std::vector<TestEntry> entries;
  for (uint64_t i = 0; i < 3; ++i) {
    entries.push_back({absl::StrCat("file", i), MakeTestText(700 + i, i)});
  }
  const std::string tar = MakeTestArchive("ustar", "none", entries);
  const size_t end = size_t{3} * (512 + 1024);
  for (size_t size = 512; size < end; size += 128) {
    const std::string path = folder.Write("tar", tar.substr(0, size));
    EXPECT_THAT(ReadInput(path),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << size;
  }
  // The end mark alone, without the padding that usually follows.
  const std::string path = folder.Write("tar", tar.substr(0, end + 1024));
  EXPECT_THAT(ReadInput(path), IsOk());
}

TEST(ContainerSourceTest, ACompressedTarCutAnywhereIsAnError) {
  const TestFolder folder;
  const std::vector<TestEntry> entries = {{"a", MakeTestText(2000, 1)},
                                          {"b", MakeTestText(2000, 2)}};
  for (const char* filter : {"gzip", "xz", "zstd", "bzip2"}) {
    const std::string tar = MakeTestArchive("ustar", filter, entries);
    for (size_t cut = 1; cut < tar.size() - 20; cut += 97) {
      const std::string path =
          folder.Write("tar", tar.substr(0, tar.size() - cut));
      EXPECT_THAT(ReadInput(path),
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr(path)))
          << filter << " without its last " << cut << " bytes";
    }
  }
}

TEST(ContainerSourceTest, ReadsTarsOneAfterTheOther) {
  const TestFolder folder;
  const std::string path =
      folder.Write("tar", MakeTestArchive("ustar", "none", {{"a", "1"}}) +
                              MakeTestArchive("ustar", "none", {{"b", "2"}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents files, ReadInput(path));
  EXPECT_THAT(files, ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST(ContainerSourceTest, GarbageBehindATarIsAnError) {
  const TestFolder folder;
  const std::string path =
      folder.Write("tar", MakeTestArchive("ustar", "none", {{"a", "1"}}) +
                              MakeTestText(2000, 1));
  EXPECT_THAT(ReadInput(path), HasCode(absl::StatusCode::kDataLoss));
}

TEST(ContainerSourceTest, AZipCutOrDamagedIsAnError) {
  const TestFolder folder;
  const std::string zip = MakeTestArchive(
      "zip", "none", {{"a", MakeTestText(3000, 1)}, {"b", "2"}});
  for (size_t size = 30; size < zip.size(); size += 31) {
    const std::string path = folder.Write("zip", zip.substr(0, size));
    EXPECT_THAT(ReadInput(path), HasCode(absl::StatusCode::kDataLoss)) << size;
  }
  EXPECT_THAT(ReadInput(folder.Write("zip", zip.substr(0, 1000))),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("begins like a zip, but has no end")));
  std::string damaged = zip;
  damaged[500] = static_cast<char>(damaged[500] ^ 0x10);
  EXPECT_THAT(ReadInput(folder.Write("zip", damaged)),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("\"a\"")));
}

TEST(ContainerSourceTest, EveryPassIsTheSame) {
  const TestFolder folder;
  const std::string path =
      folder.Write("tar", MakeTestArchive("pax", "xz", SomeFiles()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Source> source,
                             OpenSource(path, folder.path()));
  EXPECT_STREQ(source->kind(), "tar");
  // Deleted or replaced: the descriptor still has it.
  folder.Write("other", "not a tar");
  ASSERT_EQ(std::rename((folder / "other").c_str(), path.c_str()), 0);
  for (int pass = 0; pass < 3; ++pass) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<IngestedDocument> documents,
                               ReadAllDocuments(*source));
    EXPECT_EQ(documents.size(), FilesOf(SomeFiles()).size());
  }
}

}  // namespace
}  // namespace quire
