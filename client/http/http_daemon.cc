// SPDX-License-Identifier: Apache-2.0
#include "client/http/http_daemon.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "client/http/exchange.h"
#include "client/http/listen_socket.h"
#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/http/worker_pool.h"
#include "codecs/base/memory/free_memory.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks for connections whose header is late.
constexpr std::chrono::milliseconds kSweepInterval(100);
// After the system had no descriptor for a connection.
constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr uint32_t kAdminConnectionsMax = 16;
// Memory for the headers of answers, in libmicrohttpd next to the request: it
// closes the connection without an answer if they do not fit.
constexpr size_t kAnswerHeaderBytes = size_t{2} << 10;
// Its record of a header in that memory.
constexpr size_t kHeaderRecordBytes = 64;
// libmicrohttpd acts on the first of equal headers. These come before those of
// the client. With them the library neither copies cookies and keeps a record
// of each, nor refuses a Content-Length: both would end the connection without
// an answer, or with a malformed one.
constexpr const char* kFirstHeaders[][2] = {
    {MHD_HTTP_HEADER_COOKIE, "-"}, {MHD_HTTP_HEADER_CONTENT_LENGTH, "0"}};
// Memory of a connection and of libmicrohttpd's own state.
constexpr size_t kConnectionOverheadBytes = size_t{4} << 10;
// For calls of requests whose connections were cut.
constexpr absl::Duration kLastCallsTimeout = absl::Seconds(1);

// A connection, from accept() to the end of libmicrohttpd's use.
struct ClientConnection {
  int fd = -1;
  std::string address;
  bool is_admin = false;
  MemoryCharge charge;
  // Target as received, and its position; used by the HTTP thread alone.
  std::string target;
  const char* raw_target = nullptr;
  // Under the daemon's mutex.
  bool has_request = false;
  Clock::time_point header_deadline;
};

