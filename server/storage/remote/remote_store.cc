// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/remote_store.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// One GET of an opening.
constexpr uint64_t kFillBytesMax = 4 << 20;
// GETs of one opening at a time: clients' reads need others.
constexpr size_t kFillsMax = 16;
// A waiting thread looks for its cancellation this often.
constexpr std::chrono::milliseconds kCancelInterval{20};
// Reads ahead that a cache has space for at a time.
constexpr uint64_t kReadsAheadMin = 16;
// Chunks that are displaced this often before their read make it fail.
constexpr int kEvictedReadsMax = 100;
// A reload does not wait longer for new credentials.
constexpr std::chrono::seconds kReloadTimeMax{10};
// The loop's and the stack's memory, and hedges.
constexpr uint64_t kFixedMemoryBytes = 4 << 20;

// Objects of at most this size are read by all threads at a time.
constexpr uint64_t kSmallObjectBytesMax = 32 << 10;
// Memory of an object: its bytes in a buffer that grows, the local copy, the
// message and what is made of it.
constexpr uint64_t kMemoryPerObjectByte = 6;

// Lets a thread wait for the loop. Shared by both, as the thread may leave.
class Completion {
 public:
  void End(absl::Status status) {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
    is_done_ = true;
    done_.NotifyAll();
  }

  // Errors: that of End(); Cancelled.
  absl::Status Wait(const std::atomic<bool>* cancel) {
    MutexLock lock(&mutex_);
    while (!is_done_) {
      if (cancel != nullptr && *cancel) {
        return absl::CancelledError("reading from the store was cancelled");
      }
      done_.WaitFor(&mutex_, kCancelInterval);
    }
    return status_;
  }

