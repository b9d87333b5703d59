// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/chunk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/storage/device/device.h"

namespace quire {
namespace {

constexpr uint32_t kPageSizeBytes = 4096;
constexpr uint32_t kChunkSizeBytesMax = 16 << 20;
// The disk is tried again after this.
constexpr std::chrono::seconds kDiskRetryInterval{10};

absl::Status FileError(absl::string_view path, absl::string_view action) {
  return absl::UnavailableError(
      absl::StrCat(path, ": cannot ", action, ": ", ErrorText(errno)));
}

absl::Status WriteAll(int fd, uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return absl::UnavailableError(ErrorText(errno));
    }
    const auto count = static_cast<size_t>(std::max<ssize_t>(written, 0));
    offset += count;
    bytes = bytes.subspan(count);
  }
  return absl::OkStatus();
}

// True for a regular file of this owner that has no other name: writing to it
// changes no file of another owner.
bool IsOwnFile(const struct stat& status, uid_t owner) {
  return S_ISREG(status.st_mode) && status.st_uid == owner &&
         status.st_nlink == 1;
}

// Checks in a file of its own that chunks can be punched out, and are then
// reported as missing. Returns the owner that new files get there: not on every
// file system it is the user of this process.
absl::StatusOr<uid_t> CheckHoles(const std::string& directory) {
  std::string path = absl::StrCat(directory, "/holes-XXXXXX");
  const UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.is_open()) {
    return FileError(directory, "create a file in it");
  }
  unlink(path.c_str());

  struct stat created {};

  if (fstat(fd.get(), &created) != 0) {
    return FileError(directory, "examine a file in it");
  }
  constexpr uint32_t kChunk = 16 * kPageSizeBytes;
  constexpr uint64_t kFileSizeBytes = uint64_t{3} * kChunk;
  ChunkMap map(kFileSizeBytes, kChunk, 3);
  const std::vector<uint8_t> bytes(kFileSizeBytes, 1);
  if (!WriteAll(fd.get(), 0, bytes).ok()) {
    return FileError(directory, "write to it");
  }
  absl::Status status = PunchChunks(fd.get(), map, {.first = 1, .count = 1});
  if (status.ok()) {
    status = FindPresentChunks(fd.get(), map);
  }
  if (!status.ok() || map.IsPresent(1) || !map.IsPresent(0) ||
      !map.IsPresent(2)) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory,
                     ": its file system does not support holes in files, which "
                     "--store-cache needs; choose a directory on ext4, xfs, "
                     "btrfs or tmpfs"));
  }
  return created.st_uid;
}

}  // namespace

std::unique_ptr<const MapMemory::Share> MapMemory::Take(
    const std::shared_ptr<MapMemory>& memory, uint64_t bytes) {
  uint64_t used_bytes = memory->used_bytes_;
  do {
    const uint64_t bytes_max = memory->bytes_max_;
    if (bytes > bytes_max - std::min(bytes_max, used_bytes)) {
      return nullptr;
    }
  } while (!memory->used_bytes_.compare_exchange_weak(used_bytes,
                                                      used_bytes + bytes));
  return std::make_unique<const Share>(memory, bytes);
}

absl::StatusOr<std::unique_ptr<ChunkCache>> ChunkCache::Open(
    const Options& options) {
  if (options.chunk_size_bytes == 0 ||
      options.chunk_size_bytes % kPageSizeBytes != 0 ||
      options.chunk_size_bytes > kChunkSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--store-chunk must be a multiple of 4KiB up to 16MiB, got ",
        FormatByteSizeExact(options.chunk_size_bytes)));
  }
  std::unique_ptr<ChunkCache> cache(new ChunkCache(options));
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.directory, ": cannot be created: ", error.message(),
        "; correct --store-cache"));
  }
  QUIRE_ASSIGN_OR_RETURN(cache->file_owner_, CheckHoles(options.directory));
  cache->directory_ = options.directory;
  if (options.is_trial) {
    std::string path = absl::StrCat(options.directory, "/trial-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return FileError(options.directory, "create a directory in it");
    }
    cache->directory_ = path;
  } else {
    const std::string path = absl::StrCat(options.directory, "/LOCK");
    cache->lock_ = UniqueFd(
        open(path.c_str(),
             O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));

    struct stat status {};

    if (!cache->lock_.is_open() || fstat(cache->lock_.get(), &status) != 0) {
      return FileError(path, "open");
    }
    if (!IsOwnFile(status, cache->file_owner_)) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          ": is not a file of this user alone; remove it, or choose "
          "another directory with --store-cache"));
    }
    if (flock(cache->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(options.directory,
                       ": another process uses this cache; give each server "
                       "its own directory with --store-cache"));
    }
  }
  MutexLock lock(&cache->mutex_);
  cache->stats_.size_bytes_max = options.size_bytes_max;
  return cache;
}