// Size of the request line and the headers.
size_t HeadSizeBytes(MHD_Connection* connection) {
  const auto* const info = MHD_get_connection_info(
      connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info == nullptr ? 0 : info->header_size;
}

// Memory that libmicrohttpd has taken for the head of a request: its bytes, and
// a record of each header.
size_t HeadMemoryBytes(MHD_Connection* connection, const RequestHead& head) {
  return HeadSizeBytes(connection) + head.headers.size() * kHeaderRecordBytes;
}

// True for the headers that NoteTarget() adds.
bool IsFirstHeader(const char* name) {
  return std::any_of(std::begin(kFirstHeaders), std::end(kFirstHeaders),
                     [&](const auto& header) { return name == header[0]; });
}

// True if the library passed on all that the client sent as the request.
bool IsWhole(MHD_Connection* connection, const ClientConnection& of,
             const RequestHead& head) {
  const size_t size_bytes = HeadSizeBytes(connection);
  if (size_bytes == 0 || of.raw_target == nullptr) {
    return false;
  }
  std::vector<absl::string_view> parts = {
      head.method, {of.raw_target, of.target.size()}, head.version};
  for (const auto& [name, value] : head.headers) {
    parts.push_back(name);
    parts.push_back(value);
  }
  // The method is the start of the request.
  return CoversHead({head.method.data(), size_bytes}, std::move(parts));
}

class HttpDaemonImpl final : public HttpDaemon {
 public:
  HttpDaemonImpl(DaemonOptions options, Gateway* gateway, MemoryBudget* budget,
                 GatewayMetrics* metrics, AccessLog* log)
      : options_(std::move(options)),
        gateway_(gateway),
        budget_(budget),
        metrics_(metrics),
        log_(log) {}

  ~HttpDaemonImpl() override;

  absl::Status Open();
  bool Drain(absl::Duration timeout) override;

  std::string address() const override { return listening_[0].address(); }

  std::string admin_address() const override {
    return listening_.size() > 1 ? listening_[1].address() : "";
  }

 private:
  // Callbacks of libmicrohttpd; `self` is the HttpDaemonImpl.
  static void* NoteTarget(void* self, const char* target,
                          MHD_Connection* connection);
  static size_t KeepEscapes(void* self, MHD_Connection* connection, char* text);
  static MHD_Result Answer(void* self, MHD_Connection* connection,
                           const char* path, const char* method,
                           const char* version, const char* body,
                           size_t* body_size_bytes, void** request_state);
  static void NoteCompleted(void* self, MHD_Connection* connection,
                            void** request_state,
                            MHD_RequestTerminationCode code);
  static void NoteConnection(void* self, MHD_Connection* connection,
                             void** connection_state,
                             MHD_ConnectionNotificationCode change);

  static ClientConnection& ConnectionOf(MHD_Connection* connection) {
    return *static_cast<ClientConnection*>(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
            ->socket_context);
  }

  absl::Status StartHttp();
  void RunAccept();
  void AcceptAll(int fd, bool is_admin);
  void Accept(int fd, const sockaddr_storage& address, socklen_t address_size,
              bool is_admin);
  std::optional<Refusal> Admit(ClientConnection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes connections whose header is late, or all without a request.
  void Sweep(bool closes_idle) ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the header of a request; sets its answer if that needs no call.
  void Begin(Exchange& exchange, MHD_Connection* connection, const char* method,
             const char* version);
  void BeginAdmin(Exchange& exchange, const ClientConnection& connection);
  void StartWork(const std::shared_ptr<Exchange>& exchange,
                 const ClientConnection& connection);
  void RunInPool(const std::shared_ptr<Exchange>& exchange);
  void Deliver(Exchange& exchange, quire::Answer answer);

  Exchange::Submit SubmitTo(WorkerPool* pool) {
    return [pool](std::function<void()> job) { pool->Submit(std::move(job)); };
  }

  const DaemonOptions options_;
  Gateway* const gateway_;
  MemoryBudget* const budget_;
  GatewayMetrics* const metrics_;
  AccessLog* const log_;
  std::vector<ListenSockets> listening_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<WorkerPool> heavy_pool_;
  MHD_Daemon* daemon_ = nullptr;
  int wake_fd_ = -1;
  std::thread accept_thread_;
  std::atomic<bool> is_draining_ = false;
  std::atomic<bool> stops_ = false;
  // From the header of a request to the end of its answer.
  std::atomic<int> in_flight_ = 0;
  // Answers that Gateway::Start() makes.
  std::atomic<int> started_count_ = 0;
  Mutex mutex_;
  std::map<int, std::unique_ptr<ClientConnection>> connections_
      ABSL_GUARDED_BY(mutex_);
  // Connections that are not of the admin port, in total and by address.
  uint32_t connection_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t admin_connection_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint32_t> address_counts_ ABSL_GUARDED_BY(mutex_);
};

HttpDaemonImpl::~HttpDaemonImpl() {
  stops_ = true;
  if (wake_fd_ >= 0) {
    eventfd_write(wake_fd_, 1);
  }
  if (accept_thread_.joinable()) {
    accept_thread_.join();
  }
  while (started_count_ > 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (daemon_ != nullptr) {
    MHD_stop_daemon(daemon_);
  }
  heavy_pool_.reset();
  pool_.reset();
  if (wake_fd_ >= 0) {
    close(wake_fd_);
  }
}

absl::Status HttpDaemonImpl::Open() {
  QUIRE_ASSIGN_OR_RETURN(ListenSockets sockets,
                         ListenSockets::Open(options_.listen_address));
  if (!sockets.is_local() && !options_.accepts_remote) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.listen_address,
        " can be reached from other machines, and HTTP does not encrypt; "
        "listen on 127.0.0.1 or a unix socket, or use --behind-tls if only a "
        "proxy with TLS can connect"));
  }
  listening_.push_back(std::move(sockets));
  if (!options_.admin_address.empty()) {
    QUIRE_ASSIGN_OR_RETURN(ListenSockets admin,
                           ListenSockets::Open(options_.admin_address));
    listening_.push_back(std::move(admin));
  }
  QUIRE_ASSIGN_OR_RETURN(pool_, WorkerPool::Start(options_.threads));
  QUIRE_ASSIGN_OR_RETURN(heavy_pool_,
                         WorkerPool::Start(options_.heavy_threads));
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    return absl::ResourceExhaustedError("the system gives no descriptor");
  }
  return StartHttp();
}

