// SPDX-License-Identifier: Apache-2.0
//
// quire export of archives with withdrawn documents, against a server that
// fails as told.

#include <zlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class QuireExportTest : public CliTest {
 protected:
  QuireExportTest() : CliTest(std::map<std::string, FakeArchive>()) {}
};

TEST_F(QuireExportTest, SkipsWithdrawnDocuments) {
  std::vector<FakeDocument> documents;
  for (int i = 0; i < 40; ++i) {
    documents.push_back({.id = absl::StrCat("d", i),
                         .text = std::string(i % 3 == 0 ? 0 : 700, 'x'),
                         .is_withdrawn = i % 4 == 1 || i < 2 || i > 35,
                         .is_redacted = i == 20 || i == 21 || i == 22});
  }
  // Zeros that are no sign of a withdrawal.
  documents[10].text.append(100, '\0');
  server_->Reload({{"gaps", {.documents = documents}}});
  const std::string tar = directory_ + "/gaps.tar";
  const std::string filtered = directory_ + "/filtered.tar";
  const std::string files = directory_ + "/files";
  for (const std::vector<std::string>& form :
       std::vector<std::vector<std::string>>{
           {"--tar", tar},
           {"--tar", tar, "--keep-going"},
           {"--tar", filtered, "--record-type", ""},
           {"--output-dir", files}}) {
    std::vector<std::string> arguments = {"export", "gaps"};
    arguments.insert(arguments.end(), form.begin(), form.end());
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("exported 24 documents"));
    EXPECT_THAT(run.err, HasSubstr("; 16 documents are withdrawn\n"));
  }
  const std::string text = FileText(tar);
  EXPECT_EQ(text, FileText(filtered));
  for (const FakeDocument& document : documents) {
    const std::string path = absl::StrCat(files, "/", document.id);
    const bool is_gone = document.is_withdrawn || document.is_redacted;
    EXPECT_EQ(std::filesystem::exists(path), !is_gone) << path;
    EXPECT_EQ(FileText(path), is_gone ? "" : document.text);
    EXPECT_EQ(
        text.find(document.id + std::string(1, '\0')) == std::string::npos,
        is_gone)
        << document.id;
  }
}

