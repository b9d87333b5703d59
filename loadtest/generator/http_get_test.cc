// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/silent_port.h"
#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpGetTest, ParsesUrls) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const HttpUrl url,
                             ParseHttpUrl("http://h.example:9420/metrics?x=1"));
  EXPECT_EQ(url.host, "h.example");
  EXPECT_EQ(url.port, "9420");
  EXPECT_EQ(url.path, "/metrics?x=1");
  QUIRE_ASSERT_OK_AND_ASSIGN(const HttpUrl bare, ParseHttpUrl("http://h"));
  EXPECT_EQ(bare.port, "80");
  EXPECT_EQ(bare.path, "/");
  QUIRE_ASSERT_OK_AND_ASSIGN(const HttpUrl v6, ParseHttpUrl("http://[::1]:5/"));
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, "5");
  for (const char* bad :
       {"", "h:1/", "https://h/", "http://", "http://:5/", "http://h:0/",
        "http://h:65536/", "http://h:x/", "http://h/a b", "http://h/\r\nX: y",
        "http://[::1/", "http://::1]/", "http://[::1]x:5/"}) {
    EXPECT_THAT(ParseHttpUrl(bad), HasCode(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(HttpGetTest, ParsesAnswers) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string body,
      ParseHttpAnswer(
          "HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 3\r\n\r\nabcd"));
  EXPECT_EQ(body, "abc");
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string to_end,
                             ParseHttpAnswer("HTTP/1.0 200 OK\r\n\r\nall"));
  EXPECT_EQ(to_end, "all");
  EXPECT_THAT(ParseHttpAnswer("HTTP/1.1 404 Not Found\r\n\r\n"),
              FailsWith(absl::StatusCode::kUnavailable, HasSubstr("404")));
  for (const char* bad :
       {"", "x", "HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"}) {
    EXPECT_THAT(ParseHttpAnswer(bad), HasCode(absl::StatusCode::kDataLoss))
        << bad;
  }
}

// Listens on a free port of the loopback, and answers one connection.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = {.host = "127.0.0.1",
            .port = std::to_string(ntohs(address.sin_port)),
            .path = "/metrics"};
    request_ = std::async(std::launch::async, [this, answer] {
      const int peer = accept(fd_, nullptr, nullptr);
      std::string request(4096, '\0');
      const ssize_t got = recv(peer, request.data(), request.size(), 0);
      request.resize(got < 0 ? 0 : static_cast<size_t>(got));
      // All of it: the other end may close before.
      for (size_t sent = 0; sent < answer.size();) {
        const ssize_t some = send(peer, answer.data() + sent,
                                  answer.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) {
          break;
        }
        sent += static_cast<size_t>(some);
      }
      close(peer);
      return request;
    });
  }

  ~OneAnswer() { close(fd_); }

  const HttpUrl& url() const { return url_; }

  std::string Request() { return request_.get(); }

 private:
  int fd_ = -1;
  HttpUrl url_;
  std::future<std::string> request_;
};

TEST(HttpGetTest, GetsAPage) {
  const std::string page(200'000, 'm');
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + page);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string body, HttpGet(server.url(), {}));
  EXPECT_EQ(body, page);
  EXPECT_THAT(server.Request(), StartsWith("GET /metrics HTTP/1.0\r\n"));
}

TEST(HttpGetTest, TakesNoMoreThanItsLimit) {
  OneAnswer server("HTTP/1.1 200 OK\r\n\r\n" + std::string(1 << 20, 'm'));
  EXPECT_THAT(HttpGet(server.url(), {.size_bytes_max = 1000}),
              HasCode(absl::StatusCode::kResourceExhausted));
}

TEST(HttpGetTest, WaitsNoLongerThanItsLimit) {
  // Listens, but nobody ever answers.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const HttpUrl url{.host = "127.0.0.1",
                    .port = std::to_string(ntohs(address.sin_port)),
                    .path = "/"};
  EXPECT_THAT(HttpGet(url, {.time_max = std::chrono::milliseconds(20)}),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  close(fd);
}

TEST(HttpGetTest, SaysThatNobodyListens) {
  const SilentPort port;
  const HttpUrl url{.host = "127.0.0.1", .port = port.number(), .path = "/"};
  EXPECT_THAT(HttpGet(url, {}), HasCode(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace quire
