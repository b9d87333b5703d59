// SPDX-License-Identifier: Apache-2.0
//
// Behaviour of the client under faults of server and network.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client.h"
#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ClientFaultsTest : public ClientFixture {
 protected:
  absl::Status Scan(std::string& text, const ScanOptions& options = {}) {
    return client_->Scan("web", options, [&](const ScanPiece& piece) {
      text.append(AsText(piece.data).data(), piece.data.size());
      return absl::OkStatus();
    });
  }
};

// A loopback port that refuses connections. Reserved while this object exists,
// unlike a port that a server has just released. Thread-compatible.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    // Bound, but not listening.
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }

  ~SilentPort() { close(fd_); }

  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int fd_;
  std::string address_;
};

TEST_F(ClientFaultsTest, TriesAgainWhileUnavailable) {
  FakeFaults faults;
  faults.unavailable_calls = 3;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 10}));
  EXPECT_EQ(server_->CallCount("Read"), 4);

  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->GetArchive("web"));
  server_->SetFaults(faults);
  EXPECT_TRUE(client_->ListDocuments("web").Next().ok());
  std::string text;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(Stream(ByteSpan{0, 5000}, text));
  EXPECT_EQ(text, web_text_.substr(0, 5000));
  EXPECT_EQ(server_->CallCount("ReadStream"), 4);
}

TEST_F(ClientFaultsTest, TriesAgainAfterAResetOfGrpc) {
  FakeFaults faults;
  faults.reset_calls = 3;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 10}));
  EXPECT_EQ(server_->CallCount("Read"), 4);
  std::string text;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(Stream(ByteSpan{0, 5000}, text));
  text.clear();
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(Scan(text));
  EXPECT_EQ(text, web_text_);
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(client_->ReadBatch(
      "web", {DocumentKey::Ordinal(0)},
      [](const BatchAnswer& answer) { return answer.result.status(); }));
  server_->SetFaults(faults);
  EXPECT_TRUE(client_->ListDocuments("web").Next().ok());
  // Not for ever, although the server has answered before.
  faults.reset_calls = -1;
  server_->SetFaults(faults);
  const int before = server_->CallCount("Read");
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 10}),
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("gRPC reset the call")));
  EXPECT_EQ(server_->CallCount("Read") - before, options_.attempts_max);
}

TEST_F(ClientFaultsTest, GivesUpWhenTheDeadlineHasPassed) {
  options_.deadline = absl::Milliseconds(500);
  Connect();
  QUIRE_EXPECT_OK(client_->GetArchive("web"));
  FakeFaults faults;
  faults.unavailable_calls = -1;
  server_->SetFaults(faults);
  const auto result = client_->Read("web", ByteSpan{0, 10});
  // The deadline may also pass within a call.
  EXPECT_THAT(result, AnyOf(FailsWith(absl::StatusCode::kUnavailable,
                                      HasSubstr("the server drains")),
                            FailsWith(absl::StatusCode::kDeadlineExceeded,
                                      HasSubstr("no answer from 127.0.0.1"))));
  // More than attempts_max, as the server had answered before.
  EXPECT_GT(server_->CallCount("Read"), 4);
}

// A server that never answered gets no extra time.
TEST_F(ClientFaultsTest, GivesUpSoonOnAServerThatNeverAnswered) {
  FakeFaults faults;
  faults.unavailable_calls = -1;
  server_->SetFaults(faults);
  const auto result = client_->GetArchive("web");
  EXPECT_THAT(result, FailsWith(absl::StatusCode::kUnavailable,
                                HasSubstr("the server drains")));
  EXPECT_EQ(ErrorReasonOf(result.status()), "DRAINING");
  EXPECT_EQ(server_->CallCount("GetArchive"), 4);
}

TEST_F(ClientFaultsTest, DoesNotTryAgainIfToldSo) {
  options_.attempts_max = 1;
  Connect();
  FakeFaults faults;
  faults.unavailable_calls = 1;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 10}),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(server_->CallCount("Read"), 1);
}

