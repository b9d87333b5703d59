// SPDX-License-Identifier: Apache-2.0
//
// Pages of a crawl, as people read them with the program.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/formats/gzip_members.h"
#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/tar_format.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A record of a crawl, as it is stored.
std::string StoredRecord(const std::string& type, const std::string& block,
                         const std::string& fields = "") {
  return absl::StrCat("WARC/1.1\r\nWARC-Type: ", type, "\r\n", fields,
                      "Content-Length: ", block.size(), "\r\n\r\n", block,
                      "\r\n\r\n");
}

class QuireCrawlTest : public CliTest {
 protected:
  QuireCrawlTest() {
    std::map<std::string, FakeArchive> archives;
    archives["crawl"].documents = {{"page", newer_, 2000, {}, "response"},
                                   {"page", older_, 1000, {}, "response"},
                                   {"page", asked_, 3000, {}, "request"},
                                   {"cut", cut_, 1000, {}, "response"},
                                   {"revisit", revisit_, 5000, {}, "revisit"},
                                   {"gone", held_, 1000, {}, "response"},
                                   {"gone", lost_, 5000, {}, "revisit"},
                                   {"plain", plain_, {}, {}, {}}};
    FakeSettings settings;
    // Items are added when answers arrive.
    settings.batch_window_items = 1;
    server_ = FakeServer::Start(settings, archives);
  }

  ProgramRun Get(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"get", "crawl"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Run(std::move(words));
  }

  const std::string older_ =
      StoredRecord("response", "HTTP/1.1 200 OK\r\n\r\nolder");
  const std::string newer_ = StoredRecord(
      "response",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnew\r\n"
      "2\r\ner\r\n0\r\n\r\n");
  const std::string asked_ = StoredRecord("request", "GET / HTTP/1.1\r\n\r\n");
  const std::string cut_ =
      StoredRecord("response", "HTTP/1.1 200\r\nContent-Length: 9\r\n\r\nab");
  const std::string revisit_ =
      StoredRecord("revisit", "",
                   "WARC-Refers-To-Target-URI: page\r\n"
                   "WARC-Refers-To-Date: 1970-01-01T00:00:01Z\r\n");
  const std::string held_ =
      StoredRecord("response", "HTTP/1.1 200\r\n\r\nheld");
  const std::string lost_ =
      StoredRecord("revisit", "", "WARC-Refers-To-Target-URI: nowhere\r\n");
  const std::string plain_ = "HTTP/1.1 200 OK\r\n\r\nplain";
};

TEST_F(QuireCrawlTest, PrintsPayloadsOrRecords) {
  const ProgramRun run = Get({"page"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "newer");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Get({"page", "--payload"}).out, "newer");
  EXPECT_EQ(Get({"page", "--record"}).out, newer_);
  EXPECT_EQ(Get({"1", "0", "--ordinal"}).out, "oldernewer");
  EXPECT_EQ(Get({"plain"}).out, plain_);
  EXPECT_EQ(Get({"page", "--record", "--payload"}).exit_code, 2);
}

TEST_F(QuireCrawlTest, ListsByHostsAndPeriods) {
  std::map<std::string, FakeArchive> archives;
  archives["web"].documents = {
      {"https://www.news.test:8443/a", "a", 1000, {}, "response"},
      {"https://www.news.test:8443/a", "b", 40'000'000'000, {}, "response"},
      {"screenshot:http://shop.news.test/", "c", 1000, {}, "resource"},
      {"http://fakenews.test/", "d", 1000, {}, "response"}};
  server_ = FakeServer::Start({}, archives);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"domain news.test",
       "https://www.news.test:8443/a\t@0\nhttps://www.news.test:8443/a\t@1\n"
       "screenshot:http://shop.news.test/\n"},
      {"domain news.test 1970",
       "https://www.news.test:8443/a\t@0\nscreenshot:http://shop.news.test/\n"},
      {"host news.test 1971..", "https://www.news.test:8443/a\t@1\n"}};
  for (const auto& [rule, expected] : cases) {
    EXPECT_EQ(Run({"ls", "web", "--rule", rule}).out, expected) << rule;
  }
}

