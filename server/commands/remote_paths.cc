// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/remote_paths.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/unique_fd.h"
#include "server/archive/files/small_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/storage/remote/answer_head.h"
#include "server/storage/remote/bucket_writer.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

// Local copies without --store-cache.
constexpr uint64_t kCacheSizeBytesDefault = 4 * kGiB;
constexpr char kDirectoryPrefix[] = "quire-store-";
// Ends the process that removes the directory at a signal.
constexpr int kStopSignal = SIGUSR2;
// An archive may be replaced while it is opened.
constexpr int kOpeningsMax = 3;

std::atomic<RemotePaths*> current = nullptr;

// Removes directories whose process has ended: the lock of their cache is free.
void RemoveLeftovers(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!absl::StartsWith(entry->path().filename().string(),
                          kDirectoryPrefix)) {
      continue;
    }
    const UniqueFd lock(open((entry->path() / "LOCK").c_str(),
                             O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (lock.is_open() && flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
  }
}

}  // namespace

void AddStoreReadOptions(CLI::App& subcommand, StoreArguments& arguments) {
  AddStoreOptions(subcommand, arguments,
                  "Directory for a temporary copy of a URL, and its limit; "
                  "default: TMPDIR, 4GiB");
}

RemotePaths::RemotePaths(StoreArguments arguments,
                         const std::atomic<bool>* cancel)
    : arguments_(std::move(arguments)), cancel_(cancel) {}

RemotePaths::~RemotePaths() {
  if (directory_.empty()) {
    return;
  }
  SetFileReads(nullptr);
  archives_.reset();
  if (watcher_.joinable()) {
    stopping_ = true;
    pthread_kill(watcher_.native_handle(), kStopSignal);
    watcher_.join();
  }
  RemoveDirectory();
  current = nullptr;
}

absl::Status RemotePaths::MakeDirectory(const std::string& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  RemoveLeftovers(parent);
  std::string path = absl::StrCat(parent, "/", kDirectoryPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, parent, "create a directory in it");
  }
  directory_ = path;
  return absl::OkStatus();
}

absl::Status RemotePaths::Start() {
  if (archives_ != nullptr) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(options_, MakeStoreOptions(arguments_));
  if (options_.cache_directory.empty()) {
    std::error_code error;
    options_.cache_directory = fs::temp_directory_path(error).string();
    options_.cache_size_bytes = kCacheSizeBytesDefault;
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("TMPDIR must name a directory for the copy of a URL, or "
                       "give --store-cache: ",
                       error.message()));
    }
  }
  QUIRE_RETURN_IF_ERROR(MakeDirectory(options_.cache_directory));
  options_.cache_directory = directory_;
  QUIRE_CHECK(current.exchange(this) == nullptr, "two at a time");
  if (cancel_ == nullptr) {
    WatchSignals();
  }
  QUIRE_ASSIGN_OR_RETURN(
      archives_, RemoteArchives::Open(options_, DeviceEngine::kPread, nullptr));
  SetFileReads(this);
  return absl::OkStatus();
}

absl::StatusOr<std::string> RemotePaths::OpenArchive(const std::string& path) {
  if (!IsStoreUrl(path)) {
    return path;
  }
  QUIRE_RETURN_IF_ERROR(Start());
  ArchiveArgument argument;
  argument.name = "archive";
  argument.url = path;
  QUIRE_RETURN_IF_ERROR(RemoteArchives::SetPath(options_, argument));
  opened_.emplace_back(argument.path, path);
  absl::Status status;
  for (int i = 0; i < kOpeningsMax; ++i) {
    QUIRE_RETURN_IF_ERROR(
        archives_->PrepareOutline(argument, cancel_, MayBeStale::kNo));
    status = archives_->PrepareIndexes(argument, cancel_);
    if (!absl::IsAborted(status) && !absl::IsNotFound(status)) {
      break;
    }
  }
  if (absl::IsNotFound(status)) {
    return absl::DataLossError(status.message());
  }
  QUIRE_RETURN_IF_ERROR(status);
  return argument.path;
}