TEST_F(ClientFaultsTest, SaysThatNobodyListens) {
  const SilentPort port;
  options_.address = port.address();
  Connect();
  const auto result = client_->Read("web", ByteSpan{0, 10});
  EXPECT_THAT(result, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(ErrorReasonOf(result.status()), "");
}

TEST_F(ClientFaultsTest, PassesOnHowLongToWait) {
  options_.deadline = absl::Milliseconds(500);
  Connect();
  FakeFaults faults;
  faults.busy_calls = 1;
  server_->SetFaults(faults);
  const auto result = client_->ReadDocument("web", DocumentKey::Ordinal(1));
  EXPECT_THAT(result, HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ErrorReasonOf(result.status()), "SERVER_BUSY");
  EXPECT_EQ(RetryDelayOf(result.status()), absl::Seconds(2));
}

TEST_F(ClientFaultsTest, ComesBackToABusyServerWhenToldTo) {
  FakeFaults faults;
  faults.busy_calls = 2;
  faults.busy_retry_delay = absl::Milliseconds(1);
  server_->SetFaults(faults);
  std::string text;
  QUIRE_EXPECT_OK(Scan(text));
  EXPECT_EQ(text, web_text_);
  EXPECT_EQ(server_->CallCount("Scan"), 3);

  server_->SetFaults(faults);
  const std::unique_ptr<BatchReader> batch = client_->StartBatch("web", {});
  batch->Add(1, ByteSpan{0, 10});
  batch->CloseAdds();
  const std::optional<BatchAnswer> answer = batch->Next();
  ASSERT_TRUE(answer.has_value());
  QUIRE_ASSERT_OK(answer->result.status());
  EXPECT_EQ(answer->result->data, web_text_.substr(0, 10));
  EXPECT_EQ(server_->CallCount("BatchRead"), 3);

  options_.stream_idle_max = absl::Milliseconds(200);
  Connect();
  faults.busy_calls = -1;
  server_->SetFaults(faults);
  EXPECT_THAT(Scan(text), HasCode(absl::StatusCode::kResourceExhausted));
  // More than attempts_max.
  EXPECT_GT(server_->CallCount("Scan"), 7);
}

TEST_F(ClientFaultsTest, KeepsItsDeadline) {
  options_.deadline = absl::Milliseconds(20);
  Connect();
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->GetArchive("web"),
              HasCode(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ClientFaultsTest, GivesUpASilentStream) {
  options_.stream_idle_max = absl::Milliseconds(20);
  Connect();
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  std::string text;
  EXPECT_THAT(Stream(ByteSpan{0, 10}, text),
              FailsWith(absl::StatusCode::kDeadlineExceeded,
                        HasSubstr("sent nothing for 20ms")));
}

TEST_F(ClientFaultsTest, FindsWrongChecksums) {
  const auto mismatch = FailsWith(absl::StatusCode::kDataLoss,
                                  "received bytes do not match their checksum");
  FakeFaults faults;
  // Not once: an abandoned call may still run and use it up.
  faults.wrong_checksums = -1;
  std::string text;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 10}), mismatch);
  server_->SetFaults(faults);
  EXPECT_THAT(client_->ReadDocument("web", DocumentKey::Id("doc/11")),
              mismatch);
  server_->SetFaults(faults);
  EXPECT_THAT(Stream(ByteSpan{0, 5000}, text), mismatch);
  server_->SetFaults(faults);
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 15000}), mismatch);
  server_->SetFaults(faults);
  EXPECT_THAT(Scan(text), mismatch);
  EXPECT_EQ(text, "");
}

TEST_F(ClientFaultsTest, FindsAnswersToAnotherQuestion) {
  FakeFaults faults;
  faults.wrong_ranges = -1;
  std::string text;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 10}),
              HasCode(absl::StatusCode::kInternal));
  server_->SetFaults(faults);
  EXPECT_THAT(Stream(ByteSpan{0, 10}, text),
              HasCode(absl::StatusCode::kInternal));
  server_->SetFaults(faults);
  EXPECT_THAT(Scan(text), HasCode(absl::StatusCode::kInternal));
  faults = {};
  faults.wrong_documents = -1;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->ReadDocument("web", DocumentKey::Ordinal(3)),
              HasCode(absl::StatusCode::kInternal));
  server_->SetFaults(faults);
  EXPECT_THAT(Stream(DocumentKey::Id("doc/03"), text),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_EQ(text, "");
}

