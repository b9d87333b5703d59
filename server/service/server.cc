// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/service/archive_loader.h"
#include "server/service/archive_opener.h"
#include "server/service/calls/archive_service.h"
#include "server/service/calls/call_context.h"
#include "server/service/catalog/drive_report.h"
#include "server/service/catalog/remote_archives.h"
#include "server/service/grpc_front.h"
#include "server/service/limits/client_limits.h"
#include "server/service/limits/connection_memory.h"
#include "server/service/listen/admin_server.h"
#include "server/service/listen/alive_checks.h"
#include "server/service/live_files.h"
#include "server/service/metrics/server_collector.h"
#include "server/service/scrub/scrubber.h"
#include "server/service/security/access_control.h"
#include "server/service/security/handshake_failures.h"
#include "server/service/security/tls_certificates.h"
#include "server/service/server_inputs.h"

#include "grpc/grpc.h"

namespace quire {
namespace {

// A probe waits this long for the server's answer to itself, and checks for a
// shutdown at this interval.
constexpr absl::Duration kReadyCheckMax = absl::Seconds(5);
constexpr absl::Duration kReadyCheckStep = absl::Milliseconds(5);

// Returns a line for each archive that is read through the page cache after
// all.
std::string DirectIoNotes(const Catalog::ByName& archives) {
  std::string lines;
  for (const auto& [name, served] : archives) {
    if (const std::string& note = served->archive->direct_io_note();
        !note.empty()) {
      absl::StrAppend(&lines, "archive ", name,
                      " is read through the page cache: ", note, "\n");
    }
  }
  return lines;
}

class ServerImpl final : public Server {
 public:
  ServerImpl(const ServerOptions& options, ServerInputs inputs,
             std::unique_ptr<BlockStore> store,
             std::unique_ptr<CallLog> call_log)
      : options_(options),
        call_log_(std::move(call_log)),
        access_control_(std::move(inputs.access_control)),
        withdrawals_(std::move(inputs.withdrawals)),
        remote_(std::move(inputs.remote)),
        plan_(inputs.plan),
        limits_(MakeClientLimits(plan_)),
        store_(std::move(store)),
        loader_(options_, plan_, std::move(inputs.planned), catalog_, *store_,
                withdrawals_.get(), remote_.get()),
        opener_(loader_, options_.log),
        admission_(limits_.in_flight_size_bytes_max(),
                   limits_.client_in_flight_size_bytes_max()),
        registry_(std::make_shared<prometheus::Registry>()),
        metrics_(*registry_),
        collector_(std::make_shared<ServerCollector>(ServerCollector::Sources{
            *store_, admission_, catalog_, plan_,
            [this] { return CertificateExpiry(); },
            [this] { return AccessExpiry(); },
            [this] {
              return call_log_ == nullptr ? 0 : call_log_->dropped_count();
            },
            [this] {
              const ArchiveOpener::Figures figures = opener_.figures();
              return ListedFigures{.opened_count = figures.opened_count,
                                   .failed_count = figures.failed_count};
            },
            [this] { return DescribeConnections(); },
            [this] { return stall_guard_.stalled_count(); }, metrics_,
            [] { return HandshakeFailures::OfProcess().counts(); },
            [this] {
              return scrubber_ == nullptr ? std::vector<ScrubFigures>()
                                          : scrubber_->Figures();
            },
            options_.scrub.interval,
            remote_ == nullptr ? nullptr : &remote_->store(),
            [this] { return DescribeStale(); }})),
        stall_guard_(options_.stall_limit),
        connection_memory_(
            plan_,
            inputs.certificates == nullptr ? kPlainConnectionCost
                                           : kTlsConnectionCost,
            [this](uint64_t bytes) { return loader_.LendToConnections(bytes); },
            [this](uint64_t bytes) { quota_.Resize(bytes); }),
        connection_limits_(LimitConnections(
            options_.silence_limit, connection_memory_.connections_max(),
            [this](size_t count) { return connection_memory_.Fit(count); })),
        connections_(connection_limits_),
        default_quota_(options_.default_quota),
        core_{.catalog_of_all = catalog_,
              .access_control = access_control_.get(),
              .quotas = quotas_,
              .default_quota = default_quota_,
              .store = *store_,
              .admission = admission_,
              .metrics = metrics_,
              .call_log = call_log_.get(),
              .stall_guard = stall_guard_,
              .connections = connections_,
              .draining = draining_,
              .limits = limits_,
              .stream_window_size_bytes = StreamWindowBytes(limits_)},
        service_(MakeArchiveService(core_)),
        certificates_(std::move(inputs.certificates)),
        front_({.listen_address = options_.listen_address,
                .connection_age = options_.connection_age,
                .is_open_to_all = access_control_ == nullptr},
               *service_, connections_) {
    admission_.StartTimer();
    catalog_.SetDemand(
        [this](const ArchiveArgument& archive) { opener_.Open(archive); });
  }