TEST_F(QuireExportTest, ListsRedactedDocumentsOnRequestOnly) {
  server_->Reload(
      {{"gaps",
        {.documents = {{.id = "a", .text = "one"},
                       {.id = "b", .text = "2", .is_redacted = true},
                       {.id = "c", .text = "three"}}}}});
  ProgramRun run = Run({"ls", "gaps"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "a\nc\n");
  EXPECT_THAT(run.err, HasSubstr("1 document was removed from the archive and "
                                 "not listed"));
  run = Run({"ls", "--json", "gaps", "--record-type", "withdrawn"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("\"ordinal\":1,"));
  EXPECT_THAT(run.err, Not(HasSubstr("not listed")));
  run = Run({"get", "gaps", "--ordinal", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("withdrawn"));
}

// The texts of the members of a gzip file.
std::vector<std::string> MembersOf(const std::string& path) {
  const std::string file = FileText(path);
  std::vector<std::string> members;
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  while (stream.avail_in > 0) {
    EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    std::string text(1 << 20, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    text.resize(stream.total_out);
    members.push_back(std::move(text));
    inflateEnd(&stream);
  }
  return members;
}

TEST_F(QuireExportTest, MakesAMemberOfEachRecord) {
  const std::string warc =
      "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 1\r\n\r\nx\r\n\r\n";
  server_->Reload(
      {{"mixed",
        {.documents = {{.id = "r", .text = warc, .record_type = "resource"},
                       {.id = "a", .text = "one"},
                       {.id = "b", .text = ""}}}}});
  const std::string path = directory_ + "/x.warc.gz";
  const auto is_info = AllOf(StartsWith("WARC/1.1\r\nWARC-Type: warcinfo\r\n"),
                             EndsWith("\r\n\r\n"), Not(HasSubstr("resource")));
  const auto is_a = AllOf(StartsWith("WARC/1.1\r\nWARC-Type: resource\r\n"),
                          EndsWith("\r\n\r\none\r\n\r\n"));
  const auto is_b =
      AllOf(HasSubstr("file:///b"), EndsWith("Length: 0\r\n\r\n\r\n\r\n"));
  ProgramRun run = Run({"export", "mixed", "--warc", path});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(MembersOf(path), ElementsAre(warc, is_info, is_a, is_b));
  EXPECT_THAT(run.err, HasSubstr("no time is known of 2 records, whose "
                                 "WARC-Date is the time of this export"));
  run = Run({"export", "mixed", "--warc", path, "--record-type", ""});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(MembersOf(path), ElementsAre(is_info, is_a, is_b));
}

std::string ArcText(const std::string& url, const std::string& block) {
  return absl::StrCat(url, " 1.2.3.4 20050622190850 text/html ", block.size(),
                      "\n", block, "\n");
}

TEST_F(QuireExportTest, ConvertsArcRecords) {
  const std::string description =
      ArcText("filedesc://x.arc", "1 0 X\nURL\nmore");
  const std::string page =
      ArcText("http://e.org/a b", "HTTP/1.1 200 OK\r\nX: y\r\n\r\nabc");
  // Over what is held in memory.
  const std::string large =
      ArcText("http://e.org/large",
              "HTTP/1.1 200 OK\r\n\r\n" + std::string(9 << 20, 'x'));
  server_->Reload({{"arc",
                    {.documents = {{.id = "filedesc://x.arc",
                                    .text = description,
                                    .capture_time_ms = 1119467330000,
                                    .record_type = "warcinfo"},
                                   {.id = "http://e.org/a b",
                                    .text = page,
                                    .capture_time_ms = 1119467330000,
                                    .record_type = "response"},
                                   {.id = "http://e.org/large",
                                    .text = large,
                                    .capture_time_ms = 1119467330000,
                                    .record_type = "response"}}}}});
  const std::string path = directory_ + "/x.warc";
  std::string first;
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{
           {}, {"--keep-going"}, {"--record-type", "warcinfo,response"}}) {
    std::vector<std::string> arguments = {"export", "arc", "--warc", path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("3 records of ARC files"));
    const std::string warc = FileText(path);
    // The digests are those of sha1sum, in base 32.
    EXPECT_THAT(
        warc,
        AllOf(StartsWith("WARC/1.0\r\nWARC-Type: warcinfo\r\n"),
              HasSubstr("\r\nWARC-Filename: x.arc\r\nWARC-IP-Address: 1.2.3.4"
                        "\r\nWARC-Date: 2005-06-22T19:08:50Z\r\n"
                        "Content-Type: text/html\r\nContent-Length: 4\r\n"
                        "WARC-Block-Digest: "
                        "sha1:47EVWTBIEQ6HTTKB3FSMFSEJUTJJ2JO2\r\n\r\nmore"
                        "\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\n"),
              HasSubstr("\r\nWARC-Target-URI: http://e.org/a%20b\r\n"),
              HasSubstr("\r\nContent-Type: "
                        "application/http;msgtype=response\r\n"
                        "Content-Length: 28\r\nWARC-Payload-Digest: "
                        "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n"),
              EndsWith("xxx\r\n\r\n")));
    EXPECT_THAT(warc, HasSubstr("\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\nabc"
                                "\r\n\r\nWARC/1.0"));
    EXPECT_TRUE(first.empty() || warc == first);
    first = warc;
  }
}

TEST_F(QuireExportTest, KeepsAllOfArcRecordsWithAShortLength) {
  server_->Reload(
      {{"arc",
        {.documents = {
             {.id = "u",
              .text = "http://e.org/ 1.2.3.4 20050622190850 text/html 20\n"
                      "HTTP/1.1 200 OK\r\nX: y\r\n\r\nabc tail\n",
              .capture_time_ms = 1119467330000,
              .record_type = "response"}}}}});
  const std::string path = directory_ + "/x.warc";
  const ProgramRun run = Run({"export", "arc", "--warc", path});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("1 record of ARC files with a length that is "
                                 "too small"));
  // The digest of "abc tail\n" is that of sha1sum, in base 32.
  EXPECT_THAT(FileText(path),
              AllOf(HasSubstr("\r\nContent-Length: 34\r\n"),
                    HasSubstr("WARC-Payload-Digest: "
                              "sha1:3ZWIYSILE7O3VGQTXMELI423X6YDIJCA\r\n"),
                    EndsWith("\r\n\r\nabc tail\n\r\n\r\n")));
}

TEST_F(QuireExportTest, NotesNamesThatUnpackToOneFile) {
  server_->Reload({{"paths",
                    {.documents = {{.id = "a/b", .text = "1"},
                                   {.id = "a//b", .text = "2"}}}}});
  const ProgramRun run =
      Run({"export", "paths", "--tar", directory_ + "/x.tar"});
  EXPECT_THAT(run.err, HasSubstr("1 member has the name of an earlier one"));
}

TEST_F(QuireExportTest, RefusesWhatIsNoRecord) {
  server_->Reload({{"bad",
                    {.documents = {{.id = "a",
                                    .text = "no record of a crawl",
                                    .record_type = "response"}}}}});
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"--record-type", "response"}}) {
    std::vector<std::string> arguments = {"export", "bad", "--warc",
                                          directory_ + "/x.warc"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = Run(arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.err, HasSubstr("must begin with WARC/"));
  }
}

