// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/storage/tiny_object_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {

TinyObjectServer::TinyObjectServer(std::string bytes)
    : bytes_(std::move(bytes)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size_bytes = sizeof(address);
  QUIRE_CHECK(
      bind(listener_, reinterpret_cast<sockaddr*>(&address), size_bytes) == 0 &&
          listen(listener_, 128) == 0 &&
          getsockname(listener_, reinterpret_cast<sockaddr*>(&address),
                      &size_bytes) == 0,
      "the test cannot listen on the loopback");
  url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
  acceptor_ = std::thread([this] { Accept(); });
}

TinyObjectServer::~TinyObjectServer() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int fd : connections_) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  close(listener_);
}

void TinyObjectServer::Accept() {
  while (true) {
    const int fd = accept(listener_, nullptr, nullptr);
    MutexLock lock(&mutex_);
    if (fd < 0 || is_stopping_) {
      if (fd >= 0) {
        close(fd);
      }
      return;
    }
    connections_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void TinyObjectServer::Serve(int fd) {
  constexpr char kHeadEnd[] = "\r\n\r\n";
  std::string received;
  std::array<char, 4096> part;
  ssize_t count = 0;
  while ((count = recv(fd, part.data(), part.size(), 0)) > 0) {
    received.append(part.data(), static_cast<size_t>(count));
    for (size_t end = 0; (end = received.find(kHeadEnd)) != std::string::npos;
         received.erase(0, end + 4)) {
      const std::string answer = Answer(received.substr(0, end + 2));
      size_t sent = 0;
      while (sent < answer.size()) {
        const ssize_t step =
            send(fd, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (step <= 0) {
          break;
        }
        sent += static_cast<size_t>(step);
      }
    }
  }
  MutexLock lock(&mutex_);
  std::erase(connections_, fd);
  close(fd);
}

std::string TinyObjectServer::Answer(const std::string& head) {
  const uint64_t number = ++request_count_;
  const uint64_t fail_every = fail_every_;
  if (fail_every != 0 && number % fail_every == 0) {
    return "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n";
  }
  if (misses_) {
    return absl::StrCat("HTTP/1.1 404 Not Found\r\nContent-Length: ",
                        2 * bytes_.size(), "\r\n\r\n", bytes_);
  }
  const std::string etag = absl::StrCat(
      "\"", is_replaced_always_ ? version_++ : version_.load(), "\"");
  const size_t condition = head.find("If-Match: ");
  if (condition != std::string::npos &&
      head.compare(condition + 10, etag.size(), etag) != 0) {
    return "HTTP/1.1 412 Changed\r\nContent-Length: 0\r\n\r\n";
  }
  uint64_t first = 0;
  uint64_t last = bytes_.size() - 1;
  const size_t range = head.find("Range: bytes=");
  if (range != std::string::npos) {
    const char* end = head.data() + head.size();
    const auto parsed = std::from_chars(head.data() + range + 13, end, first);
    std::from_chars(parsed.ptr + 1, end, last);
  }
  const bool is_whole = sends_whole_ && range == std::string::npos;
  const std::string answer = absl::StrCat(
      is_whole ? "HTTP/1.1 200 OK"
               : absl::StrCat("HTTP/1.1 206 Partial Content\r\nContent-Range: "
                              "bytes ",
                              first, "-", last, "/", bytes_.size()),
      "\r\nETag: ", etag, "\r\n");
  const std::string body = bytes_.substr(first, last - first + 1);
  return sends_trailers_
             ? absl::StrCat(answer, "Transfer-Encoding: chunked\r\n\r\n",
                            absl::Hex(body.size()), "\r\n", body,
                            "\r\n0\r\nETag: \"trailer\"\r\n\r\n")
             : absl::StrCat(answer, "Content-Length: ", body.size(), "\r\n\r\n",
                            body);
}

}  // namespace quire