  ~ServerImpl() override {
    Shutdown(absl::ZeroDuration());
    if (certificates_ != nullptr) {
      HandshakeFailures::OfProcess().SetLog(DropLogLine);
    }
  }

  absl::Status StartListening() {
    // Counts connections that gRPC ends, from the first on.
    HandshakeFailures& failures = HandshakeFailures::OfProcess();
    if (certificates_ != nullptr) {
      failures.SetLog(options_.log);
    }
    std::vector<std::string> names;
    for (const ArchiveArgument& argument : options_.archives) {
      names.push_back(argument.name);
    }
    QUIRE_RETURN_IF_ERROR(front_.Start(quota_,
                                       certificates_ != nullptr
                                           ? certificates_->Credentials()
                                           : grpc::InsecureServerCredentials(),
                                       names));
    if (!options_.listen_when_open) {
      QUIRE_RETURN_IF_ERROR(front_.AcceptClients());
    }
    if (certificates_ != nullptr) {
      QUIRE_RETURN_IF_ERROR(
          certificates_->Watch(options_.tls_check_interval, options_.log));
    }
    if (options_.scrub.interval > absl::ZeroDuration()) {
      QUIRE_ASSIGN_OR_RETURN(
          scrubber_,
          Scrubber::Start(options_.scrub, catalog_, *store_, options_.log));
    }
    return StartMetrics();
  }

  const std::string& address() const override { return front_.address(); }

  const std::string& metrics_address() const override {
    return metrics_address_;
  }

  std::string Description() const override {
    std::vector<ArchiveNeed> needs;
    const Catalog::ByName archives = catalog_.Get();
    for (const auto& [name, served] : archives) {
      needs.push_back({name, served->archive->memory_bytes_max()});
    }
    return absl::StrCat(
        DescribePlan(plan_, needs), DescribeLimits(),
        options_.archives_list.empty()
            ? ""
            : absl::StrCat(FormatCounted(catalog_.counts().on_use,
                                         "archive of ", "archives of "),
                           options_.archives_list, ": opened on first use\n"),
        options_.direct_io == DirectIo::kOff
            ? ""
            : "reads past the page cache (O_DIRECT)\n",
        DescribeDrives(*store_, archives), DirectIoNotes(archives));
  }

  absl::Status OpenArchives() override ABSL_LOCKS_EXCLUDED(loader_mutex_) {
    MutexLock lock(&loader_mutex_);
    if (is_shut_down_) {
      return absl::CancelledError("the server was shut down");
    }
    std::vector<BrokenArchive> broken;
    QUIRE_RETURN_IF_ERROR(loader_.OpenAll(
        [this](const std::string& name, bool is_serving) {
          front_.SetArchiveHealth(name, is_serving);
        },
        broken));
    QUIRE_RETURN_IF_ERROR(LeaveOut(broken));
    for (const LogLine& line : DescribeWithdrawals()) {
      options_.log(line.level, line.text);
    }
    // Now the archives above have their memory.
    QUIRE_RETURN_IF_ERROR(StartOpener());
    for (const ArchiveArgument& archive : options_.archives) {
      if (archive.is_listed) {
        front_.SetArchiveHealth(archive.name, true);
      }
    }
    front_.SetServing();
    if (options_.listen_when_open) {
      QUIRE_RETURN_IF_ERROR(front_.AcceptClients());
    }
    all_open_ = true;
    if (remote_ != nullptr) {
      remote_->RemoveOthers(options_.archives);
    }
    metrics_.AllReloaded(absl::Now(), catalog_.counts().failed == 0);
    return absl::OkStatus();
  }

