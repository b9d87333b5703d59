// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/server_inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "codecs/base/check.h"
#include "codecs/base/monotonic_time.h"
#include "server/service/listen/listen_address.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kStopWatchInterval{20};
constexpr absl::Duration kStoreReportInterval = absl::Seconds(1);
// Memory of chunk maps for growth and listed archives: at least kMapBytesMin,
// and one byte for kMemoryPerMapByte bytes of --memory.
constexpr uint64_t kMapBytesMin = 1 << 20;
constexpr uint64_t kMemoryPerMapByte = 64;

// Returns the value, or null after adding a fault of `option`.
template <typename T>
std::unique_ptr<T> TakeOrNote(absl::string_view option,
                              absl::StatusOr<std::unique_ptr<T>> result,
                              std::vector<absl::Status>& faults) {
  if (!result.ok()) {
    faults.emplace_back(result.status().code(),
                        absl::StrCat(option, ": ", result.status().message()));
    return nullptr;
  }
  return *std::move(result);
}

void CheckAddresses(const ServerOptions& options,
                    std::vector<absl::Status>& faults) {
  if (absl::Status status = CheckListenAddress(options.listen_address);
      !status.ok()) {
    faults.push_back(std::move(status));
  } else if (options.tls.is_set() && UnixSocketPath(options.listen_address)) {
    faults.push_back(absl::InvalidArgumentError(
        absl::StrCat(options.listen_address,
                     ": TLS is for HOST:PORT; a unix socket needs none, as its "
                     "file restricts access")));
  }
  if (!options.metrics_address.empty()) {
    if (absl::Status status = CheckMetricsAddress(options.metrics_address);
        !status.ok()) {
      faults.push_back(std::move(status));
    }
  }
}

void WarnOfAccess(const ServerOptions& options, const AccessControl& access) {
  struct stat info {};

  if (stat(options.access_path.c_str(), &info) == 0 &&
      (info.st_mode & S_IROTH) != 0) {
    options.log(LogLevel::kWarning,
                absl::StrCat(options.access_path,
                             ": can be read by all users, and contains access "
                             "rules: chmod o-r"));
  }
  if (const size_t count = access.certificate_count();
      count > 0 && options.tls.client_ca.empty()) {
    options.log(LogLevel::kWarning,
                absl::StrCat(options.access_path, ": ", count,
                             " identities need a client certificate, and none "
                             "is asked for; give --tls-client-ca"));
  }
  if (const std::string soon = access.DescribeExpiring(absl::Now());
      !soon.empty()) {
    options.log(LogLevel::kWarning, soon);
  }
}

// Looks periodically whether the program is to end.
class StopWatch {
 public:
  // `is_stop_wanted` may be empty.
  explicit StopWatch(const std::function<bool()>& is_stop_wanted) {
    if (is_stop_wanted) {
      thread_ =
          std::jthread([this, is_stop_wanted](const std::stop_token& token) {
            while (!token.stop_requested() && !is_wanted_) {
              is_wanted_ = is_stop_wanted();
              std::this_thread::sleep_for(kStopWatchInterval);
            }
          });
    }
  }

  const std::atomic<bool>& is_wanted() const { return is_wanted_; }

 private:
  std::atomic<bool> is_wanted_ = false;
  std::jthread thread_;
};

// Memory of objects that are read whole: little, unless --memory is large. One
// of manifests of 65,536 segments takes the larger.
constexpr uint64_t kObjectMemoryBytesMin = uint64_t{12} << 20;
constexpr uint64_t kObjectMemoryBytes = uint64_t{96} << 20;
constexpr uint64_t kLargeMemoryBytes = uint64_t{1} << 30;

// REQUIRES: there is a store.
RemoteStoreOptions StoreOptions(const ServerOptions& options) {
  RemoteStoreOptions store = *options.store;
  store.object_memory_bytes =
      options.memory_bytes.value_or(kLargeMemoryBytes) < kLargeMemoryBytes
          ? kObjectMemoryBytesMin
          : kObjectMemoryBytes;
  store.notice = [log = options.log](bool is_failure, const std::string& line) {
    log(is_failure ? LogLevel::kWarning : LogLevel::kInfo, line);
  };
  return store;
}