TEST_F(ClientFaultsTest, ChecksCommonPrefixes) {
  const auto list = [this](std::optional<std::string> delimiter,
                           const std::vector<std::string>& sent) {
    FakeFaults faults;
    faults.edit_list = [sent](v1::ListDocumentsResponse& page) {
      page.Clear();
      *page.mutable_common_prefixes() = {sent.begin(), sent.end()};
    };
    server_->SetFaults(faults);
    DocumentLister lister = client_->ListDocuments(
        "web", {.prefix = "doc", .delimiter = std::move(delimiter)});
    // Passes the prefixes.
    return lister.Next().status();
  };
  const auto is_internal = HasCode(absl::StatusCode::kInternal);
  QUIRE_EXPECT_OK(list("//", {"doc//", "doca//"}));
  EXPECT_THAT(list({}, {"doc/"}), is_internal);
  for (const std::vector<std::string>& sent :
       std::vector<std::vector<std::string>>{{""},
                                             {"/"},
                                             {"do//"},
                                             {"doc/"},
                                             {"docx"},
                                             {"doc//x"},
                                             {"doc//a//"},
                                             {"doc//", "doc//"},
                                             {"docb//", "doca//"}}) {
    EXPECT_THAT(list("//", sent), is_internal) << testing::PrintToString(sent);
  }
  // Documents that belong to a common prefix.
  FakeFaults faults;
  faults.edit_list = [](v1::ListDocumentsResponse& page) {
    page.Clear();
    page.add_documents()->set_id("doc/10");
  };
  server_->SetFaults(faults);
  EXPECT_THAT(client_->ListDocuments("web", {.delimiter = "/"}).Next(),
              is_internal);
}

TEST_F(ClientFaultsTest, ContinuesAfterEmptyPages) {
  size_t page_count = 0;
  FakeFaults faults;
  faults.edit_list = [&page_count](v1::ListDocumentsResponse& page) {
    if (page_count++ % 2 == 0) {
      page.clear_documents();
    }
  };
  server_->SetFaults(faults);
  DocumentLister lister = client_->ListDocuments("web", {});
  size_t count = 0;
  while (true) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, lister.Next());
    if (!document.has_value()) {
      break;
    }
    ++count;
  }
  EXPECT_GT(count, 0u);
  EXPECT_GT(page_count, 3u);
  // Pages that do not lead on.
  std::string token;
  faults.edit_list = [&token](v1::ListDocumentsResponse& page) {
    if (token.empty()) {
      token = page.next_page_token();
    } else {
      page.clear_documents();
      page.set_next_page_token(token);
    }
  };
  server_->SetFaults(faults);
  DocumentLister endless = client_->ListDocuments("web", {});
  absl::Status status;
  while (status.ok()) {
    status = endless.Next().status();
  }
  EXPECT_THAT(status, HasCode(absl::StatusCode::kInternal));
}

// Gives a message places: its halves, the second one first.
void AddPlaces(v1::ScanResponse& message) {
  const auto size = static_cast<uint32_t>(message.range().size_bytes());
  const uint32_t half = size / 2;
  for (const uint32_t begin : {half, 0U}) {
    v1::ScanPlace& place = *message.add_places();
    place.set_offset(message.range().offset() + begin);
    place.set_text_offset(begin);
    place.set_size_bytes(begin == 0 ? half : size - half);
  }
}

ScanOptions InStoredOrder() {
  ScanOptions options;
  options.stored_order = true;
  return options;
}

TEST_F(ClientFaultsTest, ScansInStoredOrder) {
  std::string text(web_text_.size(), '?');
  const auto scan = [&] {
    return client_->Scan("web", InStoredOrder(), [&](const ScanPiece& piece) {
      for (const ScanPlace& place : piece.places) {
        text.replace(place.offset, place.data.size(), AsText(place.data).data(),
                     place.data.size());
      }
      return absl::OkStatus();
    });
  };
  // A server without stored order.
  QUIRE_EXPECT_OK(scan());
  EXPECT_EQ(text, std::string(web_text_.size(), '?'));
  FakeFaults faults;
  faults.edit_scan = AddPlaces;
  faults.broken_streams = 2;
  faults.messages_before_break = 2;
  server_->SetFaults(faults);
  QUIRE_EXPECT_OK(scan());
  EXPECT_EQ(text, web_text_);
  ScanOptions options = InStoredOrder();
  options.offset = 5;
  EXPECT_THAT(client_->Scan("web", options,
                            [](const ScanPiece&) { return absl::OkStatus(); }),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("whole archive")));
}