absl::StatusOr<std::string> RemotePaths::OpenInput(const std::string& path) {
  if (!IsStoreUrl(path)) {
    return path;
  }
  QUIRE_RETURN_IF_ERROR(Start());
  QUIRE_ASSIGN_OR_RETURN(
      StoreAddress parsed,
      ParseStoreAddress(path, options_.endpoint, options_.region,
                        /*may_be_part=*/false));
  const auto address = std::make_shared<const StoreAddress>(std::move(parsed));
  if (client_ == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(client_,
                           BucketClient::Open({.region = options_.region,
                                               .ca_file = options_.ca_file,
                                               .cancel = cancel_}));
  }
  absl::StatusOr<std::optional<BucketWriter::Found>> found =
      std::optional<BucketWriter::Found>();
  if (address->is_s3 || !absl::EndsWith(address->url, ".quire")) {
    found = BucketWriter(*client_, *address).Find("");
    // A store that may not list calls missing objects forbidden.
    if (!found.ok() && !absl::IsPermissionDenied(found.status())) {
      return found.status();
    }
  }
  if (!found.ok() || !found->has_value()) {
    absl::StatusOr<std::string> archive = OpenArchive(path);
    if (absl::IsNotFound(archive.status())) {
      return absl::NotFoundError(
          absl::StrCat(path, ": is neither an object nor an archive"));
    }
    return archive.ok() || found.ok() ? archive : found.status();
  }
  // A document without a container is named after its file.
  const std::string directory =
      absl::StrFormat("%s/input-%d", directory_, opened_.size());
  const std::string local = absl::StrCat(
      directory, "/", address->url.substr(address->url.rfind('/') + 1));
  ChunkCache& cache = archives_->store().cache();
  QUIRE_RETURN_IF_ERROR(cache.MakeDirectory(directory));
  QUIRE_ASSIGN_OR_RETURN(
      const CachedFilePtr file,
      cache.OpenFile(local, (*found)->size_bytes, (*found)->size_bytes));
  file->address = address;
  file->etag = (*found)->etag;
  opened_.emplace_back(local, path);
  const std::optional<absl::Time> time = ParseHttpTime((*found)->last_modified);
  if (time.has_value()) {
    modified_[local] = absl::ToUnixMillis(*time);
  } else {
    std::cerr << "warning: " << PrintableMessage(path)
              << ": the store answered Last-Modified "
              << QuotedText((*found)->last_modified)
              << ", expected a time: a document without a time of its own gets "
                 "none\n";
    modified_[local] = std::nullopt;
  }
  return local;
}

std::string RemotePaths::ManifestTag(const std::string& local_path) {
  const auto tags = ReadSmallFile(absl::StrCat(local_path, "/ETAGS"),
                                  kManifestFileSizeBytesMax);
  return tags.ok() ? ParseObjectTags(*tags)[kManifestFileName] : "";
}

std::optional<FileTime> RemotePaths::ModifiedTime(int fd) {
  const CachedFilePtr file = archives_->store().cache().FindFile(fd);
  if (file == nullptr) {
    return std::nullopt;
  }
  const auto found = modified_.find(file->path);
  return found == modified_.end() ? std::nullopt
                                  : std::optional(FileTime{found->second});
}

std::optional<absl::StatusOr<size_t>> RemotePaths::ReadAt(int fd,
                                                          uint64_t offset,
                                                          MutableByteView out) {
  // A store that has failed after all retries is not asked for each block.
  if (absl::Status failed = failure(); absl::IsUnavailable(failed)) {
    return archives_->store().cache().FindFile(fd) == nullptr
               ? std::optional<absl::StatusOr<size_t>>()
               : failed;
  }
  auto read = archives_->store().ReadAt(fd, offset, out, cancel_);
  if (read.has_value() && !read->ok()) {
    MutexLock lock(&mutex_);
    failure_.Update(read->status());
  }
  return read;
}

absl::Status RemotePaths::failure() const {
  MutexLock lock(&mutex_);
  return failure_;
}

std::string RemotePaths::WithUrls(absl::string_view message) {
  const RemotePaths* const paths = current;
  return paths == nullptr ? std::string(message)
                          : absl::StrReplaceAll(message, paths->opened_);
}

void RemotePaths::RemoveDirectories() {
  if (const RemotePaths* const paths = current; paths != nullptr) {
    paths->RemoveDirectory();
  }
}

void RemotePaths::RemoveDirectory() const {
  // Threads may still write there when a signal ends the process.
  for (int tries = 0; tries < 3; ++tries) {
    std::error_code error;
    fs::remove_all(directory_, error);
    if (!error) {
      return;
    }
  }
}

void RemotePaths::WatchSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, kStopSignal);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    // Keep ignoring a hang-up under nohup.
    if (sigaction(each, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN) {
      sigaddset(&signals, each);
    }
  }
  // All threads of this process begin later, and block them too.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this, signals] {
    int taken = 0;
    if (sigwait(&signals, &taken) != 0 || stopping_ || taken == kStopSignal) {
      return;
    }
    RemoveDirectory();
    signal(taken, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    raise(taken);
  });
}

}  // namespace quire