  OpeningProgress opening_progress() const override {
    const Catalog::Counts counts = catalog_.counts();
    return {.open_count = counts.open,
            .archive_count = counts.open + counts.opening,
            .is_reachable = front_.is_reachable()};
  }

  std::vector<LogLine> Reload(const ServerChanges& changes) override
      ABSL_LOCKS_EXCLUDED(loader_mutex_) {
    MutexLock lock(&loader_mutex_);
    if (is_shut_down_) {
      return {};
    }
    default_quota_.Set(changes.default_quota);
    // First, as archives may take minutes: a withdrawn right ends now, and new
    // archives come under the new rules.
    std::vector<LogLine> lines;
    bool succeeded =
        LiveFiles{.access_control = access_control_.get(),
                  .withdrawals = withdrawals_.get(),
                  .store = remote_ == nullptr ? nullptr : &remote_->store(),
                  .certificates = certificates_.get(),
                  .call_log = call_log_.get()}
            .Reload(catalog_, lines) &&
        changes.is_wanted;
    std::vector<LogLine> archive_lines = loader_.Reload(
        WithPathsInForce(changes.archives), changes.kept_archives,
        [this](const std::string& name, bool is_serving) {
          front_.SetArchiveHealth(name, is_serving);
        },
        [&](bool ok) {
          metrics_.ReloadEnded(ok);
          succeeded = succeeded && ok;
        });
    std::ranges::move(archive_lines, std::back_inserter(lines));
    if (const absl::Status started = StartOpener(); !started.ok()) {
      lines.push_back({LogLevel::kError, std::string(started.message())});
    }
    std::ranges::move(DescribeWithdrawals(), std::back_inserter(lines));
    metrics_.AllReloaded(absl::Now(), succeeded);
    return lines;
  }

  std::vector<LogLine> ReloadGrown(const std::vector<ArchiveArgument>& archives)
      override ABSL_LOCKS_EXCLUDED(loader_mutex_) {
    MutexLock lock(&loader_mutex_);
    std::vector<std::string> kept;
    for (const auto& [name, archive] : catalog_.Get()) {
      kept.push_back(name);
    }
    return ReloadSome(archives, kept, Examined::kManifests);
  }

  bool HasUnconfirmed() const override {
    return remote_ != nullptr && (remote_->confirmations().stale_count() > 0 ||
                                  catalog_.counts().failed > 0);
  }

  std::vector<LogLine> RetryUnconfirmed(
      const std::vector<ArchiveArgument>& archives) override
      ABSL_LOCKS_EXCLUDED(loader_mutex_) {
    MutexLock lock(&loader_mutex_);
    return ReloadSome(archives, {}, Examined::kUnconfirmed);
  }

  void CheckAlive(std::function<void()> answered) override
      ABSL_LOCKS_EXCLUDED(drain_mutex_) {
    MutexLock lock(&drain_mutex_);
    if (drain_ended_ || draining_) {
      return;
    }
    // Use a separate connection through the clients' socket.
    absl::StatusOr<std::unique_ptr<OwnConnection>> connection =
        front_.ConnectToSelf();
    if (!connection.ok()) {
      return;
    }
    alive_checks_.Start(*std::move(connection), std::move(answered));
  }

  void AnnounceShutdown() override {
    withdrawn_ = true;
    front_.EndHealth();
  }

  void Shutdown(absl::Duration timeout) override
      ABSL_LOCKS_EXCLUDED(loader_mutex_, drain_mutex_) {
    loader_.Stop();
    opener_.Stop();
    withdrawn_ = true;
    draining_ = true;
    MutexLock lock(&loader_mutex_);
    if (is_shut_down_ || !front_.is_started()) {
      return;
    }
    is_shut_down_ = true;
    front_.EndHealth();
    front_.StopListening();
    if (remote_ != nullptr) {
      remote_->store().SetStopTime(
          std::chrono::steady_clock::now() +
          absl::ToChronoNanoseconds(is_drain_ended()
                                        ? absl::ZeroDuration()
                                        : std::min(timeout, absl::Hours(24))));
    }
    front_.EndCalls(is_drain_ended() ? absl::ZeroDuration() : timeout);
    {
      MutexLock drain_lock(&drain_mutex_);
      drain_ended_ = true;
    }
    admin_server_.reset();
  }

