// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/admin_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/service/listen/listen_address.h"

namespace quire {
namespace {

// Each has a thread and may hold a page. A further connection ends the oldest.
constexpr uint32_t kConnectionsMax = 8;
// Includes ended connections until their threads end, after the page that they
// produce. libmicrohttpd closes further connections at once.
constexpr uint32_t kThreadsMax = 64;
// Time limit for a client that neither sends nor receives.
constexpr uint32_t kIdleSecondsMax = 10;
constexpr size_t kHeaderSizeBytesMax = 8 << 10;

struct Page {
  unsigned status = MHD_HTTP_OK;
  const char* type = "text/plain";
  std::string text;
};

class AdminServerImpl final : public AdminServer {
 public:
  explicit AdminServerImpl(AdminPages pages) : pages_(std::move(pages)) {}

  ~AdminServerImpl() override;

  // Errors: as AdminServer::Open().
  absl::Status Start(const std::string& address);

  const std::string& address() const override { return address_; }

 private:
  // Callbacks of libmicrohttpd; `self` is the AdminServerImpl.
  static MHD_Result Answer(void* self, MHD_Connection* connection,
                           const char* path, const char* method,
                           const char* version, const char* body,
                           size_t* body_size_bytes, void** request_state);
  static void NoteConnection(void* self, MHD_Connection* connection,
                             void** connection_state,
                             MHD_ConnectionNotificationCode change);

  // Returns errno, or 0.
  int Listen(addrinfo& place);
  Page MakePage(absl::string_view path) const;

  const AdminPages pages_;
  std::string address_;
  // Port of all sockets; 0 before the first is bound. In network byte order.
  in_port_t port_ = 0;
  // One for each address of the host.
  std::vector<MHD_Daemon*> daemons_;
  Mutex mutex_;
  // Sockets of the connections that have not been ended, the oldest first.
  std::list<int> connections_ ABSL_GUARDED_BY(mutex_);
};

AdminServerImpl::~AdminServerImpl() {
  // Closed last: libmicrohttpd's threads may still use the descriptors.
  std::vector<UniqueFd> listening;
  for (MHD_Daemon* daemon : daemons_) {
    listening.emplace_back(MHD_quiesce_daemon(daemon));
    shutdown(listening.back().get(), SHUT_RDWR);
  }
  {
    // End connections before waiting for any page.
    MutexLock lock(&mutex_);
    for (const int fd : connections_) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  for (MHD_Daemon* daemon : daemons_) {
    MHD_stop_daemon(daemon);
  }
}

absl::Status AdminServerImpl::Start(const std::string& address) {
  QUIRE_ASSIGN_OR_RETURN(const AddressList places,
                         ResolveListenAddress(address));
  int error = 0;
  for (addrinfo* place = places.get(); place != nullptr;
       place = place->ai_next) {
    const int refusal = Listen(*place);
    error = error == 0 ? refusal : error;
  }
  if (daemons_.empty()) {
    // EAGAIN: no thread.
    const bool is_exhausted = error == EAGAIN || error == EMFILE ||
                              error == ENFILE || error == ENOMEM ||
                              error == ENOBUFS;
    return absl::Status(is_exhausted ? absl::StatusCode::kResourceExhausted
                                     : absl::StatusCode::kFailedPrecondition,
                        DescribeListenError(error));
  }
  address_ = WithPort(address, ntohs(port_));
  return absl::OkStatus();
}

int AdminServerImpl::Listen(addrinfo& place) {
  // The port has the same offset in both kinds of addresses.
  static_assert(offsetof(sockaddr_in, sin_port) ==
                offsetof(sockaddr_in6, sin6_port));
  if (port_ != 0) {
    reinterpret_cast<sockaddr_in*>(place.ai_addr)->sin_port = port_;
  }
  errno = 0;
  // One thread per connection: /readyz waits for the server, and /healthz must
  // not wait for /readyz.
  MHD_Daemon* const daemon = MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
          MHD_USE_POLL | MHD_USE_ITC |
          (place.ai_family == AF_INET6 ? MHD_USE_DUAL_STACK : MHD_NO_FLAG),
      /*port=*/0, nullptr, nullptr, &Answer, this, MHD_OPTION_SOCK_ADDR,
      place.ai_addr, MHD_OPTION_CONNECTION_LIMIT, kThreadsMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeaderSizeBytesMax,
      MHD_OPTION_NOTIFY_CONNECTION, &NoteConnection, this, MHD_OPTION_END);
  if (daemon == nullptr) {
    // libmicrohttpd sets no errno for some failures, such as those of threads.
    return errno != 0 ? errno : EAGAIN;
  }
  daemons_.push_back(daemon);
  port_ = htons(MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
  return 0;
}

void AdminServerImpl::NoteConnection(void* self, MHD_Connection* connection,
                                     void** /*connection_state*/,
                                     MHD_ConnectionNotificationCode change) {
  auto& server = *static_cast<AdminServerImpl*>(self);
  const int fd =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
          ->connect_fd;
  MutexLock lock(&server.mutex_);
  if (change == MHD_CONNECTION_NOTIFY_CLOSED) {
    // Its descriptor is closed later.
    server.connections_.remove(fd);
    return;
  }
  if (server.connections_.size() == kConnectionsMax) {
    shutdown(server.connections_.front(), SHUT_RDWR);
    server.connections_.pop_front();
  }
  server.connections_.push_back(fd);
}

MHD_Result AdminServerImpl::Answer(void* self, MHD_Connection* connection,
                                   const char* path, const char* method,
                                   const char* /*version*/,
                                   const char* /*body*/,
                                   size_t* /*body_size_bytes*/,
                                   void** /*request_state*/) {
  const bool is_read = method == absl::string_view(MHD_HTTP_METHOD_GET) ||
                       method == absl::string_view(MHD_HTTP_METHOD_HEAD);
  Page page = is_read ? static_cast<AdminServerImpl*>(self)->MakePage(path)
                      : Page{.status = MHD_HTTP_METHOD_NOT_ALLOWED,
                             .text = "use GET or HEAD\n"};
  MHD_Response* const response = MHD_create_response_from_buffer(
      page.text.size(), page.text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) {
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type);
  if (!is_read) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result result =
      MHD_queue_response(connection, page.status, response);
  MHD_destroy_response(response);
  return result;
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
               : Page{.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                      .text =
                          "archives are being opened, none can be, or the "
                          "server drains\n"};
  }
  return {.status = MHD_HTTP_NOT_FOUND,
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
