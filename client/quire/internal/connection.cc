// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/connection.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/random/distributions.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/support/channel_arguments.h"

#include "client/quire/client_status.h"
#include "client/quire/internal/secure_channel.h"
#include "client/quire/internal/server_address.h"
#include "client/quire/internal/started_thread.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/trace_parent.h"

namespace quire {
namespace {

constexpr int kBackoffGrowthMax = 20;
// Upper bound on the wait for a delay that a server requests.
constexpr absl::Duration kToldDelayMax = absl::Seconds(30);
// Largest random part of such a wait, as a share of the delay.
constexpr double kToldJitterMax = 0.2;
// Upper bound on the default number of threads.
constexpr unsigned kDecodeThreadsMax = 16;
// Longer limits are not watched: the clock overflows at about three times this.
constexpr absl::Duration kIdleWatchedMax = absl::Hours(24 * 365 * 100);

absl::Status CheckOptions(const ClientOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckServerAddress(options.address));
  if (options.deadline <= absl::ZeroDuration() ||
      options.stream_idle_max <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("time limits must be positive");
  }
  if (options.authorization != nullptr &&
      (!options.security.token_file.empty() ||
       !CanCarryToken(options.address, options.security))) {
    return absl::InvalidArgumentError(
        "forwarded tokens need TLS, a unix socket or a server on this machine, "
        "and no token file");
  }
  if (options.attempts_max < 1 || options.attempts_max > 100) {
    return absl::InvalidArgumentError("attempts_max must be 1 to 100");
  }
  if (options.retry_backoff < absl::Milliseconds(1) ||
      options.retry_backoff > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        "retry_backoff must be a millisecond to an hour");
  }
  if (options.message_size_bytes_max < 4096 ||
      options.message_size_bytes_max > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        "message_size_bytes_max must be 4096 to 2147483647");
  }
  if (options.decode_threads < 0 || options.decode_threads > 64) {
    return absl::InvalidArgumentError("decode_threads must be 0 to 64");
  }
  if (options.keepalive_interval < absl::Seconds(10) ||
      options.keepalive_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "keepalive_interval must be at least 10 s, keepalive_timeout positive");
  }
  return absl::OkStatus();
}

// Spreads calls over all addresses of the name.
constexpr char kServiceConfig[] =
    R"({"loadBalancingConfig":[{"round_robin":{}}]})";

int ToMilliseconds(absl::Duration duration) {
  return static_cast<int>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(duration), 1, std::numeric_limits<int>::max()));
}

constexpr int kConnectTimeoutMs = 10'000;
// Spreading calls keeps a connection to each address even without calls. This
// is shorter than servers allow for idle connections.
constexpr int kIdleMs = 5 * 60 * 1000;
// Long enough that its cost does not matter, short enough that other traffic on
// the same link waits for at most 20 ms at 100 Mbit/s.
constexpr int kFrameSizeBytesMax = 256 << 10;

grpc::ChannelArguments Arguments(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  // RetryGovernor decides about retries. gRPC 1.51 uses a freed connection when
  // one of its own attempts fails after the connection.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetUserAgentPrefix("quire-cpp/0.1.0");
  arguments.SetMaxReceiveMessageSize(
      static_cast<int>(options.message_size_bytes_max));
  // Payloads are compressed in storage or not worth it: gRPC's own compression
  // is neither used nor offered.
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                   1 << GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   ToMilliseconds(options.keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   ToMilliseconds(options.keepalive_timeout));
  // gRPC waits a second between attempts to connect; our retries are quicker.
  const int reconnect_ms = std::max(100, ToMilliseconds(options.retry_backoff));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, reconnect_ms);
  // Misnamed: the time limit of a connection attempt. With less than a few
  // round trips a far or busy server is never reached.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   std::max(reconnect_ms, 5000));
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, kIdleMs);
  // HTTP/2 cuts messages into 16 KiB by default, each with its own work.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameSizeBytesMax);
  // A proxy from the environment is for the web, not for this server.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each client has its own connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// Asks for a table of an answer. A further attempt may have brought the answer
// from another server than the one of first attempts, which does not have the
// table if it cannot open the archive.
absl::Status AskTwoServers(
    absl::string_view archive,
    absl::FunctionRef<absl::Status(const CallRoute& route)> ask) {
  const absl::Status status = ask({.archive = archive});
  return absl::IsNotFound(status) && !archive.empty()
             ? ask({.archive = archive, .attempt = 1})
             : status;
}

// Returns the factor of the delay after the last of `failure_count` failures.
int BackoffGrowth(int failure_count) {
  int growth = 1;
  for (int i = 1; i < failure_count && growth < kBackoffGrowthMax; ++i) {
    growth *= 2;
  }
  return std::min(growth, kBackoffGrowthMax);
}