  void EndDrain() override ABSL_LOCKS_EXCLUDED(drain_mutex_) {
    draining_ = true;
    MutexLock lock(&drain_mutex_);
    if (!drain_ended_) {
      front_.CancelCalls();
      if (remote_ != nullptr) {
        remote_->store().SetStopTime(std::chrono::steady_clock::now());
      }
    }
    drain_ended_ = true;
  }

  // Handles archives that cannot be opened.
  // Errors: as the first of them, unless they may be skipped and others exist.
  absl::Status LeaveOut(const std::vector<BrokenArchive>& broken) {
    if (broken.empty()) {
      return absl::OkStatus();
    }
    const Catalog::Counts counts = catalog_.counts();
    if (!options_.skip_broken ||
        counts.open + counts.opening + counts.on_use == 0) {
      return JoinReasons(broken, counts.open);
    }
    for (const BrokenArchive& archive : broken) {
      options_.log(LogLevel::kError,
                   absl::StrCat("archive ", archive.name,
                                " is left out: ", archive.reason.message()));
    }
    return absl::OkStatus();
  }

 private:
  bool is_drain_ended() ABSL_LOCKS_EXCLUDED(drain_mutex_) {
    MutexLock lock(&drain_mutex_);
    return drain_ended_;
  }

  std::vector<LogLine> ReloadSome(const std::vector<ArchiveArgument>& archives,
                                  const std::vector<std::string>& kept,
                                  Examined examined)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loader_mutex_) {
    if (is_shut_down_) {
      return {};
    }
    return loader_.Reload(
        WithPathsInForce(archives), kept,
        [this](const std::string& name, bool is_serving) {
          front_.SetArchiveHealth(name, is_serving);
        },
        [this](bool ok) { metrics_.ReloadEnded(ok); }, examined);
  }

  // Another --store-cache or --store-endpoint of a changed configuration needs
  // a restart: until then, local copies stay where they are.
  std::vector<ArchiveArgument> WithPathsInForce(
      std::vector<ArchiveArgument> archives) const {
    for (ArchiveArgument& archive : archives) {
      if (!archive.url.empty() && options_.store.has_value()) {
        // A URL without an address here is refused when it is opened.
        RemoteArchives::SetPath(*options_.store, archive).IgnoreError();
      }
    }
    return archives;
  }

  std::vector<LogLine> DescribeWithdrawals() const {
    return withdrawals_ == nullptr ? std::vector<LogLine>()
                                   : withdrawals_->Describe(catalog_);
  }

  // Listed archives are opened from now on, if there are any.
  absl::Status StartOpener() {
    return catalog_.counts().on_use == 0 ? absl::OkStatus() : opener_.Start();
  }

  std::string MetricsText() const {
    std::vector<prometheus::MetricFamily> families = registry_->Collect();
    for (prometheus::MetricFamily& family : collector_->Collect()) {
      families.push_back(std::move(family));
    }
    return prometheus::TextSerializer().Serialize(families);
  }

  std::optional<absl::Time> CertificateExpiry() const {
    return certificates_ == nullptr ? std::nullopt
                                    : std::optional(certificates_->expiry());
  }

  std::optional<absl::Time> AccessExpiry() const {
    return access_control_ == nullptr
               ? std::nullopt
               : access_control_->NextExpiry(absl::Now());
  }

  std::string DescribeLimits() const {
    const auto descriptors_max =
        static_cast<size_t>(connection_limits_.crowded_descriptor);
    const bool is_memory =
        connection_memory_.connections_max() < descriptors_max;
    return absl::StrCat(
        "connections: at most ",
        is_memory ? connection_memory_.connections_max() : descriptors_max,
        is_memory ? " (--memory)" : " (limit of open files)", ", ",
        connection_limits_.client_connections_max, " of one client\n");
  }

  bool is_open() const { return all_open_ && !withdrawn_; }

