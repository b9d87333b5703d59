// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload_reader.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr char kPage[] = "http://example.org/";

struct ServedPayload {
  absl::Status status;
  std::optional<PayloadOrigin> origin;
  std::string text;
};

class PayloadReaderTest : public ClientFixture {
 protected:
  // Without the server of TestArchives().
  void SetUp() override {}

  // Adds a record of second `time` of 1970; `fields` are header lines.
  void Add(const std::string& id, const std::string& type, int time,
           const std::string& block, const std::string& fields = "") {
    const std::string record = absl::StrCat(
        "WARC/1.1\r\nWARC-Type: ", type, "\r\nWARC-Target-URI: ", id,
        "\r\nContent-Type: application/http\r\n", fields,
        "Content-Length: ", block.size(), "\r\n\r\n", block, "\r\n\r\n");
    documents_.push_back({id, record, time * 1000, {}, type});
  }

  void AddPage(int time, const std::string& body, const std::string& digest) {
    Add(kPage, "response", time,
        absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                     body),
        absl::StrCat("WARC-Payload-Digest: ", digest, "\r\n"));
  }

  void AddRevisit(int time, const std::string& fields) {
    Add(kPage, "revisit", time, "HTTP/1.1 200 OK\r\n\r\n", fields);
  }

  ServedPayload Read(const DocumentKey& key) {
    if (server_ == nullptr) {
      std::map<std::string, FakeArchive> archives;
      archives["crawl"].documents = documents_;
      server_ = FakeServer::Start({}, archives);
      options_.address = server_->address();
      Connect();
    }
    ServedPayload payload;
    payload.status = ReadPayload(
        *client_, "crawl", key, {},
        [&](const PayloadOrigin& origin) {
          EXPECT_FALSE(payload.origin.has_value());
          payload.origin = origin;
          return absl::OkStatus();
        },
        [&](ByteView bytes) {
          EXPECT_TRUE(payload.origin.has_value());
          payload.text.append(AsText(bytes).data(), bytes.size());
          return absl::OkStatus();
        });
    if (payload.status.ok() && payload.origin->plain.has_value()) {
      const PayloadOrigin& origin = *payload.origin;
      EXPECT_EQ(payload.text,
                documents_[origin.document.ordinal()].text.substr(
                    origin.plain->offset, origin.plain->size_bytes));
    }
    return payload;
  }

  ServedPayload ReadPage() { return Read(DocumentKey::Id(kPage)); }

  std::vector<FakeDocument> documents_;
};

TEST_F(PayloadReaderTest, ReadsTheBodyOfTheNewestPage) {
  AddPage(20, "newer", "sha1:B");
  AddPage(10, "older", "sha1:A");
  Add(kPage, "request", 30, "GET / HTTP/1.1\r\n\r\n");
  ServedPayload payload = ReadPage();
  QUIRE_ASSERT_OK(payload.status);
  EXPECT_EQ(payload.text, "newer");
  EXPECT_EQ(payload.origin->document.ordinal(), 0u);
  EXPECT_EQ(payload.origin->http->status_code, 200);
  EXPECT_EQ(payload.origin->http->content_type, "text/html");
  EXPECT_FALSE(payload.origin->revisit.has_value());
  DocumentKey key = DocumentKey::Id(kPage);
  key.at_time_ms = 15000;
  EXPECT_EQ(Read(key).text, "older");
  key.record_types = {"request"};
  payload = Read(key);
  QUIRE_EXPECT_OK(payload.status);
  EXPECT_EQ(payload.text, "");
  EXPECT_TRUE(payload.origin.has_value());
}