class QuireExportChangeTest : public QuireExportTest {
 protected:
  // Serves an archive with nine documents of four bytes.
  void Serve(bool is_withdrawn) {
    std::vector<FakeDocument> documents;
    for (int i = 0; i < 9; ++i) {
      documents.push_back({.id = absl::StrCat("d", i),
                           .text = "text",
                           .is_withdrawn = i == 5 && is_withdrawn});
    }
    server_->Reload({{"now", {.documents = documents}}});
  }

  ProgramRun Export() {
    return Run({"export", "now", "--tar", directory_ + "/now.tar"});
  }

  // Lists document 5, which is withdrawn.
  static void List(v1::ListDocumentsResponse& page) {
    v1::Document withdrawn = page.documents(4);
    withdrawn.set_ordinal(5);
    withdrawn.set_id("d5");
    withdrawn.mutable_range()->set_offset(20);
    page.mutable_documents()->Add(std::move(withdrawn));
    for (int i = page.documents_size() - 1; i > 5; --i) {
      page.mutable_documents()->SwapElements(i, i - 1);
    }
  }

  // Sends `text` in place of document 5.
  static std::function<void(v1::ScanResponse&)> WithText(std::string text) {
    return [text = std::move(text)](v1::ScanResponse& message) {
      message.mutable_data()->replace(20, 4, text);
      message.set_checksum(Checksum64(AsBytes(message.data())));
    };
  }
};

TEST_F(QuireExportChangeTest, AcceptsDocumentsOfZeros) {
  Serve(/*is_withdrawn=*/false);
  FakeFaults faults;
  faults.edit_scan = WithText(std::string(4, '\0'));
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("exported 9 documents"));
}

TEST_F(QuireExportChangeTest, NoticesADocumentThatIsRestored) {
  Serve(/*is_withdrawn=*/true);
  FakeFaults faults;
  faults.edit_scan = WithText("text");
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("withdrawn or restored during it"));
}

TEST_F(QuireExportChangeTest, SkipsADocumentThatIsWithdrawnMeanwhile) {
  Serve(/*is_withdrawn=*/true);
  FakeFaults faults;
  faults.edit_list = &List;
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("exported 8 documents"));
  EXPECT_THAT(run.err, HasSubstr("1 document is withdrawn"));
}

}  // namespace
}  // namespace quire