TEST_F(ClientFaultsTest, ChecksPlaces) {
  using Edit = void (*)(v1::ScanResponse&);
  const auto scan_with = [&](Edit edit, bool stored_order = true) {
    FakeFaults faults;
    faults.edit_scan = [edit](v1::ScanResponse& message) {
      AddPlaces(message);
      edit(message);
    };
    server_->SetFaults(faults);
    ScanOptions options = InStoredOrder();
    options.stored_order = stored_order;
    return client_->Scan("web", options,
                         [](const ScanPiece&) { return absl::OkStatus(); });
  };
  const auto refused = [](const char* message) {
    return FailsWith(absl::StatusCode::kInternal, HasSubstr(message));
  };
  QUIRE_EXPECT_OK(scan_with([](v1::ScanResponse&) {}));
  EXPECT_THAT(scan_with([](v1::ScanResponse&) {}, /*stored_order=*/false),
              refused("was not asked for"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places(1)->set_size_bytes(0);
              }),
              refused("a place of 0 bytes"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places(0)->set_text_offset(501);
              }),
              refused("a place of 500 bytes from 501 on of 1000"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places(0)->set_text_offset(UINT32_MAX);
                message.mutable_places(0)->set_size_bytes(UINT32_MAX);
              }),
              refused("a place of 4294967295 bytes"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places(0)->set_offset(UINT64_MAX);
              }),
              refused("at offset 18446744073709551615"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.clear_resume_token();
              }),
              refused("without a resume token"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                if (message.range().offset() > 0) {
                  message.clear_places();
                }
              }),
              refused("without a place"));
  // Too few bytes, and too many.
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places()->RemoveLast();
              }),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("ended early")));
  const auto wrong_places = FailsWith(absl::StatusCode::kDataLoss,
                                      HasSubstr("some overlap, or lie behind"));
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                *message.add_places() = message.places(0);
              }),
              wrong_places);
  // The right number, but one overlaps another, and one is past the end.
  EXPECT_THAT(
      scan_with([](v1::ScanResponse& message) {
        message.mutable_places(0)->set_offset(message.places(1).offset());
        message.mutable_places(0)->set_size_bytes(
            message.places(1).size_bytes());
        message.mutable_places(1)->set_size_bytes(
            static_cast<uint32_t>(message.range().size_bytes()) -
            message.places(0).size_bytes());
      }),
      wrong_places);
  EXPECT_THAT(scan_with([](v1::ScanResponse& message) {
                message.mutable_places(0)->set_offset(
                    message.places(0).offset() + (uint64_t{1} << 40));
              }),
              wrong_places);
}

TEST_F(ClientFaultsTest, NoticesStreamsThatEndEarly) {
  for (int message_count : {0, 2}) {
    FakeFaults faults;
    faults.messages_before_break = message_count;
    faults.early_ends = 1;
    const auto early =
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("ended early"));
    std::string text;
    server_->SetFaults(faults);
    EXPECT_THAT(Stream(ByteSpan{0, 5000}, text), early);
    server_->SetFaults(faults);
    EXPECT_THAT(Scan(text), early);
    server_->SetFaults(faults);
    EXPECT_THAT(
        Scan(text, {.offset = 3, .size_bytes = 5000, .resume_token = {}}),
        early);
    server_->SetFaults(faults);
    EXPECT_THAT(
        client_->GetDictionary(
            "hash-of-web", [](uint64_t, ByteView) { return absl::OkStatus(); }),
        early);
  }
}

TEST_F(ClientFaultsTest, ReadsALargeRangeAnewWhenItBreaks) {
  FakeFaults faults;
  faults.broken_streams = 2;
  faults.messages_before_break = 4;
  server_->SetFaults(faults);
  const auto result = client_->Read("web", ByteSpan{100, 12345});
  QUIRE_ASSERT_OK(result);
  EXPECT_EQ(result->data, web_text_.substr(100, 12345));
  EXPECT_EQ(server_->CallCount("ReadStream"), 3);
}