  // True unless archives could not be opened and none is open. Otherwise asks
  // for one of the list, another each time: if it can be opened, the server is
  // ready again, although no client was sent here.
  bool HasReadableArchive() ABSL_LOCKS_EXCLUDED(probe_mutex_) {
    const Catalog::Counts counts = catalog_.counts();
    if (counts.open > 0 || counts.failed == 0) {
      return true;
    }
    std::string last;
    {
      MutexLock lock(&probe_mutex_);
      last = probed_;
    }
    catalog_.AskForAnother(last);
    MutexLock lock(&probe_mutex_);
    probed_ = std::move(last);
    return false;
  }

  // True if clients that connect now are answered.
  bool IsReady() ABSL_LOCKS_EXCLUDED(drain_mutex_, probe_mutex_) {
    if (!is_open() || !HasReadableArchive()) {
      return false;
    }
    const auto answered = std::make_shared<absl::Notification>();
    CheckAlive([answered] { answered->Notify(); });
    // Stop at a shutdown, which ends this check without an answer.
    const absl::Time end = MonotonicNow() + kReadyCheckMax;
    while (is_open() && MonotonicNow() < end) {
      if (answered->WaitForNotificationWithTimeout(kReadyCheckStep)) {
        return is_open();
      }
    }
    return false;
  }

  StaleFigures DescribeStale() const {
    StaleFigures figures;
    for (const auto& [name, served] : catalog_.Get()) {
      if (const auto stale =
              remote_->confirmations().FindStale(served->archive->path());
          stale.has_value()) {
        ++figures.archive_count;
        figures.age_max = std::max(figures.age_max, stale->age);
      }
    }
    return figures;
  }

  ConnectionFigures DescribeConnections() {
    return {
        .open_count = connections_.Count(),
        .refused_to_client_count =
            connections_.verdict_count(ConnectionVerdict::kClientHasItsShare),
        .refused_to_all_count =
            connections_.verdict_count(ConnectionVerdict::kNoDescriptors),
        .refused_memory_count =
            connections_.verdict_count(ConnectionVerdict::kNoMemory),
        .crowded_out_count = HandshakeFailures::OfProcess().crowded_out_count(),
        .descriptors_max =
            static_cast<uint64_t>(connection_limits_.crowded_descriptor),
        .memory_max = connection_memory_.connections_max(),
        .silent_ended_count = connections_.silent_ended_count(),
        .accept_error_count = front_.accept_error_count()};
  }

  absl::Status StartMetrics() {
    if (options_.metrics_address.empty()) {
      return absl::OkStatus();
    }
    auto& build_info = prometheus::BuildGauge()
                           .Name("quire_build_info")
                           .Help("Always 1; the labels say what is running.")
                           .Register(*registry_);
    build_info
        .Add({{"version", QUIRE_VERSION}, {"engine", store_->engine_name()}})
        .Set(1);
    QUIRE_ASSIGN_OR_RETURN(
        admin_server_,
        AdminServer::Open(options_.metrics_address,
                          {.metrics = [this] { return MetricsText(); },
                           .is_ready = [this] { return IsReady(); }}));
    metrics_address_ = admin_server_->address();
    return absl::OkStatus();
  }

