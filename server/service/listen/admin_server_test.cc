// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/admin_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/files/file_io.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AdminServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        server_, AdminServer::Open("127.0.0.1:0",
                                   {.metrics =
                                        [this] {
                                          return "quire_up 1\n" +
                                                 std::string(
                                                     padding_size_bytes_, 'x');
                                        },
                                    .is_ready =
                                        [this] {
                                          is_held_.wait(true);
                                          return is_ready_.load();
                                        }}));
  }

  UniqueFd Connect() const {
    const std::string& address = server_->address();
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)),
              0);
    return fd;
  }

  static void Send(const UniqueFd& fd, absl::string_view text) {
    ASSERT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  static std::string ReadToEnd(const UniqueFd& fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t size = 0;
         (size = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }

  std::string Ask(absl::string_view request) const {
    const UniqueFd fd = Connect();
    Send(fd, request);
    return ReadToEnd(fd);
  }

  std::atomic<size_t> padding_size_bytes_ = 0;
  std::atomic<bool> is_ready_ = true;
  // /readyz waits while it is true.
  std::atomic<bool> is_held_ = false;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(AdminServerTest, ServesItsPages) {
  const std::string page = Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; "
                              "charset=utf-8\r\nContent-Length: 11\r\n"));
  EXPECT_THAT(page, EndsWith("\r\n\r\nquire_up 1\n"));
  EXPECT_THAT(Ask("GET /metrics?format=text HTTP/1.0\r\n\r\n"),
              EndsWith("\r\n\r\nquire_up 1\n"));
  EXPECT_THAT(Ask("HEAD /metrics HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), EndsWith("alive\n"));
  EXPECT_THAT(Ask("GET /readyz HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\nready\n"));
  is_ready_ = false;
  EXPECT_THAT(Ask("GET /readyz HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
}

TEST_F(AdminServerTest, RefusesOtherRequests) {
  for (const char* path : {"/", "/metrics/", "/metricsx", "*", "/../metrics"}) {
    EXPECT_THAT(Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\n\r\n")),
                StartsWith("HTTP/1.1 404 "))
        << path;
  }
  EXPECT_THAT(Ask("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                    HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  for (const char* line : {"GET /metrics", "GET  HTTP/1.1 x", "GET / SPDY"}) {
    EXPECT_THAT(Ask(absl::StrCat(line, "\r\n\r\n")),
                StartsWith("HTTP/1.1 400 "))
        << line;
  }
  EXPECT_THAT(Ask(std::string(8193, 'x')), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nA: " + std::string(8193, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(AdminServerTest, TakesARequestInPieces) {
  const UniqueFd fd = Connect();
  for (const char c : absl::string_view("GET /healthz HTTP/1.1\r\n\r\n")) {
    Send(fd, {&c, 1});
  }
  EXPECT_THAT(ReadToEnd(fd), EndsWith("\r\n\r\nalive\n"));
}

TEST_F(AdminServerTest, AnswersBesideConnectionsThatSendNothing) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) {
    silent.push_back(Connect());
  }
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), EndsWith("alive\n"));
  // The oldest connection was closed.
  EXPECT_EQ(ReadToEnd(silent.front()), "");
}

// A page larger than any socket buffer. Neither a scraper that stops reading
// nor one that never asks may delay the end.
TEST_F(AdminServerTest, EndsBesideAScraperThatHasStoppedReading) {
  padding_size_bytes_ = 64 << 20;
  const UniqueFd silent = Connect();
  const UniqueFd scraper = Connect();
  Send(scraper, "GET /metrics HTTP/1.1\r\n\r\n");
  char first = 0;
  ASSERT_EQ(read(scraper.get(), &first, 1), 1);
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), EndsWith("alive\n"));
  server_.reset();
  EXPECT_EQ(ReadToEnd(silent), "");
  EXPECT_LT(ReadToEnd(scraper).size(), padding_size_bytes_.load());
}

TEST_F(AdminServerTest, NeitherAnswersNorCloseWaitForAPage) {
  is_held_ = true;
  std::vector<UniqueFd> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(Connect());
    Send(held.back(), "GET /readyz HTTP/1.1\r\n\r\n");
  }
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\n\r\n"), EndsWith("alive\n"));
  std::thread end([this] { server_.reset(); });
  for (const UniqueFd& fd : held) {
    EXPECT_EQ(ReadToEnd(fd), "");
  }
  is_held_ = false;
  is_held_.notify_all();
  end.join();
}

TEST(AdminServerOpenTest, SaysWhyItCannotListen) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto first,
                             AdminServer::Open("127.0.0.1:0", {}));
  EXPECT_THAT(AdminServer::Open(first->address(), {}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("the port is in use; choose another")));
  EXPECT_THAT(AdminServer::Open("203.0.113.1:1", {}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("this machine has no such address")));
  EXPECT_THAT(AdminServer::Open("7421", {}),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