absl::Status HttpDaemonImpl::StartHttp() {
  const auto idle_seconds =
      static_cast<unsigned>(absl::ToInt64Seconds(options_.idle_timeout));
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO | MHD_USE_ITC |
          MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME,
      /*port=*/0, nullptr, nullptr, &Answer, this, MHD_OPTION_URI_LOG_CALLBACK,
      &NoteTarget, this, MHD_OPTION_UNESCAPE_CALLBACK, &KeepEscapes, this,
      MHD_OPTION_NOTIFY_COMPLETED, &NoteCompleted, this,
      MHD_OPTION_NOTIFY_CONNECTION, &NoteConnection, this,
      MHD_OPTION_CONNECTION_LIMIT,
      options_.connections_max + kAdminConnectionsMax + 1,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      options_.header_size_bytes + kAnswerHeaderBytes,
      // The library's own refusals are malformed, or close the connection
      // without an answer: CheckHead() does it.
      MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the HTTP thread: ",
                     std::generic_category().message(errno)));
  }
  try {
    accept_thread_ = std::thread(&HttpDaemonImpl::RunAccept, this);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no thread: ", error.what()));
  }
  return absl::OkStatus();
}

bool HttpDaemonImpl::Drain(absl::Duration timeout) {
  is_draining_ = true;
  eventfd_write(wake_fd_, 1);
  const auto wait_until_idle = [&](absl::Duration patience) {
    const absl::Time end = MonotonicNow() + patience;
    while (in_flight_ > 0 && MonotonicNow() < end) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    return in_flight_ == 0;
  };
  if (wait_until_idle(timeout)) {
    return true;
  }
  {
    MutexLock lock(&mutex_);
    for (const auto& [fd, connection] : connections_) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  return wait_until_idle(kLastCallsTimeout);
}

void HttpDaemonImpl::RunAccept() {
  Clock::time_point next_sweep = Clock::now() + kSweepInterval;
  while (!stops_) {
    // Before connections are closed: clients that connect again go elsewhere.
    const bool closes_idle = is_draining_;
    if (closes_idle) {
      // Probes are answered until the end.
      listening_[0].Close();
    }
    std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0}};
    std::vector<bool> is_admin = {false};
    for (size_t i = 0; i < listening_.size(); ++i) {
      for (const int fd : listening_[i].fds()) {
        polled.push_back({fd, POLLIN, 0});
        is_admin.push_back(i == 1);
      }
    }
    poll(polled.data(), polled.size(),
         static_cast<int>(kSweepInterval.count()));
    eventfd_t count = 0;
    eventfd_read(wake_fd_, &count);
    for (size_t i = 1; i < polled.size(); ++i) {
      if ((polled[i].revents & POLLIN) != 0) {
        AcceptAll(polled[i].fd, is_admin[i]);
      }
    }
    if (Clock::now() >= next_sweep || closes_idle) {
      Sweep(closes_idle);
      next_sweep = Clock::now() + kSweepInterval;
    }
  }
}

void HttpDaemonImpl::AcceptAll(int fd, bool is_admin) {
  constexpr int kAcceptedMax = 64;
  for (int i = 0; i < kAcceptedMax; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int accepted = accept4(fd, reinterpret_cast<sockaddr*>(&address),
                                 &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted >= 0) {
      Accept(accepted, address, size, is_admin);
      continue;
    }
    // Without a descriptor the listening socket stays readable: wait, so as not
    // to spin.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
        errno == ENOMEM) {
      std::this_thread::sleep_for(kAcceptPause);
    }
    return;
  }
}

std::optional<Refusal> HttpDaemonImpl::Admit(ClientConnection& connection) {
  if (connection.is_admin) {
    return admin_connection_count_ < kAdminConnectionsMax
               ? std::nullopt
               : std::optional<Refusal>(Refusal::kConnections);
  }
  if (connection_count_ >= options_.connections_max) {
    return Refusal::kConnections;
  }
  const auto found = address_counts_.find(connection.address);
  if (found != address_counts_.end() &&
      found->second >= options_.address_connections_max) {
    return Refusal::kAddressConnections;
  }
  if (!connection.charge.TryResize(options_.header_size_bytes +
                                   kAnswerHeaderBytes +
                                   kConnectionOverheadBytes)) {
    return Refusal::kMemory;
  }
  return std::nullopt;
}

