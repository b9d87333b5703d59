// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/admin_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/service/listen_address.h"
#include "server/storage/base/worker_threads.h"

namespace quire {
namespace {

// Each may hold a page. A further connection ends the oldest.
constexpr size_t kConnectionsMax = 8;
// Pages that are made at the same time: /readyz waits for the server.
constexpr uint32_t kPageThreads = 2;
constexpr absl::Duration kConnectionTimeMax = absl::Seconds(10);
constexpr size_t kRequestSizeBytesMax = 8 << 10;
// Pause while there are no descriptors to accept with.
constexpr int kPauseMs = 100;

struct Page {
  const char* status = "200 OK";
  const char* type = "text/plain";
  std::string text;
};

struct Connection {
  uint64_t id = 0;
  UniqueFd fd;
  absl::Time deadline;
  std::string request = {};
  // True once the request is complete.
  bool has_request = false;
  // Empty until the page has been made.
  std::string response = {};
  size_t sent_size_bytes = 0;

  bool is_sent() const {
    return !response.empty() && sent_size_bytes == response.size();
  }
};

// A request whose page is to be made.
struct PageRequest {
  uint64_t connection_id = 0;
  std::string path;
  bool has_body = true;
};

std::string ToResponse(const Page& page, bool has_body) {
  return absl::StrCat(
      "HTTP/1.1 ", page.status, "\r\nContent-Type: ", page.type,
      "\r\nContent-Length: ", page.text.size(),
      "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
      has_body ? page.text : "");
}

bool IsTransient(int error_number) {
  return error_number == EAGAIN || error_number == EINTR;
}

class AdminServerImpl final : public AdminServer {
 public:
  explicit AdminServerImpl(AdminPages pages) : pages_(std::move(pages)) {}

  ~AdminServerImpl() override {
    stopping_ = true;
    Wake();
    if (thread_.joinable()) {
      thread_.join();
    }
    // Before the page threads are waited for.
    connections_.clear();
    listening_.clear();
  }

  // Errors: FailedPrecondition  it cannot listen on `address`.
  //         ResourceExhausted   no descriptor or thread.
  absl::Status Start(const std::string& address);

  const std::string& address() const override { return address_; }

 private:
  void Wake() {
    const uint64_t one = 1;
    // An eventfd below its maximum takes eight bytes at once.
    [[maybe_unused]] const ssize_t written =
        write(wake_.get(), &one, sizeof(one));
  }

  // Returns errno, or 0.
  int Bind(addrinfo& place);
  void Run();
  void Accept(int listening_fd);
  // Gives connections the responses that the page threads have made.
  void TakeResponses() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads or writes what it can without blocking. False if the connection has
  // ended.
  bool Advance(Connection& connection);
  // Responds, or hands the request to a page thread.
  void Respond(Connection& connection);
  Page MakePage(absl::string_view path) const;

  const AdminPages pages_;
  std::string address_;
  // Of all sockets; 0 before the first is bound.
  in_port_t port_ = 0;
  std::vector<UniqueFd> listening_;
  // The oldest first.
  std::list<Connection> connections_;
  uint64_t next_id_ = 0;
  // Readable when there is a response, or the server stops.
  UniqueFd wake_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  // By the connection's id.
  std::map<uint64_t, std::string> responses_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WorkerThreads<PageRequest>> page_threads_;
  std::thread thread_;
};

absl::Status AdminServerImpl::Start(const std::string& address) {
  QUIRE_ASSIGN_OR_RETURN(const AddressList places,
                         ResolveListenAddress(address));
  int error = 0;
  for (addrinfo* place = places.get(); place != nullptr;
       place = place->ai_next) {
    const int refusal = Bind(*place);
    error = error == 0 ? refusal : error;
  }
  if (listening_.empty()) {
    return absl::FailedPreconditionError(DescribeListenError(error));
  }
  address_ = WithPort(address, ntohs(port_));
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) {
    return absl::ResourceExhaustedError(std::generic_category().message(errno));
  }
  QUIRE_ASSIGN_OR_RETURN(
      page_threads_,
      WorkerThreads<PageRequest>::Start(
          "quire-page", kPageThreads, [this](const PageRequest& request) {
            if (stopping_) {
              return;
            }
            std::string response =
                ToResponse(MakePage(request.path), request.has_body);
            {
              MutexLock lock(&mutex_);
              responses_[request.connection_id] = std::move(response);
            }
            Wake();
          }));
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& system_error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread: ", system_error.what()));
  }
  return absl::OkStatus();
}