ChunkCache::~ChunkCache() {
  if (options_.is_trial && directory_ != options_.directory) {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
}

absl::Status ChunkCache::MakeDirectory(const std::string& path) const {
  struct stat status {};

  if ((mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) ||
      lstat(path.c_str(), &status) != 0) {
    return FileError(path, "create");
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != file_owner_) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": is not a directory of this user; remove it, or choose another "
        "directory with --store-cache"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CachedFilePtr> ChunkCache::OpenFile(const std::string& path,
                                                   uint64_t size_bytes,
                                                   const KeptParts& kept) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));

  struct stat status {};

  if (fd.is_open() && fstat(fd.get(), &status) != 0) {
    return FileError(path, "examine");
  }
  if (!fd.is_open() || !IsOwnFile(status, file_owner_) ||
      static_cast<uint64_t>(status.st_size) != size_bytes) {
    const std::string aside = absl::StrCat(path, ".new");
    // Of a killed server. Any other file fails the exclusive creation.
    unlink(aside.c_str());
    fd = UniqueFd(open(aside.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600));
    if (!fd.is_open() ||
        ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0 ||
        fstat(fd.get(), &status) != 0) {
      return FileError(aside, "create");
    }
    if (rename(aside.c_str(), path.c_str()) != 0) {
      return FileError(path, "rename a file to it");
    }
  }
  {
    MutexLock lock(&mutex_);
    for (const CachedFilePtr& known : files_) {
      if (known->device == status.st_dev && known->inode == status.st_ino) {
        return known;
      }
    }
  }
  const uint64_t map_bytes =
      ChunkMap::MemoryBytes(size_bytes, options_.chunk_size_bytes);
  std::unique_ptr<const MapMemory::Share> share =
      MapMemory::Take(maps_, map_bytes);
  if (share == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": its chunk map needs ", FormatByteSize(map_bytes),
                     " of memory, and those of all local copies can have ",
                     FormatByteSize(maps_->bytes_max()),
                     "; raise --memory or --store-chunk"));
  }
  const uint64_t chunk_size_bytes = options_.chunk_size_bytes;
  const uint64_t hole_first =
      (kept.hole_begin + chunk_size_bytes - 1) / chunk_size_bytes;
  const uint64_t hole_end = kept.hole_end / chunk_size_bytes;
  ChunkMap map(size_bytes, options_.chunk_size_bytes,
               kept.from / chunk_size_bytes,
               {.first = hole_first,
                .count = hole_end - std::min(hole_first, hole_end)});
  if (absl::Status found = FindPresentChunks(fd.get(), map); !found.ok()) {
    return absl::Status(found.code(),
                        absl::StrCat(path, ": ", found.message()));
  }
  auto file = std::make_shared<CachedFile>(path, std::move(fd), std::move(map),
                                           std::move(share));
  file->device = status.st_dev;
  file->inode = status.st_ino;
  uint64_t present_bytes = 0;
  for (const ChunkRun& run :
       file->map.Runs({.first = 0, .count = file->map.count()})) {
    present_bytes += run.is_present ? file->map.SpaceOf(run.range) : 0;
  }
  MutexLock lock(&mutex_);
  stats_.used_bytes += present_bytes;
  files_.push_back(file);
  return file;
}

CachedFilePtr ChunkCache::FindFile(int fd) const {
  struct stat status {};

  if (fstat(fd, &status) != 0) {
    return nullptr;
  }
  MutexLock lock(&mutex_);
  for (const CachedFilePtr& file : files_) {
    if (file->device == status.st_dev && file->inode == status.st_ino) {
      return file;
    }
  }
  return nullptr;
}

std::vector<CachedFilePtr> ChunkCache::FilesBelow(
    const std::string& directory) const {
  const std::string prefix = absl::StrCat(directory, "/");
  std::vector<CachedFilePtr> found;
  MutexLock lock(&mutex_);
  for (const CachedFilePtr& file : files_) {
    if (absl::StartsWith(file->path, prefix)) {
      found.push_back(file);
    }
  }
  return found;
}

void ChunkCache::AddOtherBytes(int64_t bytes) {
  MutexLock lock(&mutex_);
  stats_.used_bytes += static_cast<uint64_t>(bytes);
}

void ChunkCache::Retire(const CachedFilePtr& file) {
  std::vector<ChunkRange> idle;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(file->is_retired, true)) {
      return;
    }
    std::erase(files_, file);
    hand_file_ = 0;
    hand_chunk_ = 0;
    // Chunks that are read or written now are freed with the file.
    uint64_t allocated_bytes = 0;
    for (uint64_t chunk = 0; chunk < file->map.count(); ++chunk) {
      if (!file->map.IsAllocated(chunk)) {
        continue;
      }
      const ChunkRange one = {.first = chunk, .count = 1};
      allocated_bytes += file->map.SpaceOf(one);
      if (!file->map.IsIdle(chunk)) {
        continue;
      }
      file->map.Drop(one);
      if (!idle.empty() && idle.back().end() == chunk) {
        ++idle.back().count;
      } else {
        idle.push_back(one);
      }
    }
    stats_.used_bytes -= allocated_bytes;
  }
  for (const ChunkRange& range : idle) {
    // A failure leaves bytes until the file is closed.
    (void)PunchChunks(file->fd.get(), file->map, range);
  }
}