  const ServerOptions options_;
  // Null: single calls are not logged.
  const std::unique_ptr<CallLog> call_log_;
  // Null: everyone may do everything.
  const std::unique_ptr<AccessControl> access_control_;
  // Null without --withdrawn.
  const std::unique_ptr<WithdrawalFile> withdrawals_;
  // Null without archives in object stores. Outlives `store_`, whose devices
  // use it.
  const std::unique_ptr<RemoteArchives> remote_;
  const MemoryPlan plan_;
  const v1::Limits limits_;
  // Calls are refused.
  std::atomic<bool> draining_{false};
  // Clients should be sent elsewhere.
  std::atomic<bool> withdrawn_{false};
  std::atomic<bool> all_open_{false};
  Catalog catalog_;
  const std::unique_ptr<BlockStore> store_;
  // Held while archives are opened or the server is shut down.
  Mutex loader_mutex_ ABSL_ACQUIRED_BEFORE(drain_mutex_);
  bool is_shut_down_ ABSL_GUARDED_BY(loader_mutex_) = false;
  // Never held while calls end.
  Mutex drain_mutex_;
  // Shutdown() no longer waits for calls.
  bool drain_ended_ ABSL_GUARDED_BY(drain_mutex_) = false;
  Mutex probe_mutex_;
  // Archive of the list that a probe asked for last.
  std::string probed_ ABSL_GUARDED_BY(probe_mutex_);
  // Stop() needs no lock.
  ArchiveLoader loader_;
  // Thread-safe.
  ArchiveOpener opener_;
  Admission admission_;
  // Limit on gRPC's memory; grows with the number of connections.
  grpc::ResourceQuota quota_{"quired"};
  const std::shared_ptr<prometheus::Registry> registry_;
  CallMetrics metrics_;
  const std::shared_ptr<ServerCollector> collector_;
  StallGuard stall_guard_;
  // Used by the listener's thread.
  ConnectionMemory connection_memory_;
  const ConnectionLimits connection_limits_;
  ConnectionTable connections_;
  QuotaBook quotas_;
  ChangingQuota default_quota_;
  ServiceCore core_;
  const std::unique_ptr<grpc::Service> service_;
  std::string metrics_address_;
  // Null without TLS.
  const std::unique_ptr<TlsCertificates> certificates_;
  // Before others can call, it has started, and it is kept until the
  // destructor.
  GrpcFront front_;
  // The server outlives its calls to itself.
  AliveChecks alive_checks_;
  // Null without an address.
  std::unique_ptr<AdminServer> admin_server_;
  // Null without --scrub-interval.
  std::unique_ptr<Scrubber> scrubber_;
};

// Keeps gRPC initialised until the process ends. Otherwise the destructor of
// the last server waits for gRPC's own threads, one of which may sit in
// epoll_wait() for 10 seconds (gRPC issue 41050, also in 1.51).
void KeepGrpcInitialised() {
  [[maybe_unused]] static const bool is_kept = [] {
    grpc_init();
    return true;
  }();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(
    const ServerOptions& options) {
  KeepGrpcInitialised();
  std::vector<absl::Status> faults;
  ServerInputs inputs = CheckInputs(options, /*is_trial=*/false, faults);
  if (!faults.empty()) {
    return faults.front();
  }
  BlockStoreOptions store_options;
  store_options.cache_size_bytes = inputs.plan.cache_bytes;
  store_options.buffers_size_bytes_max = inputs.plan.buffers_bytes;
  store_options.callers_size_bytes_max = inputs.plan.in_flight_bytes;
  store_options.engine = options.engine;
  store_options.device_depth = options.device_depth;
  store_options.device_model = options.device_model;
  store_options.direct_io = options.direct_io != DirectIo::kOff;
  if (!options.archives_directory.empty()) {
    store_options.drives.push_back(
        DriveOfDirectory(options.archives_directory, options.drive));
  }
  for (const ArchiveArgument& argument : options.archives) {
    // Drives of the list's archives are added when they are opened.
    if (!argument.is_listed) {
      store_options.drives.push_back(
          DriveOfDirectory(argument.path, options.drive));
    }
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<BlockStore> store,
                         BlockStore::Create(store_options));
  std::unique_ptr<CallLog> call_log;
  if (!options.call_log.path.empty()) {
    CallLogOptions log_options = options.call_log;
    log_options.log = options.log;
    QUIRE_ASSIGN_OR_RETURN(call_log, CallLog::Open(std::move(log_options)));
  }
  const std::vector<BrokenArchive> broken = inputs.broken;
  auto server = std::make_unique<ServerImpl>(
      options, std::move(inputs), std::move(store), std::move(call_log));
  QUIRE_RETURN_IF_ERROR(server->StartListening());
  QUIRE_RETURN_IF_ERROR(server->LeaveOut(broken));
  return server;
}

std::vector<absl::Status> Server::Check(const ServerOptions& options) {
  std::vector<absl::Status> faults;
  CheckInputs(options, /*is_trial=*/true, faults);
  return faults;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Listen(options));
  QUIRE_RETURN_IF_ERROR(server->OpenArchives());
  return server;
}

}  // namespace quire
