// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests documents of a crawl, selected by record type and time over a socket.
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr char kPage[] = "http://example.org/";

// A page captured three times, out of order, each with its request, and a
// revisit after the last one.
class ServerCapturesTest : public ServerTest {
 protected:
  ServerCapturesTest() {
    WriteArchive(archive_path(), {{"urn:info", "about", "warcinfo", 500},
                                  {kPage, "of 2000", "response", 2000},
                                  {kPage, "request of 2000", "request", 2000},
                                  {kPage, "of 1000", "response", 1000},
                                  {kPage, "of 3000", "response", 3000},
                                  {kPage, "of 3000 as well", "response", 3000},
                                  {kPage, "revisit of 4000", "revisit", 4000},
                                  {kPage, "request of 4000", "request", 4000},
                                  {"plain", "older", "", 20},
                                  {"plain", "newer", "", 30},
                                  {"plain", "oldest, stored last", "", 10},
                                  {kPage, "as text", "conversion", 9000},
                                  {kPage, "as stored", "resource", 8000},
                                  {kPage, "a file", "", 7000},
                                  {"mixed", "text", "conversion", 40},
                                  {"mixed", "file", "", 30},
                                  {"mixed", "resource", "resource", 10},
                                  {"mixed", "newer resource", "resource", 20},
                                  {"file", "text", "conversion", 40},
                                  {"file", "file", "", 30},
                                  {"text", "text", "conversion", 40}});
    StartServer();
  }

  v1::ReadRequest Request(const std::string& id,
                          const std::vector<std::string>& types = {},
                          std::optional<int64_t> at_time_ms = {}) {
    v1::ReadRequest request;
    request.set_archive("docs");
    v1::DocumentName& name = *request.mutable_document();
    name.set_id(id);
    for (const std::string& type : types) {
      name.add_record_types(type);
    }
    if (at_time_ms.has_value()) {
      name.set_at_time_ms(*at_time_ms);
    }
    return request;
  }

  grpc::Status Read(const v1::ReadRequest& request,
                    v1::ReadResponse* response) {
    grpc::ClientContext context;
    return stub().Read(&context, request, response);
  }

  std::string Text(const v1::ReadRequest& request) {
    v1::ReadResponse response;
    const grpc::Status status = Read(request, &response);
    return status.ok() ? response.data() : status.error_message();
  }
};

TEST_F(ServerCapturesTest, FindsTheNewestPage) {
  EXPECT_EQ(Text(Request(kPage)), "of 3000 as well");
  EXPECT_EQ(Text(Request("plain")), "newer");
}

// A later one of the types response, resource and none is read only if the id
// has no document of an earlier one, whatever the times. Other types are not
// read.
TEST_F(ServerCapturesTest, PrefersResponsesThenResourcesThenPlainDocuments) {
  EXPECT_EQ(Text(Request("mixed")), "newer resource");
  EXPECT_EQ(Text(Request("mixed", {}, 15)), "resource");
  EXPECT_EQ(Text(Request("mixed", {}, 5)), "resource");
  EXPECT_EQ(Text(Request("file")), "file");
  EXPECT_EQ(Text(Request("mixed", {"conversion"})), "text");
  v1::ReadResponse response;
  const grpc::Status status = Read(Request("text"), &response);
  EXPECT_EQ(ReasonIn(status), "RECORD_TYPE_NOT_FOUND");
  EXPECT_THAT(status.error_message(), HasSubstr("\"conversion\""));
}

TEST_F(ServerCapturesTest, SelectsByType) {
  EXPECT_EQ(Text(Request(kPage, {"request"})), "request of 4000");
  EXPECT_EQ(Text(Request(kPage, {"response", "revisit"})), "revisit of 4000");
  EXPECT_EQ(Text(Request("urn:info", {"warcinfo"})), "about");
  EXPECT_EQ(Text(Request("plain", {""})), "newer");
}