void HttpDaemonImpl::Accept(int fd, const sockaddr_storage& address,
                            socklen_t address_size, bool is_admin) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto connection = std::make_unique<ClientConnection>();
  connection->fd = fd;
  connection->address = ClientAddress(address);
  connection->is_admin = is_admin;
  connection->charge = MemoryCharge(budget_);
  connection->header_deadline =
      Clock::now() + absl::ToChronoNanoseconds(options_.header_timeout);
  {
    MutexLock lock(&mutex_);
    if (const std::optional<Refusal> refusal = Admit(*connection)) {
      metrics_->CountRefusal(*refusal);
      const std::string text = absl::StrCat(
          "HTTP/1.1 ",
          *refusal == Refusal::kAddressConnections ? "429 Too Many Requests"
                                                   : "503 Service Unavailable",
          "\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: "
          "close\r\n\r\n");
      static_cast<void>(
          send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      close(fd);
      return;
    }
    if (is_admin) {
      ++admin_connection_count_;
    } else {
      ++connection_count_;
      ++address_counts_[connection->address];
    }
    metrics_->AddConnections(1);
    connections_[fd] = std::move(connection);
  }
  if (MHD_add_connection(daemon_, fd,
                         reinterpret_cast<const sockaddr*>(&address),
                         address_size) != MHD_YES) {
    // It has closed the descriptor.
    MutexLock lock(&mutex_);
    Forget(fd);
  }
}

void HttpDaemonImpl::Forget(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return;
  }
  const ClientConnection& connection = *found->second;
  if (connection.is_admin) {
    --admin_connection_count_;
  } else {
    --connection_count_;
    const auto count = address_counts_.find(connection.address);
    if (--count->second == 0) {
      address_counts_.erase(count);
    }
  }
  metrics_->AddConnections(-1);
  connections_.erase(found);
}

void HttpDaemonImpl::Sweep(bool closes_idle) {
  const Clock::time_point now = Clock::now();
  MutexLock lock(&mutex_);
  for (auto& [fd, connection] : connections_) {
    if (connection->has_request) {
      continue;
    }
    if (closes_idle && !connection->is_admin) {
      shutdown(fd, SHUT_RDWR);
    } else if (now >= connection->header_deadline) {
      metrics_->CountRefusal(Refusal::kHeaderTimeout);
      shutdown(fd, SHUT_RDWR);
      // Once.
      connection->header_deadline = Clock::time_point::max();
    }
  }
}

void HttpDaemonImpl::NoteConnection(void* self, MHD_Connection* connection,
                                    void** connection_state,
                                    MHD_ConnectionNotificationCode change) {
  auto& daemon = *static_cast<HttpDaemonImpl*>(self);
  const int fd =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
          ->connect_fd;
  MutexLock lock(&daemon.mutex_);
  if (change == MHD_CONNECTION_NOTIFY_CLOSED) {
    // Its descriptor is closed later.
    daemon.Forget(fd);
    *connection_state = nullptr;
    return;
  }
  *connection_state = daemon.connections_.at(fd).get();
}

void* HttpDaemonImpl::NoteTarget(void* /*self*/, const char* target,
                                 MHD_Connection* connection) {
  // Later the library cuts it into pieces.
  ClientConnection& of = ConnectionOf(connection);
  of.target = target == nullptr ? "" : target;
  of.raw_target = target;
  // The library would keep a record of each parameter, for which there may be
  // no memory. The target is in its buffer, which the copy replaces.
  if (const size_t query = of.target.find('?');
      target != nullptr && query != std::string::npos) {
    const_cast<char*>(target)[query + 1] = '\0';
  }
  for (const auto& [name, value] : kFirstHeaders) {
    MHD_set_connection_value(connection, MHD_HEADER_KIND, name, value);
  }
  return nullptr;
}

size_t HttpDaemonImpl::KeepEscapes(void* /*self*/,
                                   MHD_Connection* /*connection*/, char* text) {
  return std::strlen(text);
}

