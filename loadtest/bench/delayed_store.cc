// SPDX-License-Identifier: Apache-2.0
//
// delayed_store: files below a directory as objects of a store that is some
// milliseconds away. Answers ranged GETs over HTTP/1.1, each connection on its
// own thread: an answer leaves after the delay, and the first of a connection
// after twice the delay, as a handshake takes a round, too. Bandwidth and TCP's
// slow start are those of the loopback. Prints its URL and serves until
// standard input ends.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/unique_fd.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kHeadEnd[] = "\r\n\r\n";
constexpr size_t kHeadSizeMax = 16 << 10;

struct StoreOptions {
  std::string directory;
  std::chrono::microseconds delay{0};
};

// Returns the value of a header field, empty without one.
absl::string_view HeaderValue(absl::string_view head, absl::string_view name) {
  const std::string line = absl::StrCat("\r\n", name, ": ");
  const size_t begin = head.find(line);
  if (begin == absl::string_view::npos) {
    return "";
  }
  head.remove_prefix(begin + line.size());
  return head.substr(0, head.find("\r\n"));
}

bool SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_MORE);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// One request after the other of a connection.
class Connection {
 public:
  Connection(UniqueFd fd, const StoreOptions& options)
      : fd_(std::move(fd)), options_(options) {}

  void Serve() {
    const int on = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    auto delay = 2 * options_.delay;
    while (true) {
      const size_t end = received_.find(kHeadEnd);
      if (end == std::string::npos) {
        std::array<char, 4096> part;
        const ssize_t count = recv(fd_.get(), part.data(), part.size(), 0);
        if (count <= 0 || received_.size() > kHeadSizeMax) {
          return;
        }
        received_.append(part.data(), static_cast<size_t>(count));
        continue;
      }
      const Clock::time_point due = Clock::now() + delay;
      delay = options_.delay;
      const std::string head = received_.substr(0, end + 2);
      received_.erase(0, end + sizeof(kHeadEnd) - 1);
      std::this_thread::sleep_until(due);
      if (!Answer(head)) {
        return;
      }
    }
  }

 private:
  bool SendEmpty(absl::string_view status) {
    return SendAll(fd_.get(), absl::StrCat("HTTP/1.1 ", status,
                                           "\r\nContent-Length: 0\r\n\r\n")) &&
           Push();
  }

  // Sends what MSG_MORE has kept.
  bool Push() {
    const int on = 1;
    return setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ==
           0;
  }

  // False at the end of the connection.
  bool Answer(absl::string_view head) {
    const size_t begin = head.find(' ');
    const size_t end = head.find(' ', begin + 1);
    if (end == absl::string_view::npos) {
      return false;
    }
    const std::string path = absl::StrCat(
        options_.directory, head.substr(begin + 1, end - begin - 1));
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));

    struct stat status {};

    if (!file.is_open() || fstat(file.get(), &status) != 0 ||
        !S_ISREG(status.st_mode)) {
      return SendEmpty("404 Not Found");
    }
    const auto size_bytes = static_cast<uint64_t>(status.st_size);
    const std::string etag =
        absl::StrCat("\"", status.st_ino, "-", size_bytes, "\"");
    const absl::string_view condition = HeaderValue(head, "If-Match");
    if (!condition.empty() && condition != etag) {
      return SendEmpty("412 Precondition Failed");
    }
    if (HeaderValue(head, "If-None-Match") == etag) {
      return SendEmpty("304 Not Modified");
    }
    absl::string_view range = HeaderValue(head, "Range");
    uint64_t first = 0;
    uint64_t last = size_bytes - 1;
    if (!range.empty()) {
      range.remove_prefix(std::min(range.size(), range.find('=') + 1));
      const char* range_end = range.data() + range.size();
      const auto parsed = std::from_chars(range.data(), range_end, first);
      if (parsed.ptr == range_end ||
          std::from_chars(parsed.ptr + 1, range_end, last).ec != std::errc() ||
          first > last || last >= size_bytes) {
        return SendEmpty("416 Range Not Satisfiable");
      }
    }
    const std::string answer = absl::StrCat(
        range.empty() ? "HTTP/1.1 200 OK" : "HTTP/1.1 206 Partial Content",
        "\r\nContent-Length: ", last - first + 1, "\r\nETag: ", etag,
        range.empty() ? ""
                      : absl::StrCat("\r\nContent-Range: bytes ", first, "-",
                                     last, "/", size_bytes),
        kHeadEnd);
    if (!SendAll(fd_.get(), answer)) {
      return false;
    }
    auto offset = static_cast<off_t>(first);
    while (static_cast<uint64_t>(offset) <= last) {
      if (sendfile(fd_.get(), file.get(), &offset,
                   last + 1 - static_cast<uint64_t>(offset)) <= 0) {
        return false;
      }
    }
    return Push();
  }

  const UniqueFd fd_;
  const StoreOptions& options_;
  std::string received_;
};

int Run(const StoreOptions& options) {
  // Clients cancel; sendfile() has no MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size_bytes = sizeof(address);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size_bytes) !=
          0 ||
      listen(listener.get(), 1024) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address),
                  &size_bytes) != 0) {
    std::cerr << "delayed_store: cannot listen on 127.0.0.1\n";
    return 1;
  }
  absl::PrintF("http://127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread([&] {
    while (true) {
      UniqueFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd.is_open()) {
        std::thread([&options, fd = std::move(fd)]() mutable {
          Connection(std::move(fd), options).Serve();
        }).detach();
      }
    }
  }).detach();
  while (std::getchar() != EOF) {
  }
  // Without destructors: the threads use what is on this stack.
  _exit(0);
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::StoreOptions options;
  double delay_ms = 0;
  return quire::RunProgram(
      "delayed_store", "the objects of a directory, after a delay", 1,
      [&](CLI::App& app) {
        app.add_option("DIRECTORY", options.directory, "Directory of objects")
            ->required();
        app.add_option("--delay-ms", delay_ms, "Delay of each answer")
            ->check(quire::NumberInRange(0, 10'000));
        app.parse(argc, argv);
        options.delay =
            std::chrono::microseconds(std::llround(1000 * delay_ms));
        return quire::Run(options);
      });
}
