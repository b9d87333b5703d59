// SPDX-License-Identifier: Apache-2.0
#include "client/http/http_daemon.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "client/http/client_connections.h"
#include "client/http/connection_acceptor.h"
#include "client/http/exchange.h"
#include "client/http/listen_socket.h"
#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/http/worker_pool.h"
#include "codecs/base/memory/free_memory.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

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
        log_(log),
        connections_(
            {.connections_max = options_.connections_max,
             .address_connections_max = options_.address_connections_max,
             .size_bytes = options_.header_size_bytes + kAnswerHeaderBytes +
                           kConnectionOverheadBytes,
             .header_timeout = options_.header_timeout},
            budget, metrics) {}

  ~HttpDaemonImpl() override;

  absl::Status Open();
  bool Drain(absl::Duration timeout) override;

  std::string address() const override { return acceptor_.address(); }

  std::string admin_address() const override {
    return acceptor_.admin_address();
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
  // Gives the connection to libmicrohttpd, if it is within the limits.
  void Accept(const AcceptedSocket& socket);

  // Reads the header of a request; sets its answer if that needs no call.
  void Begin(Exchange& exchange, MHD_Connection* connection, const char* method,
             const char* version);
  void BeginAdmin(Exchange& exchange, const ClientConnection& connection);
  void StartWork(const std::shared_ptr<Exchange>& exchange,
                 const ClientConnection& connection);
  void RunInPool(const std::shared_ptr<Exchange>& exchange);
  void Deliver(Exchange& exchange, quire::Answer answer);
  // Counts and logs a client's request whose answer has ended. Requests to
  // --admin are neither counted nor logged.
  void CountCompleted(const Exchange& exchange,
                      const ClientConnection& connection, bool is_cut);

  Exchange::Submit SubmitTo(WorkerPool* pool) {
    return [pool](std::function<void()> job) { pool->Submit(std::move(job)); };
  }

  const DaemonOptions options_;
  Gateway* const gateway_;
  MemoryBudget* const budget_;
  GatewayMetrics* const metrics_;
  AccessLog* const log_;
  ClientConnections connections_;
  ConnectionAcceptor acceptor_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<WorkerPool> heavy_pool_;
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<bool> is_draining_ = false;
  // From the header of a request to the end of its answer.
  std::atomic<int> in_flight_ = 0;
  // Answers that Gateway::Start() makes.
  std::atomic<int> started_count_ = 0;
};

HttpDaemonImpl::~HttpDaemonImpl() {
  acceptor_.Stop();
  while (started_count_ > 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (daemon_ != nullptr) {
    MHD_stop_daemon(daemon_);
  }
  heavy_pool_.reset();
  pool_.reset();
}

absl::Status HttpDaemonImpl::Open() {
  QUIRE_RETURN_IF_ERROR(acceptor_.Open(options_.listen_address,
                                       options_.admin_address,
                                       options_.accepts_remote));
  QUIRE_ASSIGN_OR_RETURN(pool_, WorkerPool::Start(options_.threads));
  QUIRE_ASSIGN_OR_RETURN(heavy_pool_,
                         WorkerPool::Start(options_.heavy_threads));
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
  return acceptor_.Start(
      {.on_accept = [this](const AcceptedSocket& socket) { Accept(socket); },
       .on_sweep =
           [this](bool is_draining) { connections_.Sweep(is_draining); }});
}

bool HttpDaemonImpl::Drain(absl::Duration timeout) {
  is_draining_ = true;
  acceptor_.Drain();
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
  connections_.CutAll();
  return wait_until_idle(kLastCallsTimeout);
}

void HttpDaemonImpl::Accept(const AcceptedSocket& socket) {
  const int on = 1;
  setsockopt(socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connections_.Add(socket.fd, ClientAddress(socket.address),
                       socket.is_admin) &&
      MHD_add_connection(daemon_, socket.fd,
                         reinterpret_cast<const sockaddr*>(&socket.address),
                         socket.address_size) != MHD_YES) {
    // It has closed the descriptor.
    connections_.Forget(socket.fd);
  }
}

void HttpDaemonImpl::NoteConnection(void* self, MHD_Connection* connection,
                                    void** connection_state,
                                    MHD_ConnectionNotificationCode change) {
  auto& daemon = *static_cast<HttpDaemonImpl*>(self);
  const int fd =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
          ->connect_fd;
  if (change == MHD_CONNECTION_NOTIFY_CLOSED) {
    // Its descriptor is closed later.
    daemon.connections_.Forget(fd);
    *connection_state = nullptr;
    return;
  }
  *connection_state = daemon.connections_.Find(fd);
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
  connections_.BeginRequest(of);
  if (of.is_admin) {
    BeginAdmin(exchange, of);
    return;
  }
  metrics_->AddRequestsInFlight(1);
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
  if (!of.is_admin) {
    daemon.CountCompleted(*exchange, of,
                          code != MHD_REQUEST_TERMINATED_COMPLETED_OK);
  }
  daemon.connections_.EndRequest(of);
  FreeMemory(of.target);
  --daemon.in_flight_;
}

void HttpDaemonImpl::CountCompleted(const Exchange& exchange,
                                    const ClientConnection& connection,
                                    bool is_cut) {
  const absl::Duration duration =
      absl::FromChrono(Clock::now() - exchange.start);
  metrics_->CountRequest(exchange.status(), exchange.sent_size_bytes(), is_cut,
                         duration);
  metrics_->AddRequestsInFlight(-1);
  if (log_ != nullptr) {
    log_->Append(
        {.time = absl::Now(),
         .address = {connection.address.data(), connection.address.size()},
         .method = {exchange.method.data(), exchange.method.size()},
         .target = {connection.target.data(), connection.target.size()},
         .status = exchange.status(),
         .size_bytes = exchange.sent_size_bytes(),
         .is_cut = is_cut,
         .error = exchange.fault().message(),
         .duration = duration});
  }
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