// Reads until `done`; false after minutes, enough for any machine, or if a call
// fails.
bool ReadUntil(Client& client, absl::FunctionRef<bool()> done) {
  const absl::Time give_up = absl::Now() + absl::Minutes(2);
  while (!done()) {
    if (absl::Now() > give_up || !client.Read("web", ByteSpan{0, 10}).ok()) {
      return false;
    }
  }
  return true;
}

TEST_F(ClientFaultsTest, SpreadsCallsOverAllServers) {
  auto other = FakeServer::Start({}, archives_);
  ASSERT_NE(other, nullptr);
  options_.address =
      absl::StrCat("ipv4:", server_->address(), ",", other->address());
  for (const int attempts_max : {4, 1}) {
    options_.attempts_max = attempts_max;
    Connect();
    for (const FakeServer* server : {server_.get(), other.get()}) {
      const int calls_before = server->CallCount("Read");
      EXPECT_TRUE(ReadUntil(*client_, [&] {
        return server->CallCount("Read") > calls_before + 5;
      })) << attempts_max;
    }
  }
}

TEST_F(ClientFaultsTest, LosesNoCallToAServerThatGoesAwayAndReturns) {
  auto other = FakeServer::Start({}, archives_);
  ASSERT_NE(other, nullptr);
  const std::string address = other->address();
  options_.address = absl::StrCat("ipv4:", server_->address(), ",", address);
  Connect();
  EXPECT_TRUE(
      ReadUntil(*client_, [&] { return other->CallCount("Read") > 5; }));
  other.reset();
  const int calls_before = server_->CallCount("Read");
  EXPECT_TRUE(ReadUntil(*client_, [&] {
    return server_->CallCount("Read") > calls_before + 20;
  }));
  // Another process may use the port meanwhile.
  for (const absl::Time give_up = absl::Now() + absl::Minutes(2);
       other == nullptr && absl::Now() < give_up;) {
    other = FakeServer::Start({.listen = address}, archives_);
    absl::SleepFor(absl::Milliseconds(other == nullptr ? 10 : 0));
  }
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(
      ReadUntil(*client_, [&] { return other->CallCount("Read") > 5; }));
}

TEST_F(ClientFaultsTest, LeavesABrokenStreamToItsReader) {
  FakeFaults faults;
  faults.broken_streams = 1;
  faults.messages_before_break = 3;
  server_->SetFaults(faults);
  std::string text;
  EXPECT_THAT(Stream(ByteSpan{0, 5000}, text),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(text, web_text_.substr(0, 3000));
}

TEST_F(ClientFaultsTest, TakesUpABrokenScan) {
  for (const std::optional<uint64_t> size_bytes :
       {std::optional<uint64_t>(), std::optional<uint64_t>(20000)}) {
    FakeFaults faults;
    // More breaks than attempts in a row: each made progress.
    faults.broken_streams = 6;
    faults.messages_before_break = 2;
    server_->SetFaults(faults);
    const int calls_before = server_->CallCount("Scan");
    std::string text;
    QUIRE_ASSERT_OK(Scan(
        text, {.offset = 11, .size_bytes = size_bytes, .resume_token = {}}));
    EXPECT_EQ(text, web_text_.substr(11, size_bytes.value_or(~uint64_t{0})));
    EXPECT_EQ(server_->CallCount("Scan"), calls_before + 7);
  }
}

TEST_F(ClientFaultsTest, GivesUpAScanThatMakesNoProgress) {
  options_.stream_idle_max = absl::Milliseconds(500);
  Connect();
  FakeFaults faults;
  faults.broken_streams = -1;
  faults.messages_before_break = 0;
  server_->SetFaults(faults);
  std::string text;
  EXPECT_THAT(Scan(text), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_GE(server_->CallCount("Scan"), 4);
}

TEST_F(ClientFaultsTest, TakesUpABrokenDictionary) {
  FakeFaults faults;
  faults.broken_streams = 3;
  faults.messages_before_break = 1;
  server_->SetFaults(faults);
  std::string text;
  QUIRE_ASSERT_OK(
      client_->GetDictionary("hash-of-web", [&](uint64_t, ByteView data) {
        text.append(AsText(data).data(), data.size());
        return absl::OkStatus();
      }));
  EXPECT_EQ(text, archives_.at("web").dictionary);
}

}  // namespace
}  // namespace quire