bool ChunkCache::PinAll(CachedFile& file, ChunkRange range) {
  MutexLock lock(&mutex_);
  if (!file.map.AllPresent(range)) {
    return false;
  }
  file.map.Pin(range);
  stats_.hit_chunks += range.count;
  return true;
}

std::vector<ChunkRun> ChunkCache::PinRuns(CachedFile& file, ChunkRange range) {
  MutexLock lock(&mutex_);
  std::vector<ChunkRun> runs = file.map.Runs(range);
  for (const ChunkRun& run : runs) {
    if (run.is_present) {
      file.map.Pin(run.range);
      stats_.hit_chunks += run.range.count;
    } else {
      stats_.missed_chunks += run.range.count;
    }
  }
  return runs;
}

void ChunkCache::Unpin(CachedFile& file, ChunkRange range) {
  MutexLock lock(&mutex_);
  file.map.Unpin(range);
}

void ChunkCache::Invalidate(CachedFile& file, ChunkRange range) {
  MutexLock lock(&mutex_);
  for (const ChunkRun& run : file.map.Runs(range)) {
    stats_.invalidated_chunks += run.is_present ? run.range.count : 0;
  }
  file.map.Invalidate(range);
}

bool ChunkCache::AllPresent(CachedFile& file, ChunkRange range) const {
  MutexLock lock(&mutex_);
  return file.map.AllPresent(range);
}

bool ChunkCache::IsEmpty(const CachedFile& file) const {
  MutexLock lock(&mutex_);
  return file.map.IsEmpty();
}

std::optional<ChunkCache::Victim> ChunkCache::TakeVictim() {
  // The first turn clears marks of use, the second finds a chunk if any can be
  // evicted; the file of the hand may be passed in two parts.
  for (size_t passed = 0; passed < 2 * files_.size() + 1; ++passed) {
    if (hand_file_ >= files_.size()) {
      hand_file_ = 0;
    }
    const CachedFilePtr& file = files_[hand_file_];
    const std::optional<uint64_t> chunk = file->map.NextVictim(hand_chunk_);
    if (chunk.has_value()) {
      hand_chunk_ = *chunk + 1;
      const ChunkRange one = {.first = *chunk, .count = 1};
      // No read may pin it any more.
      file->map.Invalidate(one);
      file->map.BeginWrite(one);
      return Victim{.file = file, .chunk = *chunk};
    }
    ++hand_file_;
    hand_chunk_ = 0;
  }
  return std::nullopt;
}

absl::Status ChunkCache::Reserve(CachedFile& file, ChunkRange range) {
  while (true) {
    std::optional<Victim> victim;
    {
      MutexLock lock(&mutex_);
      const uint64_t needed_bytes = file.map.UnallocatedBytes(range);
      const bool fits =
          stats_.used_bytes + needed_bytes <= stats_.size_bytes_max;
      if (file.is_retired || std::chrono::steady_clock::now() < retry_at_) {
        ++stats_.uncached_gets;
        return file.is_retired ? absl::UnavailableError(absl::StrCat(
                                     file.path, ": the local copy was removed"))
                               : disk_error_;
      }
      if (fits) {
        stats_.used_bytes += needed_bytes;
        file.map.BeginWrite(range);
        return absl::OkStatus();
      }
      victim = files_.empty() ? std::nullopt : TakeVictim();
      if (!victim.has_value()) {
        ++stats_.uncached_gets;
        return absl::ResourceExhaustedError(
            "the cache of --store-cache has no space");
      }
      ++stats_.evicted_chunks;
    }
    DropChunks(*victim->file, {.first = victim->chunk, .count = 1});
  }
}

absl::Status ChunkCache::Write(CachedFile& file, uint64_t offset,
                               ByteView bytes) {
  absl::Status status = WriteAll(file.fd.get(), offset, bytes);
  if (!status.ok()) {
    status = absl::UnavailableError(absl::StrCat(
        file.path, ": cannot be written: ", status.message(),
        "; free space on the disk of --store-cache, or replace it"));
    MutexLock lock(&mutex_);
    ++stats_.uncached_gets;
    disk_error_ = status;
    retry_at_ = std::chrono::steady_clock::now() + kDiskRetryInterval;
  }
  return status;
}

void ChunkCache::Commit(CachedFile& file, ChunkRange range) {
  MutexLock lock(&mutex_);
  file.map.EndWrite(range);
}

void ChunkCache::Abandon(CachedFile& file, ChunkRange range) {
  DropChunks(file, range);
}

// Punches first: space counts as free only when it is.
void ChunkCache::DropChunks(CachedFile& file, ChunkRange range) {
  (void)PunchChunks(file.fd.get(), file.map, range);
  MutexLock lock(&mutex_);
  const uint64_t free_bytes = file.map.UnallocatedBytes(range);
  file.map.Drop(range);
  if (!file.is_retired) {
    stats_.used_bytes -= file.map.SpaceOf(range) - free_bytes;
  }
}

ChunkCache::Stats ChunkCache::GetStats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace quire
