// SPDX-License-Identifier: GPL-3.0-or-later
//
// Captures of crawls: what of a WARC or ARC is indexed, and every way that
// keeps it in archives.
#include "server/ingest/build_captures.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/ingest/append.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/recompress.h"
#include "server/ingest/testing/build_testing.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kDate[] = "WARC-Date: 2023-11-14T22:13:20Z";
constexpr char kSha1[] = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";

std::string Record(const std::string& type, const std::string& url,
                   const std::string& block,
                   std::vector<std::string> headers = {}) {
  headers.insert(headers.begin(),
                 {absl::StrCat("WARC-Type: ", type),
                  absl::StrCat("WARC-Target-URI: ", url), kDate});
  return MakeWarcRecord(headers, block);
}

std::string Page(const std::string& status, const std::string& body) {
  return absl::StrCat("HTTP/1.1 ", status,
                      "\r\nContent-Type: text/html\r\n\r\n", body);
}

class BuildCapturesTest : public ::testing::Test {
 protected:
  std::vector<std::unique_ptr<Source>> Open(const std::string& name) const {
    SourceOptions options;
    options.spool_directory = directory_.path();
    options.expand = true;
    std::vector<std::unique_ptr<Source>> sources;
    auto source = OpenSource(directory_ / name, options);
    QUIRE_EXPECT_OK(source.status());
    sources.push_back(*std::move(source));
    return sources;
  }

  absl::Status Build(const std::string& name, const std::string& out,
                     const BuildOptions& options = SmallBuildOptions("lz4")) {
    return BuildArchive(directory_ / out, Open(name), options).status();
  }

  std::vector<std::string> CapturesOf(const std::string& out) const {
    QUIRE_EXPECT_OK(
        VerifyArchive(directory_ / out, {}, [](const ArchiveDamage& damage) {
          ADD_FAILURE() << damage.status;
        }).status());
    const auto archive = Archive::Open(directory_ / out);
    QUIRE_EXPECT_OK(archive.status());
    return archive.ok() ? ReadTestCaptures(**archive)
                        : std::vector<std::string>();
  }

  const TemporaryDirectory directory_;
};

TEST_F(BuildCapturesTest, AreResponsesRevisitsResourcesAndConversions) {
  const std::string digest = absl::StrCat("WARC-Payload-Digest: ", kSha1);
  directory_.Write(
      "crawl.warc",
      absl::StrCat(
          MakeWarcRecord({"WARC-Type: warcinfo", kDate}, "software: x"),
          Record("response", "http://www.Example.com/A?b=2&a=1",
                 Page("200 OK", "hello"), {digest}),
          Record("request", "http://www.Example.com/A?b=2&a=1",
                 "GET /A HTTP/1.1\r\n\r\n"),
          Record("revisit", "http://example.com/a?a=1&b=2",
                 "HTTP/1.1 304 Not Modified\r\n\r\n", {digest}),
          Record("resource", "http://example.com/file", "text"),
          Record("conversion", "http://example.com/text", "text"),
          Record("metadata", "http://example.com/text", "about"),
          Record("response", "dns:example.com", "20231114 10.0.0.1"),
          MakeWarcRecord(
              {"WARC-Type: response", "WARC-Target-URI: http://no.date/"},
              Page("200 OK", "no date"))));
  QUIRE_ASSERT_OK(Build("crawl.warc", "a"));
  EXPECT_THAT(
      CapturesOf("a"),
      ElementsAre(
          absl::StrCat("com,example)/a?a=1&b=2 1700000000000 1 200 ", kSha1,
                       " http://www.Example.com/A?b=2&a=1"),
          absl::StrCat("com,example)/a?a=1&b=2 1700000000000 3 304 ", kSha1,
                       " http://example.com/a?a=1&b=2"),
          "com,example)/file 1700000000000 4 0  http://example.com/file",
          "com,example)/text 1700000000000 5 0  http://example.com/text",
          "dns:example.com 1700000000000 7 0  dns:example.com"));
}