// True if another server may answer what this one did not. While one opens an
// archive, another one would open it, too.
bool IsForOtherServers(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         ErrorReasonOf(status) != v1::ErrorReason_Name(v1::ARCHIVE_OPENING);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(
    ClientOptions options) {
  QUIRE_RETURN_IF_ERROR(CheckOptions(options));
  if (options.decode_threads == 0) {
    options.decode_threads = static_cast<int>(
        std::clamp(std::thread::hardware_concurrency(), 1U, kDecodeThreadsMax));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::Channel> channel,
      MakeSecureChannel(options.address, options.security, Arguments(options)));
  return std::shared_ptr<Connection>(
      new Connection(std::move(options), channel));
}

Connection::Connection(ClientOptions options,
                       const std::shared_ptr<grpc::Channel>& channel)
    : options_(std::move(options)),
      stub_(v1::Archive::NewStub(channel)),
      wire_({.directory = options_.cache_directory,
             .dictionary_size_bytes_max = options_.dictionary_size_bytes_max},
            this) {}

void Connection::Prepare(absl::string_view archive,
                         grpc::ClientContext& context) const {
  if (options_.deadline != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + options_.deadline));
  }
  AddCallHeaders(options_, {.archive = archive}, context);
}

bool Connection::Wait(absl::Duration delay, bool is_told) const {
  if (is_told && options_.told_wait != nullptr) {
    return options_.told_wait(delay);
  }
  absl::SleepFor(delay);
  return true;
}

absl::StatusOr<CallQueue*> Connection::GetCallQueue() {
  MutexLock lock(&mutex_);
  if (call_queue_ == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(call_queue_, CallQueue::Start());
  }
  return call_queue_.get();
}

absl::Status Connection::Call(
    const CallRoute& route,
    absl::FunctionRef<grpc::Status(grpc::ClientContext&)> call) {
  const absl::Time end = MonotonicNow() + options_.deadline;
  RetryGovernor governor(*this, end);
  for (;;) {
    grpc::ClientContext context;
    if (options_.deadline != absl::InfiniteDuration()) {
      context.set_deadline(
          absl::ToChronoTime(absl::Now() + (end - MonotonicNow())));
    }
    AddCallHeaders(options_,
                   {.archive = route.archive,
                    .attempt = route.attempt + governor.attempt()},
                   context);
    const absl::Status status = StatusFromGrpc(call(context));
    if (status.ok()) {
      NoteAnswer();
      return status;
    }
    const absl::Status error = governor.AwaitRetry(status);
    if (!error.ok()) {
      return NameServer(error);
    }
  }
}

// gRPC's own message is only "Deadline Exceeded".
absl::Status Connection::NameServer(const absl::Status& status) const {
  if (!absl::IsDeadlineExceeded(status)) {
    return status;
  }
  absl::Status named = absl::DeadlineExceededError(absl::StrCat(
      "no answer from ", options_.address, " within ",
      absl::FormatDuration(options_.deadline), " (", status.message(),
      "); allow more time, or see whether the server is busy"));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    named.SetPayload(url, payload);
  });
  return named;
}

absl::StatusOr<v1::Limits> Connection::GetLimits(absl::string_view archive) {
  {
    MutexLock lock(&mutex_);
    if (limits_.has_value()) {
      return *limits_;
    }
  }
  v1::ListArchivesRequest request;
  request.set_page_size(1);
  v1::ListArchivesResponse response;
  QUIRE_RETURN_IF_ERROR(Call(archive, [&](grpc::ClientContext& context) {
    return stub_->ListArchives(&context, request, &response);
  }));
  QUIRE_RETURN_IF_ERROR(StoreLimits(response.limits()));
  return response.limits();
}

absl::Status Connection::StoreLimits(const v1::Limits& limits) {
  if (limits.read_size_bytes_max() == 0 || limits.chunk_size_bytes_max() == 0 ||
      limits.batch_message_items_max() == 0 || limits.page_size_max() == 0) {
    return absl::InternalError("the server states a limit of zero");
  }
  MutexLock lock(&mutex_);
  limits_ = limits;
  return absl::OkStatus();
}

absl::StatusOr<v1::ArchiveDescription> Connection::GetArchive(
    absl::string_view archive) {
  v1::GetArchiveRequest request;
  request.set_archive(std::string(archive));
  v1::GetArchiveResponse response;
  QUIRE_RETURN_IF_ERROR(Call(archive, [&](grpc::ClientContext& context) {
    return stub_->GetArchive(&context, request, &response);
  }));
  QUIRE_RETURN_IF_ERROR(StoreLimits(response.limits()));
  return std::move(*response.mutable_archive());
}