MHD_Result HttpDaemonImpl::Answer(void* self, MHD_Connection* connection,
                                  const char* /*path*/, const char* method,
                                  const char* version, const char* /*body*/,
                                  size_t* /*body_size_bytes*/,
                                  void** request_state) {
  auto& daemon = *static_cast<HttpDaemonImpl*>(self);
  const ClientConnection& of = ConnectionOf(connection);
  if (*request_state == nullptr) {
    auto* const started = new std::shared_ptr<Exchange>(
        std::make_shared<Exchange>(connection, daemon.budget_));
    *request_state = started;
    daemon.Begin(**started, connection, method, version);
    // An answer in this call refuses the request's body, and closes the
    // connection. Others are for the next call, after the request.
    if (!(*started)->is_answered() || !(*started)->closes()) {
      return MHD_YES;
    }
  }
  const std::shared_ptr<Exchange>& exchange =
      *static_cast<std::shared_ptr<Exchange>*>(*request_state);
  if (!exchange->is_answered()) {
    daemon.StartWork(exchange, of);
    return MHD_YES;
  }
  return exchange->Queue(daemon.SubmitTo(daemon.pool_.get()),
                         exchange->method == MHD_HTTP_METHOD_HEAD);
}

void HttpDaemonImpl::Begin(Exchange& exchange, MHD_Connection* connection,
                           const char* method, const char* version) {
  ClientConnection& of = ConnectionOf(connection);
  exchange.method = method;
  ++in_flight_;
  metrics_->AddRequestsInFlight(1);
  {
    MutexLock lock(&mutex_);
    of.has_request = true;
  }
  if (of.is_admin) {
    BeginAdmin(exchange, of);
    return;
  }
  RequestHead head{.method = method,
                   .target = {of.target.data(), of.target.size()},
                   .version = version};
  MHD_get_connection_values_n(
      connection, MHD_HEADER_KIND,
      [](void* cls, MHD_ValueKind, const char* name, size_t name_size,
         const char* value, size_t value_size) {
        if (!IsFirstHeader(name)) {
          static_cast<RequestHead*>(cls)->headers.emplace_back(
              absl::string_view(name, name_size),
              absl::string_view(value, value_size));
        }
        return MHD_YES;
      },
      &head);
  size_t head_size = of.target.size();
  for (const auto& [name, value] : head.headers) {
    head_size += value.size();
    if (absl::EqualsIgnoreCase(name, MHD_HTTP_HEADER_ORIGIN)) {
      exchange.origin = std::string(value);
    }
  }
  std::variant<HttpRequest, quire::Answer> parsed =
      ParseRequest(head, options_.rules);
  if (HeadMemoryBytes(connection, head) > options_.header_size_bytes) {
    quire::Answer refusal = TextAnswer(
        431, absl::StrCat("the request line and the headers must have at most ",
                          options_.header_size_bytes, " bytes, of which each ",
                          "header takes ", kHeaderRecordBytes,
                          " more; see quire-http --header-size"));
    // There may be little memory for others.
    refusal.headers.resize(1);
    refusal.closes = true;
    parsed = std::move(refusal);
  } else if (!IsWhole(connection, of, head)) {
    quire::Answer refusal = TextAnswer(
        400, "a request must have no NUL and no continued header lines");
    refusal.closes = true;
    parsed = std::move(refusal);
  } else if (is_draining_ && std::holds_alternative<HttpRequest>(parsed)) {
    parsed = AnswerOfStatus(
        absl::ResourceExhaustedError("the gateway is shutting down"));
  }
  if (auto* request = std::get_if<HttpRequest>(&parsed)) {
    exchange.request = std::move(*request);
    if (exchange.Charge(head_size)) {
      return;
    }
    parsed = AnswerOfStatus(MemoryExhausted());
  }
  quire::Answer answer = std::get<quire::Answer>(std::move(parsed));
  AddOriginHeaders({exchange.origin.data(), exchange.origin.size()},
                   options_.rules, answer);
  answer.closes = answer.closes || is_draining_;
  exchange.SetAnswer(std::move(answer));
}

void HttpDaemonImpl::BeginAdmin(Exchange& exchange,
                                const ClientConnection& connection) {
  if (exchange.method != MHD_HTTP_METHOD_GET &&
      exchange.method != MHD_HTTP_METHOD_HEAD) {
    quire::Answer answer = TextAnswer(405, "use GET or HEAD");
    answer.closes = true;
    exchange.SetAnswer(std::move(answer));
  } else if (connection.target == "/metrics") {
    const std::string text = metrics_->Render(
        *budget_, gateway_->spool_budget(),
        pool_->queue_size() + heavy_pool_->queue_size(), is_draining_);
    quire::Answer answer = TextAnswer(200, "");
    answer.headers[0].second = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = text;
    exchange.SetAnswer(std::move(answer));
  } else if (connection.target == "/healthz") {
    exchange.SetAnswer(TextAnswer(200, "alive"));
  } else if (connection.target != "/readyz") {
    exchange.SetAnswer(
        TextAnswer(404, "not found; there are /metrics, /healthz and /readyz"));
  } else if (is_draining_) {
    exchange.SetAnswer(TextAnswer(503, "the gateway is shutting down"));
  }
}