// A request before its response, as wget writes it, and after it, as warcio.
TEST_F(BuildCapturesTest, PostsAreKeyedByWhatWasSent) {
  const std::string url = "http://example.com/search";
  const std::string post =
      "POST /search HTTP/1.1\r\nContent-Type: "
      "application/x-www-form-urlencoded\r\n\r\n";
  directory_.Write(
      "crawl.warc",
      absl::StrCat(Record("request", url, post + "q=One",
                          {"WARC-Record-ID: <urn:uuid:1>"}),
                   Record("response", url, Page("200 OK", "1"),
                          {"WARC-Record-ID: <urn:uuid:2>",
                           "WARC-Concurrent-To: <urn:uuid:1>"}),
                   Record("response", url, Page("201 Created", "2"),
                          {"WARC-Record-ID: <urn:uuid:3>"}),
                   Record("request", url, post + "q=two",
                          {"WARC-Record-ID: <urn:uuid:4>",
                           "WARC-Concurrent-To: <urn:uuid:3>"}),
                   Record("response", url, Page("200 OK", "3"),
                          {"WARC-Record-ID: <urn:uuid:5>"}),
                   Record("request", url, "GET /search HTTP/1.1\r\n\r\n",
                          {"WARC-Record-ID: <urn:uuid:6>",
                           "WARC-Concurrent-To: <urn:uuid:5>"}),
                   // Of another response.
                   Record("response", url, Page("200 OK", "4"),
                          {"WARC-Record-ID: <urn:uuid:7>"}),
                   Record("request", url, post + "q=other",
                          {"WARC-Record-ID: <urn:uuid:8>",
                           "WARC-Concurrent-To: <urn:uuid:5>"}),
                   Record("request", url, "HEAD /search HTTP/1.1\r\n\r\n",
                          {"WARC-Record-ID: <urn:uuid:9>"}),
                   Record("response", url, Page("200 OK", ""),
                          {"WARC-Record-ID: <urn:uuid:10>",
                           "WARC-Concurrent-To: <urn:uuid:9>"})));
  for (const ReorderMode reorder :
       {ReorderMode::kOff, ReorderMode::kDuplicates}) {
    BuildOptions options = SmallBuildOptions("lz4");
    options.reorder = reorder;
    options.archive.replace = true;
    QUIRE_ASSERT_OK(Build("crawl.warc", "a", options));
    EXPECT_THAT(
        CapturesOf("a"),
        ElementsAre(
            absl::StrCat("com,example)/search 1700000000000 4 200  ", url),
            absl::StrCat("com,example)/search 1700000000000 6 200  ", url),
            absl::StrCat("com,example)/search?__wb_method=head "
                         "1700000000000 9 200  ",
                         url),
            absl::StrCat("com,example)/search?__wb_method=post&q=one "
                         "1700000000000 1 200  ",
                         url),
            absl::StrCat("com,example)/search?__wb_method=post&q=two "
                         "1700000000000 2 201  ",
                         url)));
  }
}

TEST_F(BuildCapturesTest, AreOfArcsAndOfWarcsInDirectories) {
  directory_.Write(
      "in/b.arc",
      absl::StrCat("filedesc://b.arc 0.0.0.0 20231114221320 text/plain 8\n"
                   "1 0 x y\n\n",
                   "http://example.com/arc 10.0.0.1 20231114221320 text/html "
                   "20\nHTTP/1.0 404 No\r\n\r\nx\n"));
  directory_.Write("in/a.warc", Record("response", "http://example.com/warc",
                                       Page("200 OK", "x")));
  QUIRE_ASSERT_OK(Build("in", "a"));
  EXPECT_THAT(
      CapturesOf("a"),
      ElementsAre(
          "com,example)/arc 1700000000000 2 404  http://example.com/arc",
          "com,example)/warc 1700000000000 0 200  http://example.com/warc"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "a"));
  EXPECT_EQ(archive->GetDocument({0})->id, "a.warc/http://example.com/warc");
}

TEST_F(BuildCapturesTest, AreKeptByAppendRecompressAndBuild) {
  std::string crawl;
  for (int i = 0; i < 300; ++i) {
    const std::string url = absl::StrCat("http://example.com/", i % 100);
    absl::StrAppend(
        &crawl,
        Record("response", url, Page("200 OK", std::string(500, 'x')),
               {absl::StrCat("WARC-Record-ID: <urn:", i, ">"),
                absl::StrCat("WARC-Payload-Digest: ", kSha1)}),
        Record("request", url, "PUT /x HTTP/1.1\r\n\r\nbody",
               {absl::StrCat("WARC-Record-ID: <urn:r", i, ">"),
                absl::StrCat("WARC-Concurrent-To: <urn:", i, ">")}));
  }
  directory_.Write("crawl.warc", crawl);
  directory_.Write("more.warc", Record("response", "http://example.com/more",
                                       Page("200 OK", "x")));
  QUIRE_ASSERT_OK(Build("crawl.warc", "a"));
  const std::vector<std::string> before = CapturesOf("a");
  EXPECT_THAT(before, SizeIs(300));
  QUIRE_ASSERT_OK(Build("a", "built"));
  EXPECT_EQ(CapturesOf("built"), before);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory_ / "a"));
  BuildOptions options = SmallBuildOptions("zstd");
  QUIRE_ASSERT_OK(
      RecompressArchive(directory_ / "recompressed", archive, options)
          .status());
  EXPECT_EQ(CapturesOf("recompressed"), before);
  BuildOptions append;
  append.archive.writer = "appended";
  QUIRE_ASSERT_OK(AppendToArchive(directory_ / "a", Open("more.warc"),
                                  ExistingMode::kAdd, append, /*merge=*/true)
                      .status());
  std::vector<std::string> after = before;
  after.push_back(
      "com,example)/more 1700000000000 600 200  "
      "http://example.com/more");
  EXPECT_EQ(CapturesOf("a"), after);
}

TEST_F(BuildCapturesTest, OtherInputsHaveNone) {
  directory_.Write("in/http:%2F%2Fexample.com", "text");
  QUIRE_ASSERT_OK(Build("in", "a"));
  EXPECT_THAT(CapturesOf("a"), IsEmpty());
}

}  // namespace
}  // namespace quire