int AdminServerImpl::Bind(addrinfo& place) {
  UniqueFd fd(
      socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd.is_open() ||
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
    return errno;
  }
  // The port lies at the same offset in both kinds of addresses.
  static_assert(offsetof(sockaddr_in, sin_port) ==
                offsetof(sockaddr_in6, sin6_port));
  if (port_ != 0) {
    reinterpret_cast<sockaddr_in*>(place.ai_addr)->sin_port = port_;
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (bind(fd.get(), place.ai_addr, place.ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return errno;
  }
  port_ = reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  listening_.push_back(std::move(fd));
  return 0;
}

void AdminServerImpl::Run() {
  pthread_setname_np(pthread_self(), "quire-admin");
  std::vector<pollfd> waiting;
  for (;;) {
    waiting.assign(1, {wake_.get(), POLLIN, 0});
    for (const UniqueFd& fd : listening_) {
      waiting.push_back({fd.get(), POLLIN, 0});
    }
    absl::Time next_deadline = absl::InfiniteFuture();
    for (const Connection& connection : connections_) {
      const bool is_reading = !connection.has_request || connection.is_sent();
      const bool is_writing = !is_reading && !connection.response.empty();
      waiting.push_back({connection.fd.get(),
                         static_cast<int16_t>(is_reading   ? POLLIN
                                              : is_writing ? POLLOUT
                                                           : 0),
                         0});
      next_deadline = std::min(next_deadline, connection.deadline);
    }
    const absl::Duration wait = std::clamp(
        next_deadline - absl::Now(), absl::ZeroDuration(), kConnectionTimeMax);
    poll(waiting.data(), waiting.size(),
         static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (stopping_) {
      return;
    }
    const absl::Time now = absl::Now();
    auto polled =
        waiting.begin() + 1 + static_cast<std::ptrdiff_t>(listening_.size());
    for (auto it = connections_.begin(); it != connections_.end(); ++polled) {
      const bool is_open =
          now < it->deadline && (polled->revents == 0 || Advance(*it));
      it = is_open ? std::next(it) : connections_.erase(it);
    }
    if (waiting[0].revents != 0) {
      TakeResponses();
    }
    for (size_t i = 1; i <= listening_.size(); ++i) {
      if (waiting[i].revents != 0) {
        Accept(waiting[i].fd);
      }
    }
  }
}

void AdminServerImpl::Accept(int listening_fd) {
  UniqueFd fd(
      accept4(listening_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.is_open()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
        errno == ENOBUFS) {
      pollfd wake = {wake_.get(), POLLIN, 0};
      poll(&wake, 1, kPauseMs);
    }
    return;
  }
  if (connections_.size() == kConnectionsMax) {
    connections_.pop_front();
  }
  connections_.push_back({.id = next_id_++,
                          .fd = std::move(fd),
                          .deadline = absl::Now() + kConnectionTimeMax});
}

void AdminServerImpl::TakeResponses() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size =
      read(wake_.get(), &count, sizeof(count));
  std::map<uint64_t, std::string> responses;
  {
    MutexLock lock(&mutex_);
    responses.swap(responses_);
  }
  for (Connection& connection : connections_) {
    const auto found = responses.find(connection.id);
    if (found != responses.end()) {
      connection.response = std::move(found->second);
    }
  }
}

bool AdminServerImpl::Advance(Connection& connection) {
  if (!connection.has_request || connection.is_sent()) {
    char buffer[4096];
    const ssize_t size = read(connection.fd.get(), buffer, sizeof(buffer));
    if (size <= 0) {
      return size < 0 && IsTransient(errno);
    }
    if (connection.is_sent()) {
      // Read and dropped: closing a socket with unread bytes would discard the
      // response.
      return true;
    }
    connection.request.append(buffer, static_cast<size_t>(size));
    Respond(connection);
  }
  if (connection.response.empty()) {
    // While its page is made, only an error or the client's end wakes it.
    pollfd state = {connection.fd.get(), 0, 0};
    return poll(&state, 1, 0) == 0;
  }
  const absl::string_view rest =
      absl::string_view(connection.response).substr(connection.sent_size_bytes);
  const ssize_t size =
      send(connection.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (size < 0) {
    return IsTransient(errno);
  }
  connection.sent_size_bytes += static_cast<size_t>(size);
  if (connection.is_sent()) {
    shutdown(connection.fd.get(), SHUT_WR);
  }
  return true;
}

void AdminServerImpl::Respond(Connection& connection) {
  const absl::string_view request = connection.request;
  const auto respond = [&connection](const Page& page) {
    connection.has_request = true;
    connection.response = ToResponse(page, /*has_body=*/true);
  };
  if (request.find("\r\n\r\n") == absl::string_view::npos) {
    if (request.size() > kRequestSizeBytesMax) {
      respond({.status = "431 Request Header Fields Too Large",
               .text = "the request is too long\n"});
    }
    return;
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) {
    respond({.status = "400 Bad Request", .text = "not a request of HTTP/1\n"});
  } else if (words[0] != "GET" && words[0] != "HEAD") {
    respond({.status = "405 Method Not Allowed\r\nAllow: GET, HEAD",
             .text = "use GET or HEAD\n"});
  } else {
    const bool has_body = words[0] == "GET";
    const absl::string_view path = words[1].substr(0, words[1].find('?'));
    connection.has_request = true;
    if (path != "/metrics" && path != "/readyz") {
      connection.response = ToResponse(MakePage(path), has_body);
    } else if (page_threads_->queue_length() < kConnectionsMax) {
      PageRequest page[] = {{.connection_id = connection.id,
                             .path = std::string(path),
                             .has_body = has_body}};
      page_threads_->Add(std::begin(page), std::end(page));
    } else {
      respond({.status = "503 Service Unavailable",
               .text = "too many requests wait\n"});
    }
  }
}

Page AdminServerImpl::MakePage(absl::string_view path) const {
  if (path == "/metrics") {
    return {.type = "text/plain; version=0.0.4; charset=utf-8",
            .text = pages_.metrics()};
  }
  if (path == "/healthz") {
    return {.text = "alive\n"};
  }
  if (path == "/readyz") {
    return pages_.is_ready()
               ? Page{.text = "ready\n"}
               : Page{.status = "503 Service Unavailable",
                      .text =
                          "archives are being opened, or the server "
                          "drains\n"};
  }
  return {.status = "404 Not Found",
          .text = "not found; there are /metrics, /healthz and /readyz\n"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Open(
    const std::string& address, const AdminPages& pages) {
  QUIRE_RETURN_IF_ERROR(CheckMetricsAddress(address));
  auto server = std::make_unique<AdminServerImpl>(pages);
  if (const absl::Status status = server->Start(address); !status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat("cannot serve metrics on ", address, ": ",
                     status.message(),
                     "; choose another address with --admin or --metrics"));
  }
  return server;
}

}  // namespace quire