WireCall Connection::StartCall(absl::string_view archive,
                               std::optional<EncodingChoice> choice) {
  return WireCall(&wire_, archive,
                  EncodingOf(choice.value_or(options_.encoding)),
                  options_.message_size_bytes_max);
}

WireCall Connection::StartScan(const v1::ArchiveDescription& archive,
                               std::optional<EncodingChoice> choice,
                               uint64_t size_bytes) {
  return StartCall(
      archive.name(),
      choice.value_or(options_.encoding) == EncodingChoice::kAuto &&
              wire_.IsSmallerStored(archive, size_bytes)
          ? EncodingChoice::kStored
          : choice);
}

absl::StatusOr<std::string> Connection::FetchSymbolTable(
    absl::string_view archive, uint64_t hash, size_t size_bytes_max) {
  v1::GetSymbolTableRequest request;
  request.set_hash(FormatTableHash(hash));
  v1::GetSymbolTableResponse response;
  QUIRE_RETURN_IF_ERROR(AskTwoServers(archive, [&](const CallRoute& route) {
    return Call(route, [&](grpc::ClientContext& context) {
      return stub_->GetSymbolTable(&context, request, &response);
    });
  }));
  if (response.table().size() > size_bytes_max) {
    return absl::DataLossError(
        absl::StrCat("the server sent a symbol table of ",
                     response.table().size(), " bytes"));
  }
  return std::move(*response.mutable_table());
}

absl::StatusOr<std::string> Connection::FetchDictionary(
    absl::string_view archive, uint64_t hash, size_t size_bytes_max) {
  std::string text;
  const auto take = [&](uint64_t /*offset*/, ByteView data) -> absl::Status {
    if (data.size() > size_bytes_max - text.size()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the dictionary ", FormatTableHash(hash), " is over ", size_bytes_max,
          " bytes, the most that this client holds"));
    }
    text.append(AsText(data).data(), data.size());
    return absl::OkStatus();
  };
  QUIRE_RETURN_IF_ERROR(AskTwoServers(archive, [&](const CallRoute& route) {
    text.clear();
    return ReceiveDictionary(*this, route, FormatTableHash(hash), take);
  }));
  return text;
}

void AddArchiveHeader(absl::string_view archive, grpc::ClientContext& context) {
  if (IsArchiveName(archive)) {
    context.AddMetadata(kArchiveMetadataKey, std::string(archive));
  }
}

void AddCallHeaders(const ClientOptions& options, const CallRoute& route,
                    grpc::ClientContext& context) {
  AddArchiveHeader(route.archive, context);
  if (route.attempt > 0) {
    context.AddMetadata(kAttemptMetadataKey, absl::StrCat(route.attempt));
  }
  if (options.trace_parent != nullptr) {
    const std::string header = options.trace_parent();
    if (IsTraceParent(header)) {
      context.AddMetadata("traceparent", header);
    }
  }
  if (options.authorization != nullptr) {
    const std::string header = options.authorization();
    if (IsBearerHeader({header.data(), header.size()})) {
      context.AddMetadata("authorization", header);
    }
  }
}

RetryGovernor::RetryGovernor(Connection& connection,
                             std::optional<absl::Time> end)
    : connection_(connection), start_(MonotonicNow()), end_(end) {}

void RetryGovernor::Progress() {
  Reset();
  connection_.NoteAnswer();
}

absl::Time RetryGovernor::TimeLimit() const {
  return end_.value_or(failures_.first_time +
                       connection_.options().stream_idle_max);
}

std::optional<absl::Duration> RetryGovernor::DelayAfter(
    const absl::Status& status) {
  const bool is_unavailable = absl::IsUnavailable(status);
  const std::optional<absl::Duration> told =
      is_unavailable || absl::IsResourceExhausted(status) ? RetryDelayOf(status)
                                                          : std::nullopt;
  if (!is_unavailable && !told.has_value()) {
    return std::nullopt;
  }
  if (++failures_.count == 1) {
    failures_.first_time = MonotonicNow();
  }
  failures_.passed_on_count += IsForOtherServers(status) ? 1 : 0;
  if (!told.has_value()) {
    ++failures_.untold_count;
    return Backoff(status);
  }
  // The server is there: it opens the archive, or the quota fills again.
  connection_.NoteAnswer();
  ++failures_.told_count;
  failures_.told_status = status;
  failures_.untold_count = 0;
  return DelayAsTold(std::max(*told, absl::ZeroDuration()));
}

