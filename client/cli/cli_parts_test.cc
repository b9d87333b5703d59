// SPDX-License-Identifier: Apache-2.0
//
// Parts of the command line that need no server.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/batch_items.h"
#include "client/cli/cli_settings.h"
#include "client/cli/formats/gzip_members.h"
#include "client/cli/formats/warc_format.h"
#include "client/cli/output_file.h"
#include "client/cli/shown_text.h"
#include "client/cli/testing/program_runner.h"
#include "codecs/base/document_item.h"
#include "codecs/base/tar_format.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GzipMembersTest, EndsAMemberOnce) {
  GzipMembers members;
  size_t size = 0;
  const auto sink = [&](ByteView bytes) {
    size += bytes.size();
    return absl::OkStatus();
  };
  QUIRE_EXPECT_OK(members.EndMember(sink));
  EXPECT_EQ(size, 0u);
  QUIRE_EXPECT_OK(members.Write(AsBytes("text"), sink));
  QUIRE_EXPECT_OK(members.EndMember(sink));
  const size_t member_size = size;
  EXPECT_GT(member_size, 20u);
  QUIRE_EXPECT_OK(members.EndMember(sink));
  EXPECT_EQ(size, member_size);
}

TEST(ShownTextTest, WritesJson) {
  EXPECT_EQ(JsonBytes("id", "x"), "\"id\":\"x\"");
  EXPECT_EQ(JsonBytes("id", "\xC2\x9B"), "\"id\":\"\\u009b\"");
  EXPECT_EQ(JsonBytes("id", "\xFF"), "\"id_base64\":\"/w==\"");
}