void HttpDaemonImpl::StartWork(const std::shared_ptr<Exchange>& exchange,
                               const ClientConnection& connection) {
  // Before another thread can resume it.
  exchange->Suspend();
  if (connection.is_admin) {
    pool_->Submit([this, exchange] {
      exchange->Deliver(gateway_->CheckServer().ok()
                            ? TextAnswer(200, "ready")
                            : TextAnswer(503, "the server does not answer"));
    });
    return;
  }
  // As many as threads of the pool, which have memory for their answers.
  auto done = [this,
               held = exchange](std::optional<quire::Answer> answer) mutable {
    if (answer.has_value()) {
      Deliver(*held, *std::move(answer));
    } else {
      RunInPool(held);
    }
    held.reset();
    --started_count_;
  };
  if (started_count_.fetch_add(1) < options_.threads &&
      gateway_->Start(exchange->request, exchange->charge(), std::move(done))) {
    return;
  }
  --started_count_;
  RunInPool(exchange);
}

void HttpDaemonImpl::RunInPool(const std::shared_ptr<Exchange>& exchange) {
  WorkerPool* const pool =
      Gateway::IsHeavy(exchange->request) ? heavy_pool_.get() : pool_.get();
  pool->Submit([this, exchange] {
    Deliver(*exchange, gateway_->Run(exchange->request, exchange->charge()));
  });
}

void HttpDaemonImpl::Deliver(Exchange& exchange, quire::Answer answer) {
  AddOriginHeaders({exchange.origin.data(), exchange.origin.size()},
                   options_.rules, answer);
  answer.closes = answer.closes || is_draining_;
  exchange.Deliver(std::move(answer));
}

void HttpDaemonImpl::NoteCompleted(void* self, MHD_Connection* connection,
                                   void** request_state,
                                   MHD_RequestTerminationCode code) {
  auto& daemon = *static_cast<HttpDaemonImpl*>(self);
  auto* const holder = static_cast<std::shared_ptr<Exchange>*>(*request_state);
  if (holder == nullptr) {
    return;
  }
  const std::shared_ptr<Exchange> exchange = std::move(*holder);
  delete holder;
  *request_state = nullptr;
  exchange->Finish();
  ClientConnection& of = ConnectionOf(connection);
  const bool is_cut = code != MHD_REQUEST_TERMINATED_COMPLETED_OK;
  const absl::Duration duration =
      absl::FromChrono(Clock::now() - exchange->start);
  daemon.metrics_->CountRequest(exchange->status(), exchange->sent_size_bytes(),
                                is_cut, duration);
  if (daemon.log_ != nullptr && !of.is_admin) {
    daemon.log_->Append(
        {.time = absl::Now(),
         .address = {of.address.data(), of.address.size()},
         .method = {exchange->method.data(), exchange->method.size()},
         .target = {of.target.data(), of.target.size()},
         .status = exchange->status(),
         .size_bytes = exchange->sent_size_bytes(),
         .is_cut = is_cut,
         .error = exchange->fault().message(),
         .duration = duration});
  }
  daemon.metrics_->AddRequestsInFlight(-1);
  {
    MutexLock lock(&daemon.mutex_);
    of.has_request = false;
    of.header_deadline = Clock::now() + absl::ToChronoNanoseconds(
                                            daemon.options_.header_timeout);
  }
  FreeMemory(of.target);
  --daemon.in_flight_;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(
    DaemonOptions options, Gateway* gateway, MemoryBudget* budget,
    GatewayMetrics* metrics, AccessLog* log) {
  auto daemon = std::make_unique<HttpDaemonImpl>(std::move(options), gateway,
                                                 budget, metrics, log);
  QUIRE_RETURN_IF_ERROR(daemon->Open());
  return daemon;
}

}  // namespace quire
