// SPDX-License-Identifier: Apache-2.0
#include "client/quire/capture_index_lister.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/client.h"
#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "codecs/base/status_macros.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CaptureIndexListerTest : public ClientFixture {
 protected:
  static void AddCapture(int64_t time_ms, v1::ListCapturesResponse& page) {
    v1::Capture& capture = *page.add_captures();
    capture.set_key("com,example)/");
    capture.mutable_document()->set_capture_time_ms(time_ms);
  }

  // Three captures on the first and the last of three pages.
  static grpc::Status ListThree(const v1::ListCapturesRequest& request,
                                v1::ListCapturesResponse& page) {
    page.set_archive_uuid("uuid");
    page.set_unindexed_document_count(7);
    if (!request.has_page_token()) {
      AddCapture(1, page);
      page.set_next_page_token("second");
    } else if (request.page_token() == "second") {
      page.set_next_page_token("third");
    } else {
      AddCapture(2, page);
      AddCapture(3, page);
    }
    return grpc::Status::OK;
  }

  void Answer(decltype(FakeFaults::list_captures) list) {
    FakeFaults faults;
    faults.list_captures = std::move(list);
    server_->SetFaults(faults);
  }

  static absl::StatusOr<std::vector<int64_t>> TimesOf(
      CaptureIndexLister& lister) {
    std::vector<int64_t> times;
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Capture> capture,
                             lister.Next());
      if (!capture.has_value()) {
        return times;
      }
      times.push_back(capture->document().capture_time_ms());
    }
  }
};

TEST_F(CaptureIndexListerTest, ReadsAllPages) {
  Answer(ListThree);
  CaptureIndexLister lister = client_->ListCaptures("web", {.url = "a"});
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> times, TimesOf(lister));
  EXPECT_THAT(times, ElementsAre(1, 2, 3));
  EXPECT_EQ(lister.archive_uuid(), "uuid");
  EXPECT_EQ(lister.unindexed_document_count(), 7U);
  EXPECT_EQ(server_->CallCount("ListCaptures"), 3);
}

TEST_F(CaptureIndexListerTest, HandsOutPages) {
  Answer(ListThree);
  CaptureIndexLister lister = client_->ListCaptures("web", {.url = "a"});
  QUIRE_ASSERT_OK_AND_ASSIGN(CapturePage page, lister.NextPage());
  EXPECT_EQ(page.captures.size(), 1U);
  EXPECT_EQ(page.next_page_token, "second");
  lister = client_->ListCaptures(
      "web", {.url = "a", .page_token = page.next_page_token});
  QUIRE_ASSERT_OK_AND_ASSIGN(page, lister.NextPage());
  EXPECT_THAT(page.captures, IsEmpty());
  EXPECT_EQ(page.next_page_token, "third");
  QUIRE_ASSERT_OK_AND_ASSIGN(page, lister.NextPage());
  EXPECT_EQ(page.captures.size(), 2U);
  EXPECT_EQ(page.next_page_token, "");
}

TEST_F(CaptureIndexListerTest, SendsAllOptions) {
  v1::ListCapturesRequest sent;
  Answer([&sent](const v1::ListCapturesRequest& request,
                 v1::ListCapturesResponse& /*page*/) {
    sent = request;
    return grpc::Status::OK;
  });
  QUIRE_EXPECT_OK(client_
                      ->ListCaptures("web", {.key = "com,example)/",
                                             .match = v1::CAPTURE_MATCH_PREFIX,
                                             .from_ms = 1,
                                             .until_ms = 2,
                                             .closest_ms = 3,
                                             .newest_first = true,
                                             .filter = "status = 200",
                                             .archive_uuid = "u",
                                             .page_size = 4})
                      .Next()
                      .status());
  EXPECT_EQ(sent.ShortDebugString(),
            "archive: \"web\" key: \"com,example)/\" match: "
            "CAPTURE_MATCH_PREFIX from_ms: 1 until_ms: 2 closest_ms: 3 "
            "newest_first: true page_size: 4 archive_uuid: \"u\" filter: "
            "\"status = 200\"");
}

TEST_F(CaptureIndexListerTest, NamesWhatTheServerCannotDo) {
  CaptureIndexLister lister = client_->ListCaptures("web", {.url = "a"});
  const absl::Status unknown = lister.Next().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(unknown));
  EXPECT_THAT(unknown.message(), HasSubstr("ask one of a newer version"));
  EXPECT_EQ(lister.Next().status(), unknown);
  EXPECT_FALSE(IsNotIndexed(unknown));
}

TEST_F(CaptureIndexListerTest, ChecksAnswers) {
  const auto fault = [this](decltype(FakeFaults::list_captures) list) {
    Answer(std::move(list));
    CaptureIndexLister lister =
        client_->ListCaptures("web", {.url = "a", .from_ms = 5});
    return std::string(TimesOf(lister).status().message());
  };
  EXPECT_THAT(fault([](const v1::ListCapturesRequest& /*request*/,
                       v1::ListCapturesResponse& page) {
                AddCapture(5, page);
                page.set_next_page_token("same");
                return grpc::Status::OK;
              }),
              HasSubstr("does not end"));
  EXPECT_THAT(fault([](const v1::ListCapturesRequest& /*request*/,
                       v1::ListCapturesResponse& page) {
                AddCapture(4, page);
                return grpc::Status::OK;
              }),
              HasSubstr("of another time"));
}

}  // namespace
}  // namespace quire