TEST_F(ServerCapturesTest, CountsRevisitsAsResponsesOnRequest) {
  const auto with_revisits = [this](const std::string& id,
                                    std::optional<int64_t> at = {}) {
    v1::ReadRequest request = Request(id, {}, at);
    request.mutable_document()->set_with_revisits(true);
    return request;
  };
  EXPECT_EQ(Text(with_revisits(kPage)), "revisit of 4000");
  EXPECT_EQ(Text(with_revisits(kPage, 3999)), "of 3000 as well");
  EXPECT_EQ(Text(with_revisits("mixed")), "newer resource");
  EXPECT_EQ(Text(with_revisits("plain")), "newer");
  v1::ReadResponse response;
  EXPECT_EQ(ReasonIn(Read(with_revisits("text"), &response)),
            "RECORD_TYPE_NOT_FOUND");
  v1::ReadRequest request = with_revisits(kPage);
  request.mutable_document()->add_record_types("response");
  EXPECT_EQ(ReasonIn(Read(request, &response)), "MALFORMED_REQUEST");
  request = with_revisits(kPage);
  request.mutable_document()->set_ordinal(1);
  EXPECT_EQ(ReasonIn(Read(request, &response)), "MALFORMED_REQUEST");
  request = with_revisits(kPage);
  request.mutable_document()->set_occurrence(1);
  EXPECT_EQ(ReasonIn(Read(request, &response)), "MALFORMED_REQUEST");
}

TEST_F(ServerCapturesTest, SelectsByTime) {
  EXPECT_EQ(Text(Request(kPage, {}, 2999)), "of 2000");
  EXPECT_EQ(Text(Request(kPage, {}, 2000)), "of 2000");
  EXPECT_EQ(Text(Request(kPage, {}, 1999)), "of 1000");
  EXPECT_EQ(Text(Request(kPage, {"request"}, 3999)), "request of 2000");
  EXPECT_EQ(Text(Request(kPage, {}, INT64_MAX)), "of 3000 as well");
  // All are later: the oldest.
  EXPECT_EQ(Text(Request(kPage, {}, 999)), "of 1000");
  EXPECT_EQ(Text(Request(kPage, {}, INT64_MIN)), "of 1000");
}

TEST_F(ServerCapturesTest, SaysWhichTypesThereAre) {
  v1::ReadResponse response;
  grpc::Status status = Read(Request("urn:info"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonIn(status), "RECORD_TYPE_NOT_FOUND");
  EXPECT_THAT(status.error_message(),
              HasSubstr("there is 1, of type \"warcinfo\""));
  status = Read(Request("plain", {"response"}), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("there are 3, of type none"));
  status = Read(Request("nowhere", {"response"}), &response);
  EXPECT_EQ(ReasonIn(status), "DOCUMENT_NOT_FOUND");
  EXPECT_EQ(status.error_message(), "no document \"nowhere\"");
}

TEST_F(ServerCapturesTest, OccurrencesCountAllTypes) {
  v1::ReadRequest request = Request(kPage);
  request.mutable_document()->set_occurrence(1);
  EXPECT_EQ(Text(request), "request of 2000");
  request.mutable_document()->set_occurrence(6);
  EXPECT_EQ(Text(request), "request of 4000");
}

TEST_F(ServerCapturesTest, RefusesWhatDoesNotGoTogether) {
  v1::ReadRequest occurrence_and_type = Request(kPage, {"response"});
  occurrence_and_type.mutable_document()->set_occurrence(0);
  v1::ReadRequest occurrence_and_time = Request(kPage, {}, 1);
  occurrence_and_time.mutable_document()->set_occurrence(0);
  v1::ReadRequest ordinal_and_type = Request(kPage, {"response"});
  ordinal_and_type.mutable_document()->set_ordinal(0);
  v1::ReadRequest ordinal_and_time = Request(kPage, {}, 1);
  ordinal_and_time.mutable_document()->set_ordinal(0);
  v1::ReadRequest ordinal_and_occurrence = Request(kPage);
  ordinal_and_occurrence.mutable_document()->set_ordinal(0);
  ordinal_and_occurrence.mutable_document()->set_occurrence(0);
  for (const v1::ReadRequest& request :
       {occurrence_and_type, occurrence_and_time, ordinal_and_type,
        ordinal_and_time, ordinal_and_occurrence,
        Request(kPage, std::vector<std::string>(17, "response")),
        Request(kPage, {std::string(257, 'x')})}) {
    v1::ReadResponse response;
    const grpc::Status status = Read(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << request.ShortDebugString();
    EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST");
    EXPECT_THAT(status.error_message(), HasSubstr("document."));
  }
  EXPECT_EQ(Text(Request(kPage, std::vector<std::string>(16, "response"))),
            "of 3000 as well");
}

}  // namespace
}  // namespace quire