TEST(ShownTextTest, NamesFilesSafely) {
  EXPECT_EQ(SafeFileName("a-b_c.d"), "a-b_c.d");
  EXPECT_EQ(SafeFileName("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
  EXPECT_EQ(SafeFileName("."), "%2E");
  EXPECT_EQ(SafeFileName(""), "%");
  EXPECT_EQ(SafeFileName("%"), "%25");
  EXPECT_EQ(SafeFileName(absl::string_view("\0", 1)), "%00");
  std::set<std::string> names;
  for (size_t size = 190; size < 300; ++size) {
    for (const char c : {'a', '/', '%'}) {
      const std::string name = SafeFileName(std::string(size, c));
      EXPECT_LE(name.size(), 200u);
      EXPECT_TRUE(names.insert(name).second) << size << c;
    }
  }
}

TEST(ShownTextTest, WritesTimes) {
  EXPECT_EQ(FormatTimeMs(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTimeMs(-1), "1969-12-31T23:59:59.999Z");
}

std::vector<std::string> Split(bool null_separated,
                               const std::vector<std::string>& pieces) {
  ItemSplitter splitter(null_separated);
  std::vector<std::string> items;
  const auto take = [&] {
    for (;;) {
      const auto item = splitter.Next();
      ASSERT_TRUE(item.ok()) << item.status();
      if (!item->has_value()) {
        return;
      }
      items.push_back(**item);
    }
  };
  for (const std::string& piece : pieces) {
    splitter.Feed(piece);
    take();
  }
  splitter.Finish();
  take();
  return items;
}

TEST(BatchItemsTest, SplitsLines) {
  EXPECT_THAT(Split(false, {"a\nb\n"}), ElementsAre("a", "b"));
  EXPECT_THAT(Split(false, {"a", "b\n", "\n\nc", " d\r\n", "e"}),
              ElementsAre("ab", "c d\r", "e"));
  EXPECT_THAT(Split(false, {}), IsEmpty());
  EXPECT_THAT(Split(false, {"\n\n"}), IsEmpty());
}

TEST(BatchItemsTest, SplitsAtNulBytes) {
  EXPECT_THAT(Split(true, {std::string("a\nb\0\0c", 6)}),
              ElementsAre("a\nb", "", "c"));
  EXPECT_THAT(Split(true, {std::string("a\0", 2)}), ElementsAre("a"));
}

TEST(BatchItemsTest, NamesOneOfSeveralDocuments) {
  const auto parse = [](const std::string& item) {
    return std::get<DocumentKey>(*ParseBatchItem(ItemForm::kId, item));
  };
  EXPECT_EQ(parse("a\t@7").occurrence, 7u);
  EXPECT_EQ(std::get<std::string>(parse("a\t@7").name), "a");
  EXPECT_EQ(std::get<std::string>(parse("a\t@1\t@2").name), "a\t@1");
  for (const std::string id : {"a", "a@7", "a\t@", "a\t@-1", "a\t@ 1", "a\t@1x",
                               "a\t@1\r", "a\t@99999999999999999999"}) {
    EXPECT_EQ(std::get<std::string>(parse(id).name), id);
    EXPECT_FALSE(parse(id).occurrence.has_value()) << id;
    EXPECT_EQ(FormatDocumentItem(id, std::nullopt), id);
  }
  EXPECT_EQ(FormatDocumentItem("a", 3), "a\t@3");
  EXPECT_EQ(FormatDocumentItem("", std::nullopt), "\t@0");
  EXPECT_EQ(FormatDocumentItem("a\t@7", std::nullopt), "a\t@7\t@0");
}

TEST(TarFormatTest, WritesWhatUstarCannotHoldInAPaxHeader) {
  EXPECT_EQ(TarHeader("a", 5, 1000).size(), 512u);
  EXPECT_THAT(TarHeader("a", uint64_t{1} << 33, 1000),
              HasSubstr("19 size=8589934592\n"));
  EXPECT_THAT(TarHeader("a", 5, 1500), HasSubstr("15 mtime=1.500\n"));
  EXPECT_THAT(TarHeader("a", 5, -1500), HasSubstr("16 mtime=-1.500\n"));
  EXPECT_THAT(TarHeader("a", 5, INT64_MIN), HasSubstr("-9223372036854775.808"));
  EXPECT_THAT(TarHeader("\xFF", 5, 0), HasSubstr("hdrcharset=BINARY\n"));
  // Lengths around which the length of a record gains a digit.
  for (size_t size = 80; size < 1100; ++size) {
    const std::string header = TarHeader(std::string(size, 'n'), 0, 0);
    EXPECT_EQ(header.size() % 512, 0u);
    const size_t end = header.find('\n');
    EXPECT_EQ(end != std::string::npos, size > 100);
    if (size > 100) {
      EXPECT_EQ(std::stoul(header.substr(512)), end + 1 - 512) << size;
    }
  }
  EXPECT_EQ(TarPadding(0).size(), 0u);
  EXPECT_EQ(TarPadding(1).size(), 511u);
  EXPECT_EQ(TarPadding(512).size(), 0u);
}

TEST(TarFormatTest, NamesWhatNoFileCanBeNamed) {
  EXPECT_EQ(TarName("a/b"), "a/b");
  EXPECT_EQ(TarName(""), "%");
  EXPECT_EQ(TarName("http://a/"), "http://a%2F");
  EXPECT_EQ(TarName(absl::string_view("a\0b", 3)), "a%00b");
}

TEST(TarFormatTest, NamesNothingOutsideTheDirectory) {
  EXPECT_EQ(TarName("../../x"), "%2E./%2E./x");
  EXPECT_EQ(TarName("/etc/passwd"), "%2Fetc/passwd");
  EXPECT_EQ(TarName("//etc"), "%2F/etc");
  EXPECT_EQ(TarName("/"), "%2F");
  EXPECT_EQ(TarName("//"), "%2F%2F");
  EXPECT_EQ(TarName(".."), "%2E.");
  EXPECT_EQ(TarName("."), "%2E");
  EXPECT_EQ(TarName("a/.."), "a/%2E.");
  EXPECT_EQ(TarName("a/../../b/./c"), "a/%2E./%2E./b/%2E/c");
  EXPECT_EQ(TarName("../"), "%2E.%2F");
  // Ordinary names stay unchanged.
  for (const char* name :
       {".hidden", "..a", "a..", "...", "a/.b/..c", "a//b"}) {
    EXPECT_EQ(TarName(name), name);
  }
}

TEST(WarcFormatTest, MakesUris) {
  EXPECT_EQ(WarcTargetUri("https://a/b?c#d%20"), "https://a/b?c#d%20");
  EXPECT_EQ(WarcTargetUri("https://a/\xC3\xA9 \r\n"),
            "https://a/%C3%A9%20%0D%0A");
  EXPECT_EQ(WarcTargetUri("urn:x:1"), "urn:x:1");
  EXPECT_EQ(WarcTargetUri("/etc/x"), "file:///%2Fetc/x");
  EXPECT_EQ(WarcTargetUri("a?b#c%20"), "file:///a%3Fb%23c%2520");
  EXPECT_EQ(WarcTargetUri("://a"), "file:///://a");
  EXPECT_EQ(WarcTargetUri(""), "file:///");
}

TEST(WarcFormatTest, KeepsHeadersFromBeingBroken) {
  v1::ArchiveDescription archive;
  archive.set_uuid("u");
  v1::Document document;
  document.set_id("a\r\nWARC-Type: response");
  document.set_media_type("text/html\r\nContent-Length: 0");
  document.mutable_range()->set_size_bytes(7);
  const std::string header = WarcResourceHeader(archive, document, 0);
  EXPECT_THAT(header, HasSubstr("WARC-Target-URI: file:///a%0D%0AWARC-Type:"));
  EXPECT_THAT(header, HasSubstr("Content-Type: application/octet-stream\r\n"));
  EXPECT_THAT(header, HasSubstr("Content-Length: 7\r\n\r\n"));
  EXPECT_EQ(header, WarcResourceHeader(archive, document, 0));
  document.set_ordinal(1);
  EXPECT_NE(header, WarcResourceHeader(archive, document, 0));
}

TEST(BatchItemsTest, SplitsMuchInput) {
  std::string input;
  for (int i = 0; i < 50000; ++i) {
    absl::StrAppend(&input, "item/", i, "\n");
  }
  std::vector<std::string> pieces;
  for (size_t i = 0; i < input.size(); i += 777) {
    pieces.push_back(input.substr(i, 777));
  }
  const std::vector<std::string> items = Split(false, pieces);
  ASSERT_EQ(items.size(), 50000u);
  EXPECT_EQ(items.back(), "item/49999");
}

TEST(BatchItemsTest, CountsWhatItWouldSplit) {
  const std::string inputs[] = {"",
                                "\n",
                                "a",
                                "a\n",
                                "a\nb",
                                "\n\na\n\n\nb\n",
                                std::string("a\0\0b", 4),
                                std::string("a\0b\0", 4),
                                std::string("\0", 1),
                                "ab\ncd\nef\n\ngh"};
  for (const bool null_separated : {false, true}) {
    for (const std::string& input : inputs) {
      for (size_t cut = 0; cut <= input.size(); ++cut) {
        const std::vector<std::string> pieces = {input.substr(0, cut),
                                                 input.substr(cut)};
        ItemCounter counter(null_separated);
        counter.Feed(pieces[0]);
        counter.Feed(pieces[1]);
        EXPECT_EQ(counter.Count(), Split(null_separated, pieces).size());
      }
    }
  }
}

TEST(BatchItemsTest, RefusesEndlessItems) {
  ItemSplitter splitter(true);
  splitter.Feed(std::string(kBatchItemSizeBytesMax + 1, '\n'));
  EXPECT_THAT(splitter.Next(), FailsWith(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("NUL bytes")));
}

TEST(BatchItemsTest, ParsesRangesAndNumbers) {
  const auto span = [](const char* text) {
    return std::get<ByteSpan>(*ParseBatchItem(ItemForm::kRange, text));
  };
  EXPECT_EQ(span("10 20"), (ByteSpan{10, 20}));
  EXPECT_EQ(span("  1KiB\t64KiB\r"), (ByteSpan{1024, 65536}));
  for (const char* bad : {"", "1", "1 2 3", "-1 2", "a b", "1,2", "0x10 1"}) {
    EXPECT_THAT(ParseBatchItem(ItemForm::kRange, bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  for (const char* bad : {"", "x", "-1", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(ParseBatchItem(ItemForm::kOrdinal, bad),
                HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  EXPECT_EQ(std::get<uint64_t>(std::get<DocumentKey>(
                                   *ParseBatchItem(ItemForm::kOrdinal, "17\r"))
                                   .name),
            17u);
}

TEST(CliSettingsTest, ReadsTimeouts) {
  EXPECT_EQ(*ParseTimeout("2"), absl::Seconds(2));
  EXPECT_EQ(*ParseTimeout("1.5m"), absl::Seconds(90));
  EXPECT_EQ(*ParseTimeout("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseTimeout("inf"), absl::InfiniteDuration());
  for (const char* bad : {"", "0", "-1", "soon", "nan", "5 apples"}) {
    EXPECT_THAT(ParseTimeout(bad), HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

class OutputFileTest : public ::testing::Test {
 protected:
  size_t FileCount() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(directory_)) {
      ++count;
    }
    return count;
  }

  const TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(OutputFileTest, AppearsWhenWhole) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "old";
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto file, OutputFile::Open(path));
    QUIRE_ASSERT_OK(file->Write(std::string(100000, 'x').c_str()));
    EXPECT_EQ(FileText(path), "old");
    QUIRE_ASSERT_OK(file->Commit());
    EXPECT_EQ(FileText(path).size(), 100000u);
  }
  EXPECT_EQ(FileCount(), 1u);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(OutputFileTest, LeavesNothingIfGivenUp) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "old";
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto file, OutputFile::Open(path));
    QUIRE_ASSERT_OK(file->Write("new"));
    QUIRE_ASSERT_OK(file->Flush());
  }
  EXPECT_EQ(FileText(path), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(OutputFileTest, PassesByWhatKilledProgramsLeft) {
  for (int i = 0; i < 100; ++i) {
    std::ofstream(absl::StrCat(directory_, "/.quire-", getpid(), "-", i)) << "";
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto file,
                             OutputFile::Open(directory_ + "/file"));
  QUIRE_ASSERT_OK(file->Write("new"));
  QUIRE_ASSERT_OK(file->Commit());
  EXPECT_EQ(FileText(directory_ + "/file"), "new");
}

TEST_F(OutputFileTest, WaitsForAPipeThatDoesNot) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const int before = dup(STDOUT_FILENO);
  ASSERT_EQ(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
  close(ends[1]);
  std::string written;
  for (int i = 0; i < 200'000; ++i) {
    absl::StrAppend(&written, i, " ");
  }
  std::string read_back;
  std::thread reader([&] {
    char piece[4096];
    for (ssize_t size = 0; (size = read(ends[0], piece, sizeof(piece))) > 0;) {
      read_back.append(piece, static_cast<size_t>(size));
    }
  });
  absl::Status status;
  {
    const auto file = OutputFile::Open("-").value();
    status = file->Write({written.data(), written.size()});
    status.Update(file->Flush());
  }
  dup2(before, STDOUT_FILENO);
  close(before);
  reader.join();
  close(ends[0]);
  QUIRE_EXPECT_OK(status);
  EXPECT_TRUE(read_back == written);
}

TEST_F(OutputFileTest, FollowsLinks) {
  std::ofstream(directory_ + "/file") << "old";
  std::filesystem::create_symlink("file", directory_ + "/link");
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto file,
                             OutputFile::Open(directory_ + "/link"));
  QUIRE_ASSERT_OK(file->Write("new"));
  QUIRE_ASSERT_OK(file->Commit());
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ + "/link"));
  EXPECT_EQ(FileText(directory_ + "/file"), "new");
}

TEST_F(OutputFileTest, SaysWhatIsWrong) {
  EXPECT_THAT(OutputFile::Open(directory_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("Is a directory")));
  EXPECT_THAT(OutputFile::Open(directory_ + "/none/file"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("No such file or directory")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto full, OutputFile::Open("/dev/full"));
  QUIRE_ASSERT_OK(full->Write("x"));
  EXPECT_THAT(full->Commit(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("No space left")));
}

}  // namespace
}  // namespace quire