TEST_F(QuireCrawlTest, SelectsByTypeAndTime) {
  EXPECT_EQ(Get({"page", "--occurrence", "1"}).out, "older");
  EXPECT_EQ(Get({"page", "--at", "1970-01-01T00:00:01Z"}).out, "older");
  EXPECT_EQ(Get({"page", "--record-type", "REQUEST", "--record"}).out, asked_);
  ProgramRun run = Get({"page", "--record-type", "metadata"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "quire: document \"page\", of type \"metadata\": no document of "
            "those types; --record-type names others\n");
  // None is so old: the oldest, and that is said.
  run = Get({"page", "--at", "1969"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "older");
  EXPECT_EQ(run.err,
            "quire: document \"page\": there is none so old; this is the "
            "oldest, of 1970-01-01T00:00:01.000Z\n");
  EXPECT_EQ(Get({"page", "--at", "1969", "-q"}).err, "");
  EXPECT_THAT(Get({"plain", "--at", "1969"}).err,
              HasSubstr("has no capture time"));
}

TEST_F(QuireCrawlTest, PrintsWhatThereIsOfAPayload) {
  const ProgramRun run = Get({"cut", "page"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "abnewer");
  EXPECT_EQ(run.err,
            "quire: document \"cut\": the record is cut short: its body has 2 "
            "bytes, the Content-Length of HTTP says 9; --record prints the "
            "record whole\n");
}

TEST_F(QuireCrawlTest, FollowsRevisitsOrSaysWhereTheyRefer) {
  ProgramRun run = Get({"revisit", "-v"});
  EXPECT_EQ(run.out, "older");
  EXPECT_THAT(run.err, HasSubstr("a revisit of document number 1, of "
                                 "1970-01-01T00:00:01.000Z\n"));
  run = Get({"revisit", "--json"});
  EXPECT_THAT(run.out, HasSubstr(absl::StrCat(
                           "\"revisit_ordinal\":4,\"http_status\":200,"
                           "\"payload_size_bytes\":5,\"data_base64\":\"",
                           absl::Base64Escape("older"), "\"}\n")));
  run = Get({"gone"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "held");
  EXPECT_THAT(run.err, HasSubstr("is a revisit of \"nowhere\", which the "
                                 "archive does not hold; this is the capture "
                                 "of 1970-01-01T00:00:01.000Z\n"));
  run = Get({"gone", "--record-type", "revisit"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("is a revisit of \"nowhere\", which the "
                                 "archive does not hold\n"));
}

TEST_F(QuireCrawlTest, SelectsByStatus) {
  const auto response = [](const std::string& status, const std::string& body) {
    return StoredRecord("response",
                        absl::StrCat("HTTP/1.1 ", status, "\r\n\r\n", body));
  };
  const std::string head =
      StoredRecord("response", "HTTP/1.1 404\r\nContent-Length: 9\r\n\r\n");
  server_->Reload(
      {{"crawl",
        {.documents = {
             {"p", response("200 OK", "first"), 1000, {}, "response"},
             {"p", response("404 No", "gone"), 2000, {}, "response"},
             {"p", response("200 OK", "again"), 3000, {}, "response"},
             {"p", head, 4000, {}, "response"},
             {"p", response("301 Moved", "there"), 5000, {}, "response"},
             {"p", StoredRecord("request", ""), 5000, {}, "request"},
             {"plain", "text", {}, {}, {}}}}}});
  ProgramRun run = Get({"p"});
  EXPECT_EQ(run.out, "again");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("this is the capture of "
                                 "1970-01-01T00:00:03.000Z; 2 captures"));
  EXPECT_EQ(Get({"p", "--status", "200"}).out, "again");
  EXPECT_EQ(Get({"p", "--status", "200"}).err, "");
  EXPECT_EQ(Get({"p", "--status", "200", "--at", "19700101000002"}).out,
            "first");
  // An answer to HEAD does not hide it.
  EXPECT_EQ(Get({"p", "--status", "4xx,3xx"}).out, "there");
  EXPECT_EQ(Get({"p", "--status", "404"}).out, "gone");
  EXPECT_EQ(Get({"p", "--status", "404", "--record"}).out,
            response("404 No", "gone"));
  EXPECT_EQ(Get({"p", "--status", "301", "--range", "0:4"}).out, "WARC");
  run = Get({"p", "--status", "500"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no capture has a status of --status; there "
                                 "are 200 (2 captures), 301 (1 capture), 404 "
                                 "(2 captures)"));
  // A batch tests the page that it would write, or a redirect that is named.
  const auto batch = [&](const std::string& statuses) {
    return Run({"batch", "crawl", "--payload", "--status", statuses}, "p\n");
  };
  EXPECT_EQ(batch("200").out, "again");
  EXPECT_EQ(batch("200").err, "");
  EXPECT_EQ(batch("301").out, "there");
  EXPECT_EQ(batch("2xx,301").out, "there");
  run = batch("404");
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("1 item does not pass the filters"));
  run = Get({"plain", "--status", "200"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no response or revisit"));
  EXPECT_EQ(Get({"p", "--status", "20"}).exit_code, 2);
  EXPECT_EQ(Get({"0", "--ordinal", "--status", "200"}).exit_code, 2);
}

// A crawl with everything that filters and payloads meet.
class QuireSelectionTest : public CliTest {
 protected:
  QuireSelectionTest() {
    std::map<std::string, FakeArchive> archives;
    archives["crawl"].documents = {
        {"info",
         StoredRecord("warcinfo", "software: test\r\n"),
         100,
         {},
         "warcinfo"},
        {"a", page_a_, 1000, "text/html", "response"},
        {"a", StoredRecord("request", "GET / HTTP/1.1\r\n\r\n"), 1000,
         "application/http", "request"},
        {"b", Response("301 Moved", "Location: a\r\n", ""), 2000, "text/html",
         "response"},
        {"c", Response("200 OK", "Content-Encoding: gzip\r\n", Gzip("see c")),
         3000, "image/png", "response"},
        {"a", RevisitOf("a", 1, "HTTP/1.1 200 OK\r\n\r\n"), 4000, "text/html",
         "revisit"},
        {"d", Response("404 Not Found", padding_, "nothing"), 5000, "text/html",
         "response"},
        {"e", RevisitOf("nowhere", 1, ""), 6000, "text/html", "revisit"},
        {"f", Response("200 OK", "", large_), 7000, "image/gif", "response"},
        {"g", StoredRecord("response", "no HTTP"), 8000, {}, "response"},
        {"h", Response("200 OK", "Content-Length: 9\r\n", "cut"), 9000,
         "text/html", "response"},
        {"i", Response("100 Continue\r\n\r\nHTTP/1.1 503 Busy", "", "later"),
         9500, "text/html", "response"},
        {"note", "plain", {}, "text/plain", {}}};
    archives["files"].documents = {{"x", "text", 1000, "text/plain", {}}};
    // Answers at once: revisits and statuses may need another read.
    FakeSettings settings;
    settings.batch_window_items = 1;
    server_ = FakeServer::Start(settings, archives);
  }

  static std::string Response(const std::string& status,
                              const std::string& fields,
                              const std::string& body) {
    return StoredRecord("response", absl::StrCat("HTTP/1.1 ", status, "\r\n",
                                                 fields, "\r\n", body));
  }

  static std::string RevisitOf(const std::string& id, int second,
                               const std::string& block) {
    return StoredRecord(
        "revisit", block,
        absl::StrCat("WARC-Refers-To-Target-URI: ", id,
                     "\r\nWARC-Refers-To-Date: 1970-01-01T00:00:0", second,
                     "Z\r\n"));
  }

  static std::string Gzip(absl::string_view text) {
    GzipMembers members;
    std::string coded;
    const auto sink = [&](ByteView bytes) {
      coded.append(AsText(bytes).data(), bytes.size());
      return absl::OkStatus();
    };
    EXPECT_TRUE(members.Write(AsBytes(text), sink).ok());
    EXPECT_TRUE(members.EndMember(sink).ok());
    return coded;
  }

  // Runs `ls crawl`; returns the items, separated by blanks.
  std::string Ls(std::vector<std::string> filters) {
    filters.insert(filters.begin(), {"ls", "crawl"});
    const ProgramRun run = Run(std::move(filters));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return absl::StrReplaceAll(run.out, {{"\n", " "}, {"\t", ""}});
  }

  // Longer than the first part of a record that is read for its status.
  const std::string padding_ =
      absl::StrCat("X-Padding: ", std::string(3000, 'p'), "\r\n");
  // Larger than FakeSettings::read_size_bytes_max.
  const std::string large_ = std::string(25'000, 'l');
  const std::string page_a_ =
      Response("200 OK", "Transfer-Encoding: chunked\r\n",
               "3\r\nsee\r\n2\r\n a\r\n0\r\n\r\n");
};

TEST_F(QuireSelectionTest, ListsStatusesUnderAHeader) {
  ProgramRun run = Run({"ls", "-l", "crawl"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  std::vector<std::string> rows;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(run.out, '\n'))) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 6) {
      rows.push_back(absl::StrCat(words[5], " ", words[2], " ", words[3]));
    }
  }
  EXPECT_THAT(rows,
              ElementsAre("ID TYPE STATUS", "a response 200", "a request -",
                          "a revisit 200", "b response 301", "c response 200",
                          "d response 404", "e revisit -", "f response 200",
                          "g response -", "h response 200", "i response 503",
                          "info warcinfo -", "note - -"));
  // No document is read alone, and none without being asked for.
  EXPECT_EQ(server_->CallCount("Read") + server_->CallCount("ReadStream"), 0);
  const int batch_count = server_->CallCount("BatchRead");
  EXPECT_THAT(Run({"ls", "crawl", "--json", "c"}).out,
              Not(HasSubstr("http_status")));
  EXPECT_EQ(Run({"ls", "-l", "files"}).exit_code, 0);
  EXPECT_EQ(server_->CallCount("BatchRead"), batch_count);
  EXPECT_THAT(Run({"ls", "-l", "crawl", "--json", "c"}).out,
              HasSubstr(",\"http_status\":200}\n"));
  EXPECT_THAT(Run({"ls", "-l", "files"}).out,
              HasSubstr("  1970-01-01T00:00:01.000Z  -                -  "));
}

TEST_F(QuireSelectionTest, FiltersListings) {
  EXPECT_EQ(Ls({"--status", "200"}), "a@0 a@2 c f h ");
  EXPECT_EQ(Ls({"--status", "3xx,404"}), "b d ");
  EXPECT_EQ(Ls({"--status", "301", "--status", "503"}), "b i ");
  EXPECT_EQ(Ls({"--record-type", "revisit"}), "a@2 e@0 ");
  EXPECT_EQ(Ls({"--record-type", ""}), "note ");
  EXPECT_EQ(Ls({"--media-type", "image/*"}), "c f ");
  EXPECT_EQ(Ls({"--media-type", "text/html", "--status", "200", "--record-type",
                "response"}),
            "a@0 h ");
  EXPECT_EQ(Ls({"--from", "1970-01-01T00:00:03", "--to", "19700101000005"}),
            "a@2 c d ");
}

TEST_F(QuireSelectionTest, SaysThatNothingPasses) {
  ProgramRun run = Run({"ls", "crawl", "--status", "418"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "quire: no document of \"crawl\" passes the filters\n");
  run = Run({"ls", "files", "--status", "200"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "quire: no document of \"files\" passes the filters; none of them "
            "is a response or revisit of a crawl, which --status requires\n");
  const std::string path = directory_ + "/none.tar";
  run = Run({"export", "files", "--tar", path, "--status", "200"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const char* subcommand : {"ls", "batch", "export"}) {
    run = Run({subcommand, "crawl", "--status", "20"});
    EXPECT_EQ(run.exit_code, 2) << subcommand;
    run = Run({subcommand, "crawl", "--from", "June"});
    EXPECT_EQ(run.exit_code, 2) << subcommand;
  }
}

TEST_F(QuireSelectionTest, ReportsStatusesThatCannotBeRead) {
  FakeFaults faults;
  faults.wrong_checksums = 1;
  server_->SetFaults(faults);
  const ProgramRun run = Run({"ls", "-l", "crawl"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("       ?  "));
  EXPECT_THAT(run.out, HasSubstr("  note\n"));
  EXPECT_THAT(run.err, HasSubstr("HTTP status of document number "));
}

TEST_F(QuireSelectionTest, ReadsPayloadsInABatch) {
  const ProgramRun run =
      Run({"batch", "crawl", "--payload"}, "c\na\nnote\nb\na\t@0\n");
  EXPECT_EQ(run.out, "see csee aplainsee a");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  // Revisits are followed in the batch too.
  EXPECT_EQ(server_->CallCount("Read") + server_->CallCount("ReadStream"), 0);
  EXPECT_EQ(Run({"batch", "crawl", "--payload"}, "f\nc\n").out,
            large_ + "see c");
  EXPECT_EQ(Run({"batch", "crawl", "--payload", "--ordinal"}, "5\n2\n").out,
            "see a");
  const ProgramRun json =
      Run({"batch", "crawl", "--payload", "--json"}, "a\nf\n");
  EXPECT_THAT(
      json.out,
      HasSubstr(absl::StrCat("{\"item\":1,\"id\":\"a\",\"ordinal\":1,")));
  EXPECT_THAT(json.out, HasSubstr(absl::StrCat(
                            "\"revisit_ordinal\":5,\"http_status\":200,"
                            "\"payload_size_bytes\":5,\"data_base64\":\"",
                            absl::Base64Escape("see a"), "\"}\n{\"item\":2,")));
  EXPECT_THAT(json.out, HasSubstr(absl::Base64Escape(large_)));
}

TEST_F(QuireSelectionTest, BatchPayloadsAreThoseOfGet) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "note"}) {
    const ProgramRun get = Run({"get", "crawl", id});
    const ProgramRun batch =
        Run({"batch", "crawl", "--payload"}, absl::StrCat(id, "\n"));
    EXPECT_EQ(get.exit_code, batch.exit_code) << id;
    // A batch prints only what is whole.
    EXPECT_EQ(batch.out, get.exit_code == 0 ? get.out : "") << id;
  }
}

TEST_F(QuireSelectionTest, BatchesPassRedirects) {
  server_->Reload(
      {{"crawl",
        {.documents = {
             {"p", Response("200 OK", "", "page"), 1000, {}, "response"},
             {"p",
              Response("302 Found", "", "there"),
              2000,
              {},
              "response"}}}}});
  EXPECT_EQ(Run({"batch", "crawl", "--payload"}, "p\np\t@1\n").out,
            "pagethere");
}

TEST_F(QuireSelectionTest, ReportsItemsWithoutPayload) {
  const std::string pages = directory_ + "/pages";
  ProgramRun run = Run({"batch", "crawl", "--payload", "--output-dir", pages},
                       "h\ne\nf\na\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("item 1, document \"h\": the record is cut "
                                 "short: its body has 3 bytes, the "
                                 "Content-Length of HTTP says 9; without "
                                 "--payload the whole record is written\n"));
  EXPECT_THAT(run.err, HasSubstr("item 2, document \"e\": the capture of "
                                 "1970-01-01T00:00:06Z is a revisit of "
                                 "\"nowhere\" of"));
  EXPECT_EQ(FilesOf(pages), (std::map<std::string, std::string>{
                                {"f", large_}, {"a", "see a"}}));
  run = Run({"batch", "crawl", "--payload", "--ranges"}, "0 1\n");
  EXPECT_EQ(run.exit_code, 2);
}

TEST_F(QuireSelectionTest, FiltersBatches) {
  ProgramRun run = Run({"batch", "crawl", "--payload", "--status", "200"},
                       "a\nb\nc\nd\nf\nnote\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "see asee c" + large_);
  EXPECT_EQ(run.err,
            "quire: 3 items do not pass the filters and are left out\n");
  // Without --payload the newest response is read, not the revisit.
  run = Run({"batch", "crawl", "--status", "200"}, "a\nb\n");
  EXPECT_EQ(run.out, page_a_);
  run = Run({"batch", "crawl", "--record-type", "request"}, "a\nb\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, StoredRecord("request", "GET / HTTP/1.1\r\n\r\n"));
  run = Run({"batch", "crawl", "--payload", "--to", "1970-01-01T00:00:01",
             "--media-type", "text/html"},
            "a\nf\n");
  EXPECT_EQ(run.out, "see a");
  EXPECT_EQ(
      Run({"batch", "crawl", "--from", "1970-01-01T00:00:07"}, "f\na\n").out,
      Response("200 OK", "", large_));
}

TEST_F(QuireSelectionTest, ExportsPayloadsToADirectory) {
  const std::string pages = directory_ + "/pages";
  const ProgramRun run =
      Run({"export", "crawl", "--payload", "--output-dir", pages});
  // Two have no payload.
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("document number 10, \"h\", is left out: "));
  EXPECT_THAT(run.err, HasSubstr("document number 7, \"e\", is left out: "));
  EXPECT_THAT(run.err, HasSubstr("exported 9 documents of 13, and left out 2"));
  EXPECT_EQ(FilesOf(pages),
            (std::map<std::string, std::string>{{"a@0", "see a"},
                                                {"a@2", "see a"},
                                                {"b", ""},
                                                {"c", "see c"},
                                                {"d", "nothing"},
                                                {"f", large_},
                                                {"g", "no HTTP"},
                                                {"i", "later"},
                                                {"note", "plain"}}));
  // The names are those of a batch of what ls prints.
  const std::string listed = Run({"ls", "crawl"}).out;
  Run({"export", "crawl", "--output-dir", directory_ + "/export"});
  Run({"batch", "crawl", "--output-dir", directory_ + "/batch"}, listed);
  EXPECT_EQ(FilesOf(directory_ + "/export").size(), 13u);
  EXPECT_EQ(FilesOf(directory_ + "/export"), FilesOf(directory_ + "/batch"));
}

TEST_F(QuireSelectionTest, ExportsSelectionsToTarsAndWarcs) {
  const std::string path = directory_ + "/out";
  ProgramRun run = Run({"export", "crawl", "--payload", "--tar", path,
                        "--status", "2xx", "--media-type", "image/*"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "quire: exported 2 documents of 13\n");
  std::string expected = TarHeader("c", 5, 3000) + "see c" + TarPadding(5) +
                         TarHeader("f", large_.size(), 7000) + large_ +
                         TarPadding(large_.size()) + TarEnd();
  EXPECT_TRUE(FileText(path) == expected);
  run = Run({"export", "crawl", "--warc", path, "--status", "200",
             "--record-type", "response", "--to", "1970-01-01T00:00:07"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  expected = page_a_ +
             Response("200 OK", "Content-Encoding: gzip\r\n", Gzip("see c")) +
             Response("200 OK", "", large_);
  EXPECT_TRUE(FileText(path) == expected);
  EXPECT_EQ(Run({"export", "crawl", "--warc", path, "--payload"}).exit_code, 2);
  EXPECT_EQ(
      Run({"export", "crawl", "--warc", path, "--output-dir", "x"}).exit_code,
      2);
}

class QuireRevisitTest : public QuireSelectionTest {
 protected:
  QuireRevisitTest() {
    server_->Reload(
        {{"crawl",
          {.documents = {{"a", page_a_, 1000, "text/html", "response"},
                         {"b", Response("200 OK", "", "see b"), 1000,
                          "image/png", "response"},
                         {"c", RevisitOf("a", 1, ""), 5000, {}, "revisit"},
                         {"d", RevisitOf("b", 1, ""), 6000, "application/http",
                          "revisit"},
                         {"e", RevisitOf("nowhere", 1, ""), 7000,
                          "application/http", "revisit"},
                         // By its digest.
                         {"a",
                          StoredRecord("revisit", "", "WARC-Target-URI: a\r\n"),
                          8000,
                          {},
                          "revisit"},
                         {"f", Response("200 OK", "", large_), 7000,
                          "text/plain", "response"}}}}});
  }
};

TEST_F(QuireRevisitTest, RevisitsHaveTheMediaTypeOfTheirTarget) {
  EXPECT_EQ(Ls({"--media-type", "text/html"}), "a@0 a@1 c@0 ");
  EXPECT_EQ(Ls({"--media-type", "image/*"}), "b d@0 ");
  EXPECT_EQ(Ls({"--media-type", "application/http"}), "e@0 ");
  EXPECT_EQ(Run({"batch", "crawl", "--payload", "--media-type", "text/html"},
                "c\nd\na\n")
                .out,
            "see asee a");
  EXPECT_THAT(Run({"ls", "crawl", "--json", "--media-type", "image/png",
                   "--record-type", "revisit"})
                  .out,
              HasSubstr("\"media_type\":\"image/png\""));
}

TEST_F(QuireRevisitTest, SaysWhichTargetsAnExportLeavesOut) {
  const std::string path = directory_ + "/out.warc";
  ProgramRun run =
      Run({"export", "crawl", "--warc", path, "--from", "1970-01-01T00:00:05"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err,
            "quire: exported 5 documents of 7; 2 targets of revisits are left "
            "out (--with-targets adds them); 1 revisit refers to what the "
            "archive does not hold\n");
  const std::string selected = FileText(path);
  run = Run({"export", "crawl", "--warc", path, "--from", "1970-01-01T00:00:05",
             "--with-targets"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("exported 5 documents of 7; 2 targets of "
                                 "revisits are added; 1 "));
  EXPECT_TRUE(FileText(path) ==
              selected + page_a_ + Response("200 OK", "", "see b"));
  // Nothing is missing.
  run = Run({"export", "crawl", "--warc", path, "--with-targets",
             "--media-type", "text/html"});
  EXPECT_EQ(run.err, "quire: exported 3 documents of 7\n");
  EXPECT_EQ(Run({"export", "crawl", "--with-targets", "--output-dir", path})
                .exit_code,
            2);
}

// The archive is replaced between the listing and the reads.
TEST_F(QuireSelectionTest, DoesNotMixTwoStatesOfAnArchive) {
  FakeFaults faults;
  faults.wrong_documents = 1;
  server_->SetFaults(faults);
  const std::string path = directory_ + "/out.tar";
  const ProgramRun run = Run({"export", "crawl", "--payload", "--tar", path,
                              "--media-type", "image/*"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace quire
