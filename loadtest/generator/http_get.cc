// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/http_get.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::string_view kScheme = "http://";

absl::Status Broken(absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(what, ": ", std::generic_category().message(errno)));
}

// A socket that never blocks but in Wait().
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}

  ~Socket() { close(fd_); }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }

  // Until it can be read from (POLLIN) or written to (POLLOUT).
  absl::Status Wait(int events, Clock::time_point deadline) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - Clock::now());
      if (left.count() <= 0) {
        return absl::DeadlineExceededError("no answer in time");
      }
      pollfd waiting = {};
      waiting.fd = fd_;
      waiting.events = static_cast<int16_t>(events);
      const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
      if (ready > 0) {
        return absl::OkStatus();
      }
      if (ready < 0 && errno != EINTR) {
        return Broken("poll");
      }
    }
  }

 private:
  const int fd_;
};

absl::StatusOr<std::unique_ptr<Socket>> Connect(const HttpUrl& url,
                                                Clock::time_point deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  if (code != 0) {
    return absl::UnavailableError(
        absl::StrCat(url.host, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, freeaddrinfo);
  absl::Status status;
  for (const addrinfo* address = found; address != nullptr;
       address = address->ai_next) {
    const int fd = socket(address->ai_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      status = Broken("socket");
      continue;
    }
    auto connection = std::make_unique<Socket>(fd);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) {
        status = Broken(url.host);
        continue;
      }
      QUIRE_RETURN_IF_ERROR(connection->Wait(POLLOUT, deadline));
      socklen_t size = sizeof(int);
      int error = 0;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        errno = error;
        status = Broken(url.host);
        continue;
      }
    }
    return connection;
  }
  return status;
}

absl::Status Send(const Socket& socket, absl::string_view text,
                  Clock::time_point deadline) {
  while (!text.empty()) {
    QUIRE_RETURN_IF_ERROR(socket.Wait(POLLOUT, deadline));
    const ssize_t sent =
        send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return Broken("send");
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not like http://host:port/path"));
  if (!absl::StartsWith(text, kScheme)) {
    return bad;
  }
  text.remove_prefix(kScheme.size());
  const size_t slash = std::min(text.find('/'), text.size());
  HttpUrl url{.host = std::string(text.substr(0, slash)),
              .port = "80",
              .path = slash == text.size() ? std::string("/")
                                           : std::string(text.substr(slash))};
  const size_t bracket = url.host.find(']');
  const size_t colon =
      url.host.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    url.port = url.host.substr(colon + 1);
    url.host.resize(colon);
  }
  if (bracket != std::string::npos) {
    if (url.host.front() != '[' || url.host.back() != ']') {
      return bad;
    }
    url.host = url.host.substr(1, url.host.size() - 2);
  }
  uint32_t port = 0;
  const bool is_plain =
      std::all_of(url.path.begin(), url.path.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c));
      });
  if (url.host.empty() || !is_plain || !absl::SimpleAtoi(url.port, &port) ||
      port == 0 || port > 65535) {
    return bad;
  }
  return url;
}

absl::StatusOr<std::string> ParseHttpAnswer(absl::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (!absl::StartsWith(answer, "HTTP/1.") || end == absl::string_view::npos) {
    return absl::DataLossError("the answer is not HTTP");
  }
  absl::string_view headers = answer.substr(0, end);
  absl::string_view body = answer.substr(end + 4);
  const absl::string_view first = headers.substr(0, headers.find("\r\n"));
  if (first.size() < 12 || first.substr(8, 4) != " 200") {
    return absl::UnavailableError(absl::StrCat("the answer is ", first));
  }
  for (size_t at = headers.find("\r\n"); at != absl::string_view::npos;
       at = headers.find("\r\n", at + 2)) {
    const absl::string_view header = headers.substr(at + 2);
    const absl::string_view line = header.substr(0, header.find("\r\n"));
    const size_t colon = std::min(line.find(':'), line.size());
    const absl::string_view name = line.substr(0, colon);
    if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
      return absl::DataLossError("the answer is of a newer HTTP than asked");
    }
    uint64_t size = 0;
    if (absl::EqualsIgnoreCase(name, "content-length")) {
      if (!absl::SimpleAtoi(line.substr(std::min(colon + 1, line.size())),
                            &size) ||
          size > body.size()) {
        return absl::DataLossError("the answer was cut short");
      }
      body = body.substr(0, size);
    }
  }
  return std::string(body);
}

absl::StatusOr<std::string> HttpGet(const HttpUrl& url,
                                    const HttpLimits& limits) {
  const Clock::time_point deadline = Clock::now() + limits.time_max;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Socket> socket,
                         Connect(url, deadline));
  QUIRE_RETURN_IF_ERROR(
      Send(*socket,
           absl::StrCat("GET ", url.path, " HTTP/1.0\r\nHost: ", url.host,
                        "\r\nConnection: close\r\n\r\n"),
           deadline));
  std::string answer;
  std::array<char, 64 << 10> buffer;
  for (;;) {
    QUIRE_RETURN_IF_ERROR(socket->Wait(POLLIN, deadline));
    const ssize_t got = recv(socket->fd(), buffer.data(), buffer.size(), 0);
    if (got == 0) {
      return ParseHttpAnswer(answer);
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
      return Broken("recv");
    }
    answer.append(buffer.data(),
                  static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (answer.size() > limits.size_bytes_max) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the answer is larger than ", limits.size_bytes_max, " bytes"));
    }
  }
}

}  // namespace quire
