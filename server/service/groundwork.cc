// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/groundwork.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
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
  if (!options.say) {
    return;
  }

  struct stat info {};

  if (stat(options.access_path.c_str(), &info) == 0 &&
      (info.st_mode & S_IROTH) != 0) {
    options.say(LogLevel::kWarning,
                absl::StrCat(options.access_path,
                             ": can be read by all users, and contains access "
                             "rules: chmod o-r"));
  }
  if (const std::string soon = access.DescribeExpiring(absl::Now());
      !soon.empty()) {
    options.say(LogLevel::kWarning, soon);
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
  return store;
}

// Logs failures of object stores, a line for all of a second, and lets archives
// be checked that seem to have changed.
RemoteStore::Report StoreReport(const ServerOptions& options) {
  return [say = options.say, check = options.check_archives,
          next = absl::InfinitePast()](const absl::Status& failure) mutable {
    const absl::Time now = MonotonicNow();
    if (say && now >= next) {
      next = now + kStoreReportInterval;
      say(LogLevel::kWarning,
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
                Groundwork& groundwork, std::vector<absl::Status>& faults) {
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
  groundwork.remote = TakeOrNote(
      "--store-cache",
      RemoteArchives::Open(store, options.engine, StoreReport(options)),
      faults);
  return groundwork.remote != nullptr;
}

ListedNeed NeedOf(const std::vector<PlannedListed>& listed) {
  ListedNeed need = {.count = listed.size()};
  for (const auto& [argument, outline] : listed) {
    if (!outline.has_value()) {
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
    bytes += argument.url.empty()
                 ? 0
                 : 2 * ChunkMap::MemoryBytes(outline.info.stored_size_bytes,
                                             options.store->chunk_size_bytes);
  }
  return bytes;
}

// Plans all archives before any is opened, so that a lack of memory is found
// without filling the memory first.
void PlanArchives(const ServerOptions& options, Groundwork& groundwork,
                  std::vector<absl::Status>& faults) {
  std::vector<ArchiveArgument> archives = options.archives;
  if (groundwork.remote != nullptr) {
    RemoteStoreOptions store = *options.store;
    store.cache_directory = groundwork.remote->store().cache().directory();
    for (ArchiveArgument& archive : archives) {
      if (!archive.url.empty()) {
        QUIRE_CHECK(RemoteArchives::SetPath(store, archive).ok(),
                    "options with a malformed URL");
      }
    }
  }
  // Without a store nothing here takes long.
  const StopWatch stop(groundwork.remote == nullptr ? std::function<bool()>()
                                                    : options.is_stop_wanted);
  const auto first_listed = std::stable_partition(
      archives.begin(), archives.end(),
      [](const ArchiveArgument& archive) { return !archive.is_listed; });
  const std::vector<ArchiveArgument> listed(first_listed, archives.end());
  absl::Status names_differ = CheckNamesDiffer(archives);
  archives.erase(first_listed, archives.end());
  absl::StatusOr<std::vector<PlannedArchive>> planned = ReadOutlines(
      archives, groundwork.remote.get(), &stop.is_wanted(), groundwork.broken);
  std::vector<BrokenArchive> listed_broken;
  uint64_t store_bytes = 0;
  if (groundwork.remote != nullptr) {
    const uint64_t map_bytes = MapBytesMax(
        options, planned.ok() ? *planned : std::vector<PlannedArchive>());
    groundwork.remote->store().cache().SetMapBytesMax(map_bytes);
    store_bytes = RemoteStore::MemoryBytes(StoreOptions(options)) + map_bytes;
  }
  absl::StatusOr<std::vector<PlannedListed>> planned_listed =
      ReadListedOutlines(listed, groundwork.remote.get(), listed_broken);
  for (const absl::Status& status :
       {names_differ, planned.status(), planned_listed.status()}) {
    if (!status.ok()) {
      faults.push_back(status);
      return;
    }
  }
  groundwork.planned = *std::move(planned);
  groundwork.listed = *std::move(planned_listed);
  std::vector<BrokenArchive> broken = groundwork.broken;
  broken.insert(broken.end(), listed_broken.begin(), listed_broken.end());
  const size_t good_count = options.archives.size() - broken.size();
  if (!broken.empty() && (!options.skip_broken || good_count == 0)) {
    faults.push_back(JoinReasons(broken, good_count));
  } else if (options.say) {
    for (const BrokenArchive& archive : listed_broken) {
      options.say(LogLevel::kError,
                  absl::StrCat("archive ", archive.name,
                               " cannot be opened now, and is tried again on "
                               "first use: ",
                               archive.reason.message()));
    }
  }
  std::vector<ArchiveNeed> needs;
  needs.reserve(groundwork.planned.size());
  for (const auto& [argument, outline] : groundwork.planned) {
    needs.push_back({argument.name, outline.memory_bytes});
  }
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const ArchiveNeed& need : needs) {
    names.push_back(need.name);
  }
  const uint64_t withdrawals_bytes =
      groundwork.withdrawals == nullptr
          ? 0
          : groundwork.withdrawals->PlannedBytes(names);
  const ListedNeed listed_need = NeedOf(groundwork.listed);
  absl::StatusOr<MemoryPlan> plan = PlanMemory(
      options.memory_bytes, needs, !options.archives_directory.empty(),
      withdrawals_bytes, store_bytes, listed_need);
  if (plan.ok()) {
    groundwork.plan = *plan;
  } else {
    faults.push_back(plan.status());
  }
}

}  // namespace

Groundwork LayGroundwork(const ServerOptions& options, bool is_trial,
                         std::vector<absl::Status>& faults) {
  Groundwork groundwork;
  if (options.archives.empty() && options.archives_directory.empty() &&
      options.archives_list.empty()) {
    faults.push_back(
        absl::InvalidArgumentError("no archive to serve; name at least one"));
  }
  CheckAddresses(options, faults);
  if (!options.access_path.empty()) {
    groundwork.access_control = TakeOrNote(
        "--access", AccessControl::Open(options.access_path), faults);
    if (groundwork.access_control != nullptr) {
      WarnOfAccess(options, *groundwork.access_control);
    }
  }
  if (!options.withdrawn_path.empty()) {
    groundwork.withdrawals = TakeOrNote(
        "--withdrawn", WithdrawalFile::Open(options.withdrawn_path), faults);
  }
  if (options.tls.is_set()) {
    groundwork.certificates =
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
  if (OpenRemote(options, is_trial, groundwork, faults)) {
    PlanArchives(options, groundwork, faults);
  }
  return groundwork;
}

}  // namespace quire