// Logs failures of object stores, a line for all of a second, and lets archives
// be checked that seem to have changed.
RemoteStore::Report StoreReport(const ServerOptions& options) {
  return [log = options.log, check = options.check_archives,
          next = absl::InfinitePast()](const absl::Status& failure) mutable {
    const absl::Time now = MonotonicNow();
    if (now >= next) {
      next = now + kStoreReportInterval;
      log(LogLevel::kWarning,
          absl::StrCat("a read from an object store failed: ",
                       failure.message()));
    }
    if (check && (absl::IsAborted(failure) || absl::IsNotFound(failure))) {
      check();
    }
  };
}

// Returns false if archives need an object store that cannot be used.
bool OpenRemote(const ServerOptions& options, bool is_trial,
                ServerInputs& inputs, std::vector<absl::Status>& faults) {
  const bool has_remote = std::any_of(
      options.archives.begin(), options.archives.end(),
      [](const ArchiveArgument& archive) { return !archive.url.empty(); });
  if (!has_remote) {
    return true;
  }
  if (!options.store.has_value() || !options.device_model.empty()) {
    faults.push_back(absl::InvalidArgumentError(
        options.store.has_value()
            ? "device-model of [experiment] cannot slow down archives in an "
              "object store; leave it out"
            : "archives in an object store need --store-cache DIR:SIZE"));
    return false;
  }
  RemoteStoreOptions store = StoreOptions(options);
  store.is_trial = is_trial;
  inputs.remote = TakeOrNote(
      "--store-cache",
      RemoteArchives::Open(store, options.engine, StoreReport(options)),
      faults);
  return inputs.remote != nullptr;
}

ListedNeed NeedOfListed(const std::vector<PlannedArchive>& planned) {
  ListedNeed need;
  for (const auto& [argument, outline] : planned) {
    if (!argument.is_listed) {
      continue;
    }
    ++need.count;
    if (!outline.ok()) {
      need.has_unknown = true;
      continue;
    }
    need.sum_bytes += outline->memory_bytes;
    if (outline->memory_bytes >= need.largest.memory_bytes) {
      need.largest = {argument.name, outline->memory_bytes};
    }
  }
  return need;
}

// Returns the limit on the memory of chunk maps: twice those of the named
// archives, which may be replaced, and a part of the server's memory for
// listed ones. 8 MiB are enough for 5.3 TiB in chunks of 256 KiB.
uint64_t MapBytesMax(const ServerOptions& options,
                     const std::vector<PlannedArchive>& planned) {
  uint64_t bytes = std::max(
      kMapBytesMin, options.memory_bytes.value_or(0) / kMemoryPerMapByte);
  for (const auto& [argument, outline] : planned) {
    bytes += argument.url.empty() || !outline.ok()
                 ? 0
                 : 2 * ChunkMap::MemoryBytes(outline->info.stored_size_bytes,
                                             options.store->chunk_size_bytes);
  }
  return bytes;
}

