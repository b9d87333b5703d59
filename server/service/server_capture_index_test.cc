// SPDX-License-Identifier: GPL-3.0-or-later
//
// Captures by URL over a socket: matches, orders, pages, filters, withdrawal.
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ServerCaptureIndexTest : public ServerTest {
 protected:
  static TestDocument Capture(const std::string& url, int64_t time_ms,
                              uint32_t status = 200) {
    return {.id = url,
            .text = absl::StrCat("text at ", time_ms),
            .record_type = "response",
            .capture_time_ms = time_ms,
            .url = url,
            .status = status};
  }

  void Serve(const std::vector<TestDocument>& documents) {
    WriteArchive(archive_path(), documents);
    std::ofstream(withdrawn_path()).flush();
    ServerOptions options;
    options.withdrawn_path = withdrawn_path();
    StartServer(options);
  }

  void ServePages() {
    Serve({Capture("http://example.com/", 30),
           {.id = "http://example.com/",
            .text = "request",
            .record_type = "request"},
           Capture("http://www.example.com/", 10, 404),
           Capture("http://example.com/a", 20),
           Capture("http://shop.example.com/", 5),
           Capture("http://example.com/", 20)});
  }

  std::string withdrawn_path() const { return directory() + "/withdrawn"; }

  static v1::ListCapturesRequest Request(
      const std::string& url,
      v1::CaptureMatch match = v1::CAPTURE_MATCH_EXACT) {
    v1::ListCapturesRequest request;
    request.set_archive("docs");
    request.set_url(url);
    request.set_match(match);
    return request;
  }

  grpc::Status Call(const v1::ListCapturesRequest& request,
                    v1::ListCapturesResponse& page) {
    grpc::ClientContext context;
    page.Clear();
    return stub().ListCaptures(&context, request, &page);
  }

  // Times of the captures of all pages.
  std::vector<int64_t> Times(v1::ListCapturesRequest request) {
    std::vector<int64_t> times;
    v1::ListCapturesResponse page;
    page_count_ = 0;
    do {
      const grpc::Status status = Call(request, page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      for (const v1::Capture& capture : page.captures()) {
        times.push_back(capture.document().capture_time_ms());
      }
      request.set_page_token(page.next_page_token());
      ++page_count_;
    } while (page.has_next_page_token());
    return times;
  }

  int page_count_ = 0;
};

TEST_F(ServerCaptureIndexTest, DescribesCaptures) {
  ServePages();
  v1::ListCapturesResponse page;
  ASSERT_TRUE(Call(Request("example.com"), page).ok());
  ASSERT_EQ(page.captures_size(), 3);
  EXPECT_FALSE(page.has_next_page_token());
  EXPECT_EQ(page.unindexed_document_count(), 0);
  const v1::Capture& capture = page.captures(0);
  EXPECT_EQ(capture.key(), "com,example)/");
  EXPECT_EQ(capture.url(), "http://www.example.com/");
  EXPECT_EQ(capture.status(), 404);
  EXPECT_EQ(capture.digest(), "sha1:of the text");
  EXPECT_EQ(capture.document().ordinal(), 2);
  EXPECT_EQ(capture.document().media_type(), "text/html");
  EXPECT_EQ(capture.document().range().size_bytes(), 10);
  grpc::ClientContext context;
  v1::GetArchiveRequest request;
  request.set_archive("docs");
  v1::GetArchiveResponse archive;
  ASSERT_TRUE(stub().GetArchive(&context, request, &archive).ok());
  EXPECT_EQ(archive.archive().capture_count(), 5);
  EXPECT_EQ(archive.archive().uuid(), page.archive_uuid());
}

TEST_F(ServerCaptureIndexTest, AnAnswerCountsAsBytesOfTheQuota) {
  WriteArchive(archive_path(), {Capture("http://example.com/", 30)});
  ServerOptions options;
  // An answer is paid for over minutes.
  options.default_quota.bytes_per_second = 1;
  StartServer(options);
  v1::ListCapturesResponse page;
  EXPECT_TRUE(Call(Request("example.com"), page).ok());
  EXPECT_GT(page.ByteSizeLong(), 60U);
  EXPECT_EQ(ReasonIn(Call(Request("example.com"), page)), "QUOTA_EXCEEDED");
}

TEST_F(ServerCaptureIndexTest, MatchesAndOrders) {
  ServePages();
  EXPECT_THAT(Times(Request("example.com")), ElementsAre(10, 20, 30));
  EXPECT_THAT(Times(Request("example.com/", v1::CAPTURE_MATCH_PREFIX)),
              ElementsAre(10, 20, 30, 20));
  EXPECT_THAT(Times(Request("example.com", v1::CAPTURE_MATCH_HOST)),
              ElementsAre(10, 20, 30, 20));
  EXPECT_THAT(Times(Request("example.com", v1::CAPTURE_MATCH_DOMAIN)),
              ElementsAre(10, 20, 30, 20, 5));
  v1::ListCapturesRequest request = Request("example.com");
  request.set_key("com,example,shop)/");
  EXPECT_THAT(Times(request), ElementsAre(5));
  request = Request("example.com");
  request.set_newest_first(true);
  EXPECT_THAT(Times(request), ElementsAre(30, 20, 10));
  request = Request("example.com");
  request.set_closest_ms(21);
  EXPECT_THAT(Times(request), ElementsAre(20, 30, 10));
  request.set_page_size(1);
  EXPECT_THAT(Times(request), ElementsAre(20, 30, 10));
  // The last page is full: only another call can tell.
  EXPECT_EQ(page_count_, 4);
  request.set_from_ms(25);
  EXPECT_THAT(Times(request), ElementsAre(30));
  EXPECT_THAT(Times(Request("http://none.com/")), IsEmpty());
}

TEST_F(ServerCaptureIndexTest, ListsAll) {
  ServePages();
  v1::ListCapturesRequest request;
  request.set_archive("docs");
  EXPECT_THAT(Times(request), ElementsAre(10, 20, 30, 20, 5));
  request.set_page_size(2);
  EXPECT_THAT(Times(request), ElementsAre(10, 20, 30, 20, 5));
  EXPECT_EQ(page_count_, 3);
  request.set_until_ms(10);
  EXPECT_THAT(Times(request), ElementsAre(10, 5));
  request.set_filter("status = 404");
  EXPECT_THAT(Times(request), ElementsAre(10));
}

TEST_F(ServerCaptureIndexTest, NumbersDocumentsOfAnId) {
  ServePages();
  v1::ListCapturesResponse page;
  ASSERT_TRUE(Call(Request("example.com"), page).ok());
  ASSERT_EQ(page.captures_size(), 3);
  // The only one of http://www.example.com/.
  EXPECT_FALSE(page.captures(0).document().has_occurrence());
  // A request is number 1.
  EXPECT_EQ(page.captures(1).document().occurrence(), 2);
  EXPECT_TRUE(page.captures(2).document().has_occurrence());
  EXPECT_EQ(page.captures(2).document().occurrence(), 0);
}

TEST_F(ServerCaptureIndexTest, Filters) {
  ServePages();
  v1::ListCapturesRequest request =
      Request("example.com", v1::CAPTURE_MATCH_DOMAIN);
  request.set_filter("status = 404");
  EXPECT_THAT(Times(request), ElementsAre(10));
  request.set_filter(
      "status != 404 and url prefix \"http://example\" and "
      "digest = \"sha1:of the text\" and key = \"com,example)/\" and "
      "type = \"text/html\" and size > 9 and time > 1970-01-01T00:00:00.02Z");
  EXPECT_THAT(Times(request), ElementsAre(30));
  v1::ListCapturesResponse page;
  request.set_filter("lang = 1");
  EXPECT_EQ(ReasonIn(Call(request, page)), "FIELD_NOT_FOUND");
  request.set_filter("status = ");
  EXPECT_EQ(ReasonIn(Call(request, page)), "MALFORMED_REQUEST");
}

TEST_F(ServerCaptureIndexTest, RefusesMalformedRequests) {
  ServePages();
  v1::ListCapturesResponse page;
  const auto reason = [&](const v1::ListCapturesRequest& request) {
    return ReasonIn(Call(request, page));
  };
  EXPECT_EQ(reason(Request("")), "MALFORMED_REQUEST");
  EXPECT_EQ(reason(Request(std::string(70'000, 'a'))), "MALFORMED_REQUEST");
  v1::ListCapturesRequest request = Request("a");
  request.clear_target();
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request.clear_match();
  request.set_newest_first(true);
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request.clear_newest_first();
  request.set_closest_ms(1);
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request = Request("a", v1::CAPTURE_MATCH_PREFIX);
  request.set_key("");
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request = Request("a", v1::CAPTURE_MATCH_HOST);
  request.set_newest_first(true);
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request = Request("a");
  request.set_newest_first(true);
  request.set_closest_ms(1);
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request = Request("a");
  request.set_match(static_cast<v1::CaptureMatch>(9));
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
  request = Request("a");
  request.set_archive("none");
  EXPECT_EQ(reason(request), "ARCHIVE_NOT_FOUND");
  request = Request("example.com");
  request.set_page_size(1);
  ASSERT_TRUE(Call(request, page).ok());
  // A token of another request.
  request.set_url("example.com/a");
  request.set_page_token(page.next_page_token());
  EXPECT_EQ(reason(request), "MALFORMED_REQUEST");
}

TEST_F(ServerCaptureIndexTest, ArchivesWithoutIndexSaySo) {
  Serve({{.id = "http://example.com/", .text = "x"}});
  v1::ListCapturesResponse page;
  EXPECT_EQ(ReasonIn(Call(Request("example.com"), page)),
            "CAPTURES_NOT_INDEXED");
}

TEST_F(ServerCaptureIndexTest, LeavesOutWithdrawnDocuments) {
  ServePages();
  std::ofstream(withdrawn_path()) << "docs id http://www.example.com/ block\n";
  Reload();
  EXPECT_THAT(Times(Request("example.com")), ElementsAre(20, 30));
}

// Pages end by their size and by the work for them, and go on.
TEST_F(ServerCaptureIndexTest, PagesAreBounded) {
  std::vector<TestDocument> documents;
  for (int i = 0; i < 20'500; ++i) {
    documents.push_back(Capture(absl::StrCat("http://example.com/", i % 7), i));
  }
  Serve(documents);
  v1::ListCapturesRequest request =
      Request("example.com", v1::CAPTURE_MATCH_HOST);
  request.set_page_size(10'000);
  EXPECT_THAT(Times(request), SizeIs(20'500));
  EXPECT_GE(page_count_, 3);
  // Few match: pages are empty.
  request.set_filter("time = 1970-01-01T00:00:20.499Z");
  EXPECT_THAT(Times(request), ElementsAre(20'499));
  EXPECT_GE(page_count_, 2);
  request = Request("example.com/3");
  request.set_closest_ms(15'000);
  request.set_page_size(2);
  v1::ListCapturesResponse page;
  ASSERT_TRUE(Call(request, page).ok());
  EXPECT_EQ(page.captures(0).document().capture_time_ms(), 14'997);
  EXPECT_EQ(page.captures(1).document().capture_time_ms(), 15'004);
}

}  // namespace
}  // namespace quire
