// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/testing/silent_port.h"
#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpGetTest, TellsUrlsFromWhatIsNone) {
  for (const char* good : {"http://h.example:9420/metrics?x=1", "http://h",
                           "http://[::1]:5/", "http://127.0.0.1:9420/"}) {
    QUIRE_EXPECT_OK(CheckHttpUrl(good)) << good;
  }
  for (const char* bad :
       {"", "h:1/", "localhost:9420", "https://h/", "file:///etc/passwd",
        "http://", "http://:5/", "http://h:65536/", "http://h:x/",
        "http://h/a b", "http://h/\r\nX: y", "http://[::1/", "http://::1]/",
        "http://[::1]x:5/"}) {
    EXPECT_THAT(CheckHttpUrl(bad),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("http://host:port/path")))
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
    url_ =
        absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/metrics");
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

  const std::string& url() const { return url_; }

  std::string Request() { return request_.get(); }

 private:
  int fd_ = -1;
  std::string url_;
  std::future<std::string> request_;
};

TEST(HttpGetTest, GetsAPage) {
  const std::string page(200'000, 'm');
  OneAnswer server(
      absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n", page));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string body, HttpGet(server.url(), {}));
  EXPECT_EQ(body, page);
  EXPECT_THAT(server.Request(), StartsWith("GET /metrics HTTP/1."));
}

TEST(HttpGetTest, TakesNoMoreThanItsLimit) {
  OneAnswer server(
      absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", std::string(1 << 20, 'm')));
  EXPECT_THAT(HttpGet(server.url(), {.size_bytes_max = 1000}),
              HasCode(absl::StatusCode::kResourceExhausted));
}

TEST(HttpGetTest, SaysWhatIsWrongWithAnAnswer) {
  const struct {
    const char* answer;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
       absl::StatusCode::kUnavailable, "404"},
      {"HTTP/1.1 204 No Content\r\n\r\n", absl::StatusCode::kUnavailable,
       "204"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
       absl::StatusCode::kDataLoss, ""},
      {"SSH-2.0\r\n\r\n", absl::StatusCode::kUnavailable, ""},
      {"", absl::StatusCode::kUnavailable, ""},
  };

  for (const auto& c : cases) {
    OneAnswer server(c.answer);
    EXPECT_THAT(HttpGet(server.url(), {}),
                FailsWith(c.code, HasSubstr(c.message)))
        << c.answer;
  }
}

TEST(HttpGetTest, WaitsNoLongerThanItsLimit) {
  // Listens, but never answers.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string url =
      absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/");
  EXPECT_THAT(HttpGet(url, {.time_max = std::chrono::milliseconds(20)}),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  close(fd);
}

TEST(HttpGetTest, SaysThatNobodyListens) {
  const SilentPort port;
  EXPECT_THAT(HttpGet(absl::StrCat("http://", port.address(), "/"), {}),
              HasCode(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace quire