// A newer conversion, resource or file is not the page.
TEST_F(PayloadReaderTest, ReadsResponsesBeforeOtherTypes) {
  AddPage(10, "page", "sha1:A");
  AddRevisit(20, "WARC-Refers-To-Date: 1970-01-01T00:00:10Z\r\n");
  for (const char* id : {kPage, "stored", "text"}) {
    Add(id, "conversion", 50, "as text");
  }
  for (const char* id : {kPage, "stored"}) {
    Add(id, "resource", 30, "as stored");
    documents_.push_back({id, "a file", 40'000, {}, {}});
  }
  EXPECT_EQ(ReadPage().text, "page");
  DocumentKey key = DocumentKey::Id(kPage);
  key.record_types = {"conversion"};
  EXPECT_EQ(Read(key).text, "as text");
  EXPECT_EQ(Read(DocumentKey::Id("stored")).text, "as stored");
  EXPECT_EQ(ErrorReasonOf(Read(DocumentKey::Id("text")).status),
            "RECORD_TYPE_NOT_FOUND");
}

TEST_F(PayloadReaderTest, TakesOneCall) {
  AddPage(10, "page", "sha1:A");
  documents_.push_back({"plain", "a file", {}, {}, {}});
  Add("stored", "resource", 30, "as stored");
  Add("text", "conversion", 30, "as text");
  int count = 0;
  for (const char* id : {kPage, "plain", "stored", "text", "none"}) {
    Read(DocumentKey::Id(id));
    EXPECT_EQ(server_->CallCount("ReadStream"), ++count) << id;
  }
  EXPECT_EQ(server_->CallCount("ListDocuments"), 0);
}

TEST_F(PayloadReaderTest, PassesRedirectsAndAnswersToHead) {
  const std::string moved =
      "HTTP/1.1 301 Moved\r\nLocation: x\r\nContent-Length: 4\r\n\r\n";
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
  AddPage(10, "oldest", "sha1:A");
  AddPage(20, "page", "sha1:B");
  // Captures of one time, before and after the page.
  Add(kPage, "response", 20, head);
  Add(kPage, "response", 30, moved + "here");
  Add(kPage, "response", 30, moved);
  Add(kPage, "response", 40, head);
  Add(kPage, "revisit", 50, "",
      "WARC-Refers-To-Date: 1970-01-01T00:00:40Z\r\n");
  Add(kPage, "response", 60, moved, "WARC-Truncated: length\r\n");
  Add("http://example.org/a", "response", 70, moved);
  Add(kPage + std::string("other"), "response", 70, "HTTP/1.1 200\r\n\r\nno");
  ServedPayload payload = ReadPage();
  QUIRE_ASSERT_OK(payload.status);
  EXPECT_EQ(payload.text, "page");
  EXPECT_EQ(payload.origin->passed_count, 6u);
  EXPECT_FALSE(payload.origin->revisit.has_value());
  DocumentKey key = DocumentKey::Id(kPage);
  key.at_time_ms = 35'000;
  EXPECT_EQ(Read(key).text, "page");
  key.at_time_ms = 19'000;
  EXPECT_EQ(Read(key).text, "oldest");
  EXPECT_EQ(Read(key).origin->passed_count, 0u);
  // Whatever is named is read.
  EXPECT_EQ(Read(DocumentKey::Ordinal(3)).text, "here");
  EXPECT_EQ(Read(DocumentKey::Ordinal(5)).text, "");
  key = DocumentKey::Id(kPage);
  key.record_types = {"response"};
  key.at_time_ms = 30'000;
  EXPECT_EQ(Read(key).text, "");
  // There is no page.
  payload = Read(DocumentKey::Id("http://example.org/a"));
  QUIRE_EXPECT_OK(payload.status);
  EXPECT_EQ(payload.text, "");
  EXPECT_EQ(payload.origin->http->status_code, 301);
  EXPECT_EQ(payload.origin->passed_count, 0u);
}

TEST_F(PayloadReaderTest, TakesTheOldestPageIfAllAreLater) {
  Add(kPage, "response", 10, "HTTP/1.1 302 Found\r\n\r\n");
  AddPage(20, "older", "");
  AddPage(30, "newer", "");
  DocumentKey key = DocumentKey::Id(kPage);
  key.at_time_ms = 5'000;
  EXPECT_EQ(Read(key).text, "older");
  key.at_time_ms = 10'000;
  EXPECT_EQ(Read(key).text, "older");
}

// The target of a revisit is a capture, never a conversion of it.
TEST_F(PayloadReaderTest, FollowsNoRevisitToAConversion) {
  AddPage(10, "page", "");
  Add(kPage, "conversion", 20, "as text");
  AddRevisit(30, "");
  EXPECT_EQ(ReadPage().text, "page");
}

TEST_F(PayloadReaderTest, ReadsLargeAndEmptyDocuments) {
  documents_.push_back({"plain", "HTTP/1.1 200 OK\r\n\r\nplain", {}, {}, {}});
  documents_.push_back({"empty", "", {}, {}, {}});
  const std::string large = Noise(100'000, 1);
  AddPage(1, large, "");
  EXPECT_EQ(Read(DocumentKey::Id("plain")).text, documents_[0].text);
  EXPECT_FALSE(Read(DocumentKey::Id("plain")).origin->warc.has_value());
  const ServedPayload empty = Read(DocumentKey::Id("empty"));
  QUIRE_EXPECT_OK(empty.status);
  EXPECT_EQ(empty.origin->document.id(), "empty");
  const ServedPayload page = ReadPage();
  EXPECT_TRUE(page.text == large);
  EXPECT_TRUE(page.origin->plain.has_value());
}

// The newest response is not what the newest capture saw.
TEST_F(PayloadReaderTest, FollowsARevisitByItsDate) {
  AddPage(10, "first", "sha1:A");
  AddPage(20, "second", "sha1:B");
  AddRevisit(30,
             "WARC-Refers-To-Target-URI: http://example.org/\r\n"
             "WARC-Refers-To-Date: 1970-01-01T00:00:10Z\r\n"
             "WARC-Payload-Digest: sha1:A\r\n");
  ServedPayload payload = ReadPage();
  QUIRE_ASSERT_OK(payload.status);
  EXPECT_EQ(payload.text, "first");
  EXPECT_EQ(payload.origin->document.ordinal(), 0u);
  EXPECT_EQ(payload.origin->revisit->ordinal(), 2u);
  EXPECT_EQ(payload.origin->unresolved, "");
  DocumentKey key = DocumentKey::Id(kPage);
  key.at_time_ms = 29999;
  EXPECT_EQ(Read(key).text, "second");
  key.at_time_ms = 30000;
  EXPECT_EQ(Read(key).text, "first");
  EXPECT_EQ(Read(DocumentKey::Ordinal(2)).text, "first");
  // Only responses exclude revisits.
  key.record_types = {"response"};
  EXPECT_EQ(Read(key).text, "second");
}

TEST_F(PayloadReaderTest, FollowsARevisitOfAnotherPage) {
  AddPage(10, "page", "sha1:A");
  Add("http://example.org/copy", "revisit", 20, "",
      "WARC-Refers-To-Target-URI: <http://example.org/>\r\n"
      "WARC-Refers-To-Date: 1970-01-01T00:00:10Z\r\n");
  const ServedPayload payload =
      Read(DocumentKey::Id("http://example.org/copy"));
  QUIRE_ASSERT_OK(payload.status);
  EXPECT_EQ(payload.text, "page");
  EXPECT_EQ(payload.origin->document.id(), kPage);
}

// In WARC 1.0, without a date.
TEST_F(PayloadReaderTest, FollowsARevisitByItsDigest) {
  AddPage(10, "first", "sha1:A");
  AddPage(20, "second", "sha1:B");
  AddPage(30, "third", "sha1:C");
  AddPage(50, "later, of the same text", "sha1:A");
  AddRevisit(40, "WARC-Payload-Digest: sha1:a\r\n");
  EXPECT_EQ(Read(DocumentKey::Ordinal(4)).text, "first");
}

TEST_F(PayloadReaderTest, FollowsARevisitThatWasNotModified) {
  AddPage(10, "first", "sha1:A");
  AddPage(20, "second", "sha1:B");
  AddRevisit(30,
             "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/"
             "server-not-modified\r\n");
  EXPECT_EQ(ReadPage().text, "second");
}

TEST_F(PayloadReaderTest, SaysWhereARevisitRefers) {
  AddPage(10, "held", "sha1:A");
  AddRevisit(30,
             "WARC-Refers-To-Target-URI: http://example.org/\r\n"
             "WARC-Refers-To-Date: 1970-01-01T00:00:20Z\r\n"
             "WARC-Payload-Digest: sha1:B\r\n");
  Add("http://example.org/only", "revisit", 30, "",
      "WARC-Refers-To-Target-URI: http://elsewhere.org/\r\n"
      "WARC-Refers-To-Date: 1970-01-01T00:00:20Z\r\n");
  ServedPayload payload = ReadPage();
  QUIRE_ASSERT_OK(payload.status);
  EXPECT_EQ(payload.text, "held");
  EXPECT_EQ(payload.origin->unresolved,
            "the capture of 1970-01-01T00:00:30Z is a revisit of "
            "\"http://example.org/\" of \"1970-01-01T00:00:20Z\", which the "
            "archive does not hold");
  // A single revisit has no alternative.
  for (const DocumentKey& key :
       {DocumentKey::Ordinal(1), DocumentKey::Id("http://example.org/only")}) {
    payload = Read(key);
    EXPECT_THAT(payload.status,
                FailsWith(absl::StatusCode::kNotFound,
                          HasSubstr("1970-01-01T00:00:30Z is a revisit of")));
    EXPECT_FALSE(payload.origin.has_value());
  }
}

// Its time matches, its digest does not.
TEST_F(PayloadReaderTest, DoesNotFollowToAnotherText) {
  AddPage(10, "first", "sha1:A");
  AddRevisit(30,
             "WARC-Refers-To-Date: 1970-01-01T00:00:10Z\r\n"
             "WARC-Payload-Digest: sha1:B\r\n");
  EXPECT_THAT(Read(DocumentKey::Ordinal(1)).status,
              HasCode(absl::StatusCode::kNotFound));
}

TEST_F(PayloadReaderTest, RefusesWhatItCannotDo) {
  AddPage(10, "page", "");
  documents_.push_back({"false", "no record", {}, {}, "response"});
  DocumentKey key = DocumentKey::Id(kPage);
  key.part = ByteSpan{0, 1};
  EXPECT_THAT(Read(key).status, HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Read(DocumentKey::Id("false")).status,
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(IsPayloadFault(Read(DocumentKey::Id("false")).status));
  EXPECT_EQ(ErrorReasonOf(Read(DocumentKey::Id("none")).status),
            "DOCUMENT_NOT_FOUND");
  EXPECT_FALSE(IsPayloadFault(Read(DocumentKey::Id("none")).status));
  EXPECT_FALSE(IsPayloadFault(absl::OkStatus()));
}

}  // namespace
}  // namespace quire