std::optional<absl::Duration> RetryGovernor::DelayAsTold(absl::Duration told) {
  const absl::Duration floor = connection_.options().retry_backoff / 10 *
                               BackoffGrowth(failures_.told_count);
  const absl::Duration delay = std::min(std::max(told, floor), kToldDelayMax);
  const absl::Duration left = TimeLimit() - MonotonicNow();
  if (std::max(told, delay) >= left) {
    return std::nullopt;
  }
  return delay + std::min(delay * kToldJitterMax, (left - delay) / 2) *
                     absl::Uniform(random_, 0.0, 1.0);
}

std::optional<absl::Duration> RetryGovernor::Backoff(
    const absl::Status& status) {
  const int attempts_max = connection_.options().attempts_max;
  const absl::Duration left = TimeLimit() - MonotonicNow();
  const bool may_come_back = connection_.options().awaits_return &&
                             attempts_max > 1 && !IsCallReset(status) &&
                             connection_.has_answered() &&
                             left > absl::ZeroDuration();
  if (failures_.untold_count >= attempts_max && !may_come_back) {
    return std::nullopt;
  }
  const absl::Duration delay = connection_.options().retry_backoff *
                               BackoffGrowth(failures_.untold_count) *
                               absl::Uniform(random_, 0.5, 1.0);
  // A stream may be tried attempts_max times in any time.
  return end_.has_value() && delay >= left ? std::nullopt
                                           : std::optional(delay);
}

absl::Status RetryGovernor::FinalError(const absl::Status& status) const {
  const bool is_late = absl::IsDeadlineExceeded(status);
  if (failures_.told_count == 0 ||
      !(is_late || status == failures_.told_status)) {
    return status;
  }
  const absl::Status& told = failures_.told_status;
  const absl::Time start = end_.has_value() ? start_ : failures_.first_time;
  const absl::Duration delay = absl::Ceil(
      RetryDelayOf(told).value_or(absl::Duration()), absl::Milliseconds(1));
  const int attempt_count = failures_.count + (is_late ? 1 : 0);
  absl::Status error(
      told.code(),
      absl::StrCat(
          told.message(), "; gave up after ",
          absl::FormatDuration(
              absl::Ceil(MonotonicNow() - start, absl::Milliseconds(1))),
          " and ",
          attempt_count == 1 ? "one attempt"
                             : absl::StrCat(attempt_count, " attempts"),
          is_late ? ", the last one without an answer"
                  : absl::StrCat(", as the server asks to wait ",
                                 absl::FormatDuration(delay)),
          " and the time limit is ",
          absl::FormatDuration(end_.has_value()
                                   ? connection_.options().deadline
                                   : connection_.options().stream_idle_max),
          "; allow more time, or try again later"));
  told.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    error.SetPayload(url, payload);
  });
  return error;
}

absl::Status RetryGovernor::AwaitRetry(const absl::Status& status) {
  const std::optional<absl::Duration> delay = DelayAfter(status);
  if (!delay.has_value()) {
    return FinalError(status);
  }
  const bool is_told = failures_.untold_count == 0;
  return connection_.Wait(*delay, is_told) ? absl::OkStatus() : status;
}

StreamWatchdog::StreamWatchdog(grpc::ClientContext& context,
                               absl::Duration idle_max)
    : context_(context), idle_max_(idle_max) {
  if (idle_max_ < kIdleWatchedMax) {
    absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
    if (thread.ok()) {
      thread_ = *std::move(thread);
    } else {
      start_fault_ = thread.status();
      context_.TryCancel();
    }
  }
}

StreamWatchdog::~StreamWatchdog() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void StreamWatchdog::Arm() {
  if (!thread_.joinable()) {
    return;
  }
  MutexLock lock(&mutex_);
  // The thread sleeps for at most idle_max, so it wakes before this time and
  // needs no signal.
  expiry_ = Clock::now() + absl::ToChronoNanoseconds(idle_max_);
}

void StreamWatchdog::Disarm() {
  MutexLock lock(&mutex_);
  expiry_.reset();
}

absl::Status StreamWatchdog::Explain(const absl::Status& status) const {
  if (!start_fault_.ok() && absl::IsCancelled(status)) {
    return start_fault_;
  }
  MutexLock lock(&mutex_);
  if (expired_ && absl::IsCancelled(status)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the server sent nothing for ", absl::FormatDuration(idle_max_)));
  }
  return status;
}

void StreamWatchdog::Run() {
  const std::chrono::nanoseconds idle_max =
      absl::ToChronoNanoseconds(idle_max_);
  {
    MutexLock lock(&mutex_);
    while (!stop_ && !expired_) {
      const Clock::time_point now = Clock::now();
      if (expiry_.has_value() && *expiry_ <= now) {
        expired_ = true;
        break;
      }
      changed_.WaitFor(&mutex_,
                       expiry_.has_value() ? *expiry_ - now : idle_max);
    }
    if (!expired_) {
      return;
    }
  }
  context_.TryCancel();
}

}  // namespace quire
