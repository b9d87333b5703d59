// SPDX-License-Identifier: Apache-2.0
//
// Captures by the index of captures, as people list and read them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/payload/record_testing.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/mutex.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class QuireCapturesTest : public CliTest {
 protected:
  QuireCapturesTest() {
    Add("200 OK", "\r\nfirst", 1000);
    Add("404 Gone", "\r\nnone", 2000);
    // An answer to HEAD.
    Add("200 OK", "Content-Length: 9\r\n\r\n", 3000);
    Add("301 Moved", "\r\nthere", 4000);
    crawl_.documents.push_back({"http://a.com/",
                                Record("conversion", "as text"), 5000,
                                "text/plain", "conversion"});
    server_ = FakeServer::Start({}, {{"crawl", crawl_}});
    Answer({0, 1, 2, 3, 4});
  }

  // Answers with these documents, in this order.
  void Answer(std::vector<size_t> ordinals, uint64_t unindexed_count = 0) {
    FakeFaults faults;
    faults.list_captures = [this, ordinals = std::move(ordinals),
                            unindexed_count](
                               const v1::ListCapturesRequest& request,
                               v1::ListCapturesResponse& page) {
      page.set_unindexed_document_count(unindexed_count);
      for (const size_t ordinal : ordinals) {
        AddCapture(ordinal, page);
      }
      const MutexLock lock(&mutex_);
      request_ = request;
      return grpc::Status::OK;
    };
    server_->SetFaults(faults);
  }

  // Fields of the last request for captures.
  std::string Request() {
    const MutexLock lock(&mutex_);
    return request_.ShortDebugString();
  }

  ProgramRun Quire(const std::string& subcommand,
                   std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {subcommand, "crawl"});
    return Run(std::move(arguments));
  }

  ProgramRun Get(std::vector<std::string> arguments) {
    return Quire("get", std::move(arguments));
  }

 private:
  void Add(const std::string& status, const std::string& rest,
           int64_t time_ms) {
    crawl_.documents.push_back(
        {"http://a.com/",
         Record("response", absl::StrCat("HTTP/1.1 ", status, "\r\n", rest)),
         time_ms, "text/html", "response"});
    statuses_.push_back(static_cast<uint32_t>(std::stoi(status)));
  }

  void AddCapture(size_t ordinal, v1::ListCapturesResponse& page) const {
    const FakeDocument& document = crawl_.documents[ordinal];
    v1::Capture& capture = *page.add_captures();
    capture.set_key("com,a)/");
    capture.set_url(absl::StrCat("http://www.a.com/#", ordinal));
    capture.mutable_document()->set_ordinal(ordinal);
    capture.mutable_document()->set_id(document.id);
    capture.mutable_document()->set_capture_time_ms(*document.capture_time_ms);
    capture.mutable_document()->set_record_type(*document.record_type);
    capture.mutable_document()->set_occurrence(ordinal);
    if (ordinal < statuses_.size()) {
      capture.set_status(statuses_[ordinal]);
      capture.set_digest("sha1:X");
    }
  }

  FakeArchive crawl_;
  std::vector<uint32_t> statuses_;
  Mutex mutex_;
  v1::ListCapturesRequest request_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(QuireCapturesTest, ListsLines) {
  Answer({1, 4});
  const ProgramRun run = Quire("captures", {"a.com"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.out,
            "TIME                      STATUS  TYPE            NUMBER  URL\n"
            "1970-01-01T00:00:02.000Z     404  response             1  "
            "http://www.a.com/#1\n"
            "1970-01-01T00:00:05.000Z       -  conversion           4  "
            "http://www.a.com/#4\n");
  EXPECT_THAT(Quire("captures", {"a.com", "--json"}).out,
              HasSubstr("{\"key\":\"com,a)/\",\"url\":\"http://www.a.com/#1\","
                        "\"http_status\":404,\"digest\":\"sha1:X\",\"id\":"));
}

TEST_F(QuireCapturesTest, AsksForWhatOptionsName) {
  Quire("captures", {"a.com", "--match", "domain", "--from", "1970", "--to",
                     "1970", "--where", "status = 200", "--uuid", "u"});
  EXPECT_EQ(Request(),
            "archive: \"crawl\" url: \"a.com\" match: CAPTURE_MATCH_DOMAIN "
            "from_ms: 0 until_ms: 31535999999 page_size: 1000 archive_uuid: "
            "\"u\" filter: \"status = 200\"");
  Quire("captures", {"com,a)/", "--key", "--closest", "1971", "--limit", "3"});
  EXPECT_EQ(Request(),
            "archive: \"crawl\" key: \"com,a)/\" match: CAPTURE_MATCH_EXACT "
            "closest_ms: 31536000000 page_size: 3");
  Quire("captures", {"[a,b]", "--newest-first"});
  EXPECT_EQ(Request(),
            "archive: \"crawl\" url: \"[a,b]\" match: CAPTURE_MATCH_EXACT "
            "newest_first: true page_size: 1000");
  Quire("captures", {"--where", "status = 200"});
  EXPECT_EQ(Request(),
            "archive: \"crawl\" page_size: 1000 filter: \"status = 200\"");
  EXPECT_THAT(Quire("captures", {"a.com", "--limit", "2"}).out,
              HasSubstr("#1\n"));
  EXPECT_THAT(Quire("captures", {"a.com", "--limit", "2"}).out,
              Not(HasSubstr("#2\n")));
  for (const std::vector<std::string>& refused :
       std::vector<std::vector<std::string>>{{"a", "--closest", "soon"},
                                             {"a", "--limit", "0"},
                                             {"a", "--match", "all"},
                                             {"a", "--from", "x"},
                                             {"--key"},
                                             {"--match", "host"},
                                             {"--closest", "1971"},
                                             {"--newest-first"}}) {
    EXPECT_EQ(Quire("captures", refused).exit_code, 2);
  }
}

TEST_F(QuireCapturesTest, ListsIdsByKey) {
  // The server numbers only documents whose id has others.
  Answer({2, 0});
  ProgramRun run = Quire("ls", {"com,a)/", "--key"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "http://a.com/\t@2\nhttp://a.com/\t@0\n");
  EXPECT_THAT(Request(),
              HasSubstr("key: \"com,a)/\" match: CAPTURE_MATCH_PREFIX "
                        "page_size: 1000 archive_uuid: "));
  run = Quire("ls", {"--key", "--json", "-l"});
  EXPECT_THAT(run.out, HasSubstr("\"occurrence\":2,\"http_status\":200}\n"));
  EXPECT_THAT(Request(), Not(HasSubstr("match")));
  Answer({0}, 7);
  run = Quire("ls", {"--key"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "http://a.com/\t@0\n");
  EXPECT_THAT(run.err, HasSubstr("wrote 7 documents without an index"));
  Answer({});
  run = Quire("ls", {"com,b", "--key", "--from", "1970"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "quire: the index of captures of \"crawl\" has none whose key "
            "starts with \"com,b\" that passes the filters\n");
}

TEST_F(QuireCapturesTest, NamesWhatIsMissing) {
  Answer({0}, 7);
  ProgramRun run = Quire("captures", {"a.com"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("#0\n"));
  EXPECT_THAT(run.err, HasSubstr("captures are missing: an earlier version "
                                 "wrote 7 documents without an index"));
  run = Get({"a.com", "--closest", "1970"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("wrote 7 documents without an index"));
  Answer({});
  run = Quire("captures", {"a.com"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "quire: the index has no capture of \"a.com\"\n");
  EXPECT_THAT(Quire("captures", {"a.com/*"}).err,
              HasSubstr("* is no wildcard here: use --match prefix"));
  EXPECT_THAT(Quire("captures", {"a.com", "--to", "1970"}).err,
              HasSubstr("that passes --from, --to, --where and --rule"));
  run = Get({"a.com", "--closest", "1970"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err,
            "quire: document \"a.com\": the index of captures has none of this "
            "URL\n");
  server_->SetFaults({});
  run = Get({"a.com", "--closest", "1970"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("ask one of a newer version"));
}

TEST_F(QuireCapturesTest, GetsTheFirstPage) {
  ProgramRun run = Get({"A.com", "--closest", "1970"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "first");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Request(),
            "archive: \"crawl\" url: \"A.com\" match: CAPTURE_MATCH_EXACT "
            "closest_ms: 0");
  EXPECT_EQ(Get({"com,a)/", "--key"}).out, "first");
  EXPECT_EQ(Request(),
            "archive: \"crawl\" key: \"com,a)/\" match: CAPTURE_MATCH_EXACT "
            "newest_first: true");
  // Redirects and answers to HEAD are the last.
  Answer({3, 2, 1, 0});
  EXPECT_EQ(Get({"a.com", "--closest", "1970"}).out, "none");
  Answer({3, 2});
  EXPECT_EQ(Get({"a.com", "--closest", "1970"}).out, "there");
  Answer({4, 3, 2});
  EXPECT_EQ(Get({"a.com", "--key"}).out, "there");
  EXPECT_EQ(Get({"a.com", "--key", "--record-type", "conversion"}).out,
            "as text");
  // A record is the closest one.
  Answer({3, 0});
  EXPECT_THAT(Get({"a.com", "--closest", "1970", "--record"}).out,
              HasSubstr("there"));
  EXPECT_THAT(Get({"a.com", "--closest", "1970", "--range", "0:4"}).out,
              "WARC");
}

TEST_F(QuireCapturesTest, GetsByStatusAndType) {
  EXPECT_EQ(Get({"a.com", "--closest", "1970", "--status", "4xx"}).out, "none");
  EXPECT_EQ(Get({"a.com", "--closest", "1970", "--status", "3xx"}).out,
            "there");
  ProgramRun run = Get({"a.com", "--closest", "1970", "--status", "500"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("no capture has a status of --status; there are 200 (2 "
                        "captures), 301 (1 capture), 404 (1 capture)"));
  run = Get({"a.com", "--key", "--record-type", "metadata"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("--record-type names others"));
}

TEST_F(QuireCapturesTest, NotesOtherTimes) {
  const ProgramRun run = Get({"a.com", "--closest", "1980"});
  EXPECT_EQ(run.out, "first");
  EXPECT_EQ(run.err,
            "quire: document \"a.com\": this is the closest capture, of "
            "1970-01-01T00:00:01.000Z\n");
  EXPECT_EQ(Get({"a.com", "--closest", "1980", "-q"}).err, "");
  for (const std::vector<std::string>& refused :
       std::vector<std::vector<std::string>>{
           {"a", "--closest", "soon"},
           {"a", "--closest", "1970", "--at", "1970"},
           {"a", "--key", "--occurrence", "1"},
           {"0", "--key", "--ordinal"}}) {
    EXPECT_EQ(Get(refused).exit_code, 2);
  }
}

}  // namespace
}  // namespace quire