// Plans all archives before any is opened, so that a lack of memory is found
// without filling the memory first.
void PlanArchives(const ServerOptions& options, ServerInputs& inputs,
                  std::vector<absl::Status>& faults) {
  std::vector<ArchiveArgument> archives = options.archives;
  if (inputs.remote != nullptr) {
    RemoteStoreOptions store = *options.store;
    store.cache_directory = inputs.remote->store().cache().directory();
    for (ArchiveArgument& archive : archives) {
      if (!archive.url.empty()) {
        QUIRE_CHECK(RemoteArchives::SetPath(store, archive).ok(),
                    "options with a malformed URL");
      }
    }
  }
  if (absl::Status status = CheckNamesDiffer(archives); !status.ok()) {
    faults.push_back(std::move(status));
    return;
  }
  // Without a store nothing here takes long.
  const StopWatch stop(inputs.remote == nullptr ? std::function<bool()>()
                                                : options.is_stop_wanted);
  uint64_t store_bytes = 0;
  // Those of the list last: their copies take memory that the others limit.
  for (const bool is_listed : {false, true}) {
    std::vector<ArchiveArgument> some;
    std::ranges::copy_if(archives, std::back_inserter(some),
                         [is_listed](const ArchiveArgument& archive) {
                           return archive.is_listed == is_listed;
                         });
    absl::StatusOr<std::vector<PlannedArchive>> planned =
        ReadOutlines(some, inputs.remote.get(), &stop.is_wanted());
    if (!planned.ok()) {
      faults.push_back(planned.status());
      return;
    }
    std::ranges::move(*planned, std::back_inserter(inputs.planned));
    if (!is_listed && inputs.remote != nullptr) {
      const uint64_t map_bytes = MapBytesMax(options, inputs.planned);
      inputs.remote->store().cache().SetMapBytesMax(map_bytes);
      store_bytes = RemoteStore::MemoryBytes(StoreOptions(options)) + map_bytes;
    }
  }
  std::vector<BrokenArchive> broken;
  std::vector<BrokenArchive> listed_broken;
  for (const PlannedArchive& archive : inputs.planned) {
    if (archive.is_broken()) {
      broken.push_back(
          {.name = archive.argument.name, .reason = archive.outline.status()});
      (archive.argument.is_listed ? listed_broken : inputs.broken)
          .push_back(broken.back());
    }
  }
  const size_t good_count = options.archives.size() - broken.size();
  if (!broken.empty() && (!options.skip_broken || good_count == 0)) {
    faults.push_back(JoinReasons(broken, good_count));
  } else {
    for (const BrokenArchive& archive : listed_broken) {
      options.log(LogLevel::kError,
                  absl::StrCat("archive ", archive.name,
                               " cannot be opened now, and is tried again on "
                               "first use: ",
                               archive.reason.message()));
    }
  }
  std::vector<ArchiveNeed> needs;
  for (const auto& [argument, outline] : inputs.planned) {
    if (!argument.is_listed && outline.ok()) {
      needs.push_back({argument.name, outline->memory_bytes});
    }
  }
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const ArchiveNeed& need : needs) {
    names.push_back(need.name);
  }
  const uint64_t withdrawals_bytes =
      inputs.withdrawals == nullptr ? 0
                                    : inputs.withdrawals->PlannedBytes(names);
  const ListedNeed listed_need = NeedOfListed(inputs.planned);
  absl::StatusOr<MemoryPlan> plan = PlanMemory(
      options.memory_bytes, needs, !options.archives_directory.empty(),
      withdrawals_bytes, store_bytes, listed_need);
  if (plan.ok()) {
    inputs.plan = *plan;
  } else {
    faults.push_back(plan.status());
  }
}

}  // namespace

ServerInputs CheckInputs(const ServerOptions& options, bool is_trial,
                         std::vector<absl::Status>& faults) {
  ServerInputs inputs;
  if (options.archives.empty() && options.archives_directory.empty() &&
      options.archives_list.empty()) {
    faults.push_back(
        absl::InvalidArgumentError("no archive to serve; name at least one"));
  }
  CheckAddresses(options, faults);
  if (!options.access_path.empty()) {
    inputs.access_control = TakeOrNote(
        "--access", AccessControl::Open(options.access_path), faults);
    if (inputs.access_control != nullptr) {
      WarnOfAccess(options, *inputs.access_control);
    }
  }
  if (!options.withdrawn_path.empty()) {
    inputs.withdrawals = TakeOrNote(
        "--withdrawn", WithdrawalFile::Open(options.withdrawn_path), faults);
  }
  if (options.tls.is_set()) {
    inputs.certificates =
        TakeOrNote("--tls-cert",
                   TlsCertificates::Open(options.tls,
                                         // Others may have a token.
                                         options.access_path.empty()
                                             ? ClientCertificates::kRequired
                                             : ClientCertificates::kOptional),
                   faults);
  }
  if (const absl::Status status = ReadHashKey(options.call_log).status();
      !status.ok()) {
    faults.push_back(status);
  }
  if (OpenRemote(options, is_trial, inputs, faults)) {
    PlanArchives(options, inputs, faults);
  }
  return inputs;
}

}  // namespace quire
