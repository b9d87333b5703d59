// SPDX-License-Identifier: Apache-2.0
//
// Pages of a crawl, as people read them with the program.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/program_runner.h"
#include "client/quire/testing/fake_server.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// A record of a crawl, as it is stored.
std::string Record(const std::string& type, const std::string& block,
                   const std::string& fields = "") {
  return absl::StrCat("WARC/1.1\r\nWARC-Type: ", type, "\r\n", fields,
                      "Content-Length: ", block.size(), "\r\n\r\n", block,
                      "\r\n\r\n");
}

class QuireCrawlTest : public ::testing::Test {
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
    server_ = FakeServer::Start({}, archives);
  }

  ProgramRun Get(const std::vector<std::string>& arguments) {
    ProgramInput input;
    input.arguments = {"get", "crawl"};
    input.arguments.insert(input.arguments.end(), arguments.begin(),
                           arguments.end());
    return Run(std::move(input));
  }

  ProgramRun Run(ProgramInput input) {
    input.environment.push_back("QUIRE_SERVER=" + server_->address());
    return RunProgram(
        absl::StrCat(std::getenv("QUIRE_BINARY_DIR"), "/bin/quire"), input);
  }

  const std::string older_ = Record("response", "HTTP/1.1 200 OK\r\n\r\nolder");
  const std::string newer_ =
      Record("response",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnew\r\n"
             "2\r\ner\r\n0\r\n\r\n");
  const std::string asked_ = Record("request", "GET / HTTP/1.1\r\n\r\n");
  const std::string cut_ =
      Record("response", "HTTP/1.1 200\r\nContent-Length: 9\r\n\r\nab");
  const std::string revisit_ =
      Record("revisit", "",
             "WARC-Refers-To-Target-URI: page\r\n"
             "WARC-Refers-To-Date: 1970-01-01T00:00:01Z\r\n");
  const std::string held_ = Record("response", "HTTP/1.1 200\r\n\r\nheld");
  const std::string lost_ =
      Record("revisit", "", "WARC-Refers-To-Target-URI: nowhere\r\n");
  const std::string plain_ = "HTTP/1.1 200 OK\r\n\r\nplain";
  std::unique_ptr<FakeServer> server_;
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

TEST_F(QuireCrawlTest, ListsTypeAndTime) {
  ProgramInput input;
  input.arguments = {"ls", "-l", "crawl", "page"};
  EXPECT_THAT(Run(std::move(input)).out,
              HasSubstr("  1970-01-01T00:00:02.000Z  response "));
}

}  // namespace
}  // namespace quire