 private:
  Mutex mutex_;
  CondVar done_;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Chunks that are still to be fetched. On the loop's thread.
struct Filling {
  std::deque<RemoteStore::Part> left;
  size_t in_flight = 0;
  absl::Status status;
  // Nobody waits any more. Of any thread.
  std::atomic<bool> is_abandoned = false;
  Completion completion;
};

void ContinueFilling(ChunkFetcher& fetcher, ChunkCache& cache,
                     const std::shared_ptr<Filling>& filling) {
  if (filling->is_abandoned) {
    filling->left.clear();
  }
  while (filling->status.ok() && !filling->left.empty() &&
         filling->in_flight < kFillsMax) {
    const RemoteStore::Part part = filling->left.front();
    filling->left.pop_front();
    if (cache.AllPresent(*part.file, part.range)) {
      continue;
    }
    // Keeps the count above 0 while parts of the part are begun.
    ++filling->in_flight;
    fetcher.Fetch(
        part.file, part.range, /*may_hedge=*/false, [&](ChunkRange /*range*/) {
          ++filling->in_flight;
          return ChunkWaiter{
              .done = [&fetcher, &cache, filling](ChunkWaiter::Outcome /*how*/,
                                                  const absl::Status& status) {
                filling->status.Update(status);
                --filling->in_flight;
                ContinueFilling(fetcher, cache, filling);
              }};
        });
    --filling->in_flight;
  }
  if (filling->in_flight == 0 &&
      (filling->left.empty() || !filling->status.ok())) {
    filling->completion.End(filling->status);
  }
}

absl::Status CheckCaFile(const std::string& path) {
  if (path.empty()) {
    return absl::OkStatus();
  }
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> certificates(
      X509_STORE_new(), &X509_STORE_free);
  const bool is_good =
      certificates != nullptr &&
      X509_STORE_load_file(certificates.get(), path.c_str()) == 1;
  ERR_clear_error();
  return is_good ? absl::OkStatus()
                 : absl::InvalidArgumentError(absl::StrCat(
                       "--store-ca: ", path,
                       ": cannot be read, or has no certificates; expected a "
                       "PEM file of certificates"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteStore>> RemoteStore::Open(
    const RemoteStoreOptions& options, DeviceEngine engine, Report report) {
  if (options.requests_max == 0 || options.requests_max > kStoreRequestsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--store-requests must be 1 to ", kStoreRequestsMax,
                     ", got ", options.requests_max));
  }
  QUIRE_RETURN_IF_ERROR(CheckCaFile(options.ca_file));
  std::unique_ptr<RemoteStore> store(new RemoteStore(options, engine));
  QUIRE_ASSIGN_OR_RETURN(
      store->cache_,
      ChunkCache::Open({.directory = options.cache_directory,
                        .size_bytes_max = options.cache_size_bytes,
                        .chunk_size_bytes = options.chunk_size_bytes,
                        .is_trial = options.is_trial}));
  QUIRE_RETURN_IF_ERROR(ReadCredentialSettings().status());
  QUIRE_ASSIGN_OR_RETURN(
      store->loop_,
      TransferLoop::Start({.connections_max = options.requests_max,
                           .ca_file = options.ca_file}));
  QUIRE_ASSIGN_OR_RETURN(
      store->credentials_,
      CredentialKeeper::Start(
          {.find =
               [region = options.region](const std::atomic<bool>& cancel) {
                 return FindStoreCredentials(region, cancel);
               },
           .notice = options.notice}));
  store->reader_ = std::make_unique<ObjectReader>(
      ObjectReader::Options{.requests_max = options.requests_max,
                            .region = options.region},
      *store->credentials_, *store->loop_);
  store->fetcher_ = std::make_unique<ChunkFetcher>(
      *store->cache_, *store->reader_, std::move(report));
  return store;
}

RemoteStore::~RemoteStore() {
  if (reader_ != nullptr) {
    // It posts to the loop.
    credentials_->Stop();
    // GETs of openings that were cancelled. The stop is due at once.
    Completion stopped;
    loop_->Post([this, &stopped] {
      reader_->StopNow();
      stopped.End(absl::OkStatus());
    });
    (void)stopped.Wait(nullptr);
  }
  loop_.reset();
}

uint64_t RemoteStore::MemoryBytes(const RemoteStoreOptions& options) {
  return kFixedMemoryBytes + options.object_memory_bytes +
         options.requests_max * TransferLoop::kTransferMemoryBytes;
}

absl::StatusOr<std::shared_ptr<void>> RemoteStore::TakeTurn(
    const std::atomic<bool>* cancel) {
  MutexLock lock(&large_->mutex);
  while (large_->is_taken) {
    if (cancel != nullptr && *cancel) {
      return absl::CancelledError("reading from the store was cancelled");
    }
    large_->changed.WaitFor(&large_->mutex, kCancelInterval);
  }
  large_->is_taken = true;
  return std::shared_ptr<void>(nullptr, [large = large_](void* /*none*/) {
    {
      MutexLock end_lock(&large->mutex);
      large->is_taken = false;
    }
    large->changed.NotifyOne();
  });
}

absl::StatusOr<std::optional<RemoteStore::Object>> RemoteStore::ReadObject(
    const std::shared_ptr<const StoreAddress>& address,
    const std::string& object, const std::string& none_match,
    uint64_t size_bytes_max, const std::atomic<bool>* cancel) {
  const uint64_t large_max = std::min(
      size_bytes_max, options_.object_memory_bytes / kMemoryPerObjectByte);
  absl::StatusOr<std::optional<Object>> read =
      ReadOnce(address, object, none_match,
               std::min(large_max, kSmallObjectBytesMax), cancel);
  if (absl::IsResourceExhausted(read.status()) &&
      large_max > kSmallObjectBytesMax) {
    QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<void> turn, TakeTurn(cancel));
    read = ReadOnce(address, object, none_match, large_max, cancel);
    if (read.ok() && read->has_value()) {
      (*read)->turn = std::move(turn);
    }
  }
  if (!absl::IsResourceExhausted(read.status())) {
    return read;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      read.status().message(),
      large_max < size_bytes_max
          ? ", which is what --memory leaves for it; restart with more --memory"
          : ""));
}

absl::StatusOr<std::optional<RemoteStore::Object>> RemoteStore::ReadOnce(
    const std::shared_ptr<const StoreAddress>& address,
    const std::string& object, const std::string& none_match,
    uint64_t size_bytes_max, const std::atomic<bool>* cancel) {
  struct Reading {
    Object object;
    bool is_not_modified = false;
    Completion completion;
  };

  const auto reading = std::make_shared<Reading>();
  ObjectGet get;
  get.address = address;
  get.object = object;
  get.none_match = none_match;
  get.wanted.size_bytes_max = size_bytes_max;
  get.on_body = [reading](uint64_t offset, ByteView bytes) {
    // A repeated request begins at 0 again.
    reading->object.bytes.resize(offset);
    reading->object.bytes.append(AsText(bytes).data(), bytes.size());
  };
  get.on_end = [reading](const ObjectGet::End& end) {
    reading->object.etag = end.etag;
    reading->is_not_modified = end.is_not_modified;
    reading->completion.End(end.status);
  };
  loop_->Post([this, get]() mutable { reader_->Start(std::move(get)); });
  QUIRE_RETURN_IF_ERROR(reading->completion.Wait(cancel));
  if (reading->is_not_modified) {
    return std::optional<Object>();
  }
  return std::optional<Object>(std::move(reading->object));
}

absl::Status RemoteStore::FillChunks(const std::vector<Part>& parts,
                                     const std::atomic<bool>* cancel) {
  const auto filling = std::make_shared<Filling>();
  const uint64_t count_max =
      std::max<uint64_t>(1, kFillBytesMax / options_.chunk_size_bytes);
  for (const Part& part : parts) {
    for (uint64_t chunk = part.range.first; chunk < part.range.end();
         chunk += count_max) {
      filling->left.push_back(
          {.file = part.file,
           .range = {.first = chunk,
                     .count = std::min(count_max, part.range.end() - chunk)}});
    }
  }
  loop_->Post(
      [this, filling] { ContinueFilling(*fetcher_, *cache_, filling); });
  absl::Status status = filling->completion.Wait(cancel);
  filling->is_abandoned = true;
  return status;
}

absl::Status RemoteStore::FillMissing(const CachedFilePtr& file,
                                      ChunkRange range,
                                      const std::atomic<bool>* cancel) {
  // Not those that are present: a failed GET would drop them.
  std::vector<Part> parts;
  for (const ChunkRun& run : cache_->PinRuns(*file, range)) {
    if (run.is_present) {
      cache_->Unpin(*file, run.range);
    } else {
      parts.push_back({.file = file, .range = run.range});
    }
  }
  return FillChunks(parts, cancel);
}

std::optional<absl::StatusOr<size_t>> RemoteStore::ReadAt(
    int fd, uint64_t offset, MutableByteView out,
    const std::atomic<bool>* cancel) {
  const CachedFilePtr file = cache_->FindFile(fd);
  if (file == nullptr || file->address == nullptr) {
    return std::nullopt;
  }
  const uint64_t size_bytes = file->map.size_bytes();
  if (offset >= size_bytes || out.empty()) {
    return size_t{0};
  }
  out = out.first(std::min<uint64_t>(out.size(), size_bytes - offset));
  const ChunkRange range = file->map.Covering(offset, out.size());
  // The next reads are mostly those of the next bytes. In a small cache they
  // would displace each other.
  const uint64_t ahead_bytes =
      std::min(kFillBytesMax, options_.cache_size_bytes / kReadsAheadMin);
  const ChunkRange ahead = file->map.Covering(
      offset, std::max<uint64_t>(out.size(),
                                 std::min(ahead_bytes, size_bytes - offset)));
  for (int tries = 1; !cache_->PinAll(*file, range); ++tries) {
    absl::Status status = FillMissing(file, ahead, cancel);
    if (absl::IsResourceExhausted(status)) {
      status = FillMissing(file, range, cancel);
    }
    if (absl::IsNotFound(status)) {
      return absl::DataLossError(status.message());
    }
    if (absl::IsResourceExhausted(status) || tries == kEvictedReadsMax) {
      return absl::UnavailableError(absl::StrCat(
          file->path,
          ": the cache has no space for chunks that are read; give "
          "--store-cache more, or free space on its disk"));
    }
    QUIRE_RETURN_IF_ERROR(status);
  }
  const ssize_t size =
      pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
  const int error = errno;
  cache_->Unpin(*file, range);
  if (size < 0) {
    return absl::UnavailableError(
        absl::StrCat(file->path, ": cannot read the local copy: ",
                     std::generic_category().message(error)));
  }
  return static_cast<size_t>(size);
}

std::optional<FilePlacement> RemoteStore::Place(int fd) {
  CachedFilePtr file = cache_->FindFile(fd);
  if (file == nullptr || file->address == nullptr) {
    return std::nullopt;
  }
  FilePlacement placement;
  placement.place.drive = {.name = file->address->drive,
                           .kind = DriveKind::kObjectStore};
  placement.note = "it is in an object store";
  placement.registration =
      RemoteFileTable::Register(files_, fd, std::move(file));
  return placement;
}

DeviceFactory RemoteStore::DeviceOpener() {
  return [this](Device::Done done) {
    return StoreDevice::Open(
        {.loop = *loop_,
         .cache = *cache_,
         .fetcher = *fetcher_,
         .files = files_},
        [this](Device::Done local_done) {
          return OpenDevice(engine_, options_.requests_max,
                            std::move(local_done));
        },
        std::move(done));
  };
}

absl::Status RemoteStore::ReloadCredentials() {
  QUIRE_RETURN_IF_ERROR(ReadCredentialSettings().status());
  return credentials_->Reload(kReloadTimeMax);
}

RemoteStore::Stats RemoteStore::GetStats() const {
  return {.requests = reader_->GetStats(),
          .cache = cache_->GetStats(),
          .credential_failures = credentials_->failure_count()};
}

}  // namespace quire
