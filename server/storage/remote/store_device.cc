// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/store_device.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {

class RemoteFileTable::Registration {
 public:
  Registration(std::shared_ptr<RemoteFileTable> table, int fd,
               const CachedFile* file)
      : table_(std::move(table)), fd_(fd), file_(file) {}

  ~Registration() { table_->Remove(fd_, file_); }

  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  const std::shared_ptr<RemoteFileTable> table_;
  const int fd_;
  const CachedFile* const file_;
};

std::shared_ptr<const RemoteFileTable::Registration> RemoteFileTable::Register(
    const std::shared_ptr<RemoteFileTable>& table, int fd, CachedFilePtr file) {
  const CachedFile* registered = file.get();
  {
    MutexLock lock(&table->mutex_);
    table->files_[fd] = std::move(file);
  }
  return std::make_shared<const Registration>(table, fd, registered);
}

CachedFilePtr RemoteFileTable::Find(int fd) const {
  MutexLock lock(&mutex_);
  const auto found = files_.find(fd);
  return found == files_.end() ? nullptr : found->second;
}

void RemoteFileTable::Remove(int fd, const CachedFile* file) {
  CachedFilePtr removed;
  MutexLock lock(&mutex_);
  const auto found = files_.find(fd);
  // The descriptor may be another file's by now.
  if (found != files_.end() && found->second.get() == file) {
    removed = std::move(found->second);
    files_.erase(found);
  }
}

// A read that is put together from several parts.
struct StoreDevice::Gather {
  DeviceRead read;
  CachedFilePtr file;
  // The loop's thread alone uses the rest. Parts in flight, and one more while
  // parts are being started.
  size_t open_part_count = 1;
  // The first failed part, as an offset in the file; the end of the read if
  // none failed.
  uint64_t good_end = 0;
  absl::Status status;

  uint64_t start() const { return read.offset.value; }

  uint64_t end() const { return start() + read.buffer.size(); }
};

absl::StatusOr<OpenedDevice> StoreDevice::Open(const Parts& parts,
                                               const DeviceFactory& open_local,
                                               Done done) {
  std::unique_ptr<StoreDevice> device(new StoreDevice(parts, std::move(done)));
  QUIRE_ASSIGN_OR_RETURN(
      OpenedDevice local,
      open_local([d = device.get()](std::span<DeviceResult> results) {
        d->OnLocalResults(results);
      }));
  device->local_ = std::move(local.device);
  return OpenedDevice{.device = std::move(device), .note = local.note};
}

StoreDevice::~StoreDevice() {
  {
    MutexLock lock(&mutex_);
    while (read_count_ > 0) {
      all_ended_.Wait(&mutex_);
    }
  }
  local_.reset();
}

void StoreDevice::Submit(std::span<const DeviceRead> reads) {
  std::vector<DeviceRead> local;
  {
    MutexLock lock(&mutex_);
    read_count_ += reads.size();
  }
  for (const DeviceRead& read : reads) {
    CachedFilePtr file = parts_.files->Find(read.fd);
    if (file == nullptr ||
        read.offset.value + read.buffer.size() > file->map.size_bytes()) {
      parts_.loop.Post([this, read] {
        DeviceResult result = {.id = read.id,
                               .status = EndOfFileStatus(read, 0)};
        done_({&result, 1});
        NoteDelivered(1);
      });
      continue;
    }
    const ChunkRange range =
        file->map.Covering(read.offset.value, read.buffer.size());
    if (parts_.cache.PinAll(*file, range)) {
      local.push_back(
          NoteLocal({.file = std::move(file), .range = range, .read = read}));
      continue;
    }
    auto gather = std::make_shared<Gather>();
    gather->read = read;
    gather->file = std::move(file);
    parts_.loop.Post([this, gather] { Begin(gather); });
  }
  if (!local.empty()) {
    local_->Submit(local);
  }
}

DeviceRead StoreDevice::NoteLocal(const LocalRead& local) {
  DeviceRead read = local.read;
  MutexLock lock(&mutex_);
  read.id = next_local_id_++;
  local_reads_.emplace(read.id, local);
  return read;
}

void StoreDevice::Begin(const std::shared_ptr<Gather>& gather) {
  gather->good_end = gather->end();
  BeginPart(gather, gather->file->map.Covering(gather->start(),
                                               gather->read.buffer.size()));
  EndPart(gather, gather->end(), absl::OkStatus());
}

void StoreDevice::BeginPart(const std::shared_ptr<Gather>& gather,
                            ChunkRange range) {
  const ChunkMap& map = gather->file->map;
  // The part of the caller's buffer for chunks.
  const auto part_of = [&](ChunkRange chunks) {
    const uint64_t from = std::max(gather->start(), map.StartOf(chunks.first));
    const uint64_t to = std::min(gather->end(), map.StartOf(chunks.end()));
    return std::pair(
        from, gather->read.buffer.subspan(from - gather->start(), to - from));
  };
  for (const ChunkRun& run : parts_.cache.PinRuns(*gather->file, range)) {
    if (run.is_present) {
      ++gather->open_part_count;
      const auto [offset, buffer] = part_of(run.range);
      DeviceRead read = gather->read;
      read.offset = FileOffset{offset};
      read.buffer = buffer;
      const DeviceRead local = NoteLocal({.file = gather->file,
                                          .range = run.range,
                                          .read = read,
                                          .gather = gather});
      local_->Submit({&local, 1});
      continue;
    }
    parts_.fetcher.Fetch(
        gather->file, run.range, /*may_hedge=*/true, [&](ChunkRange chunks) {
          ++gather->open_part_count;
          const auto [offset, buffer] = part_of(chunks);
          const uint64_t start = offset;
          return ChunkWaiter{.offset = offset,
                             .out = buffer,
                             .done = [this, gather, chunks, start](
                                         ChunkWaiter::Outcome outcome,
                                         const absl::Status& status) {
                               if (outcome == ChunkWaiter::Outcome::kAgain) {
                                 BeginPart(gather, chunks);
                               }
                               EndPart(gather, start, status);
                             }};
        });
  }
}

void StoreDevice::EndPart(const std::shared_ptr<Gather>& gather, uint64_t start,
                          const absl::Status& status) {
  if (!status.ok() && start < gather->good_end) {
    gather->good_end = start;
    gather->status = status;
  }
  if (--gather->open_part_count > 0) {
    return;
  }
  DeviceResult result = {.id = gather->read.id,
                         .size_bytes = gather->good_end - gather->start(),
                         .status = absl::OkStatus()};
  if (!gather->status.ok()) {
    // No address: these messages reach clients. The log has it.
    result.status = absl::UnavailableError(
        absl::IsAborted(gather->status) || absl::IsNotFound(gather->status)
            ? "the archive has changed in its object store; retry when the "
              "server has found the new one"
            : "the object store does not answer; retry later");
    result.is_final = true;
  }
  done_({&result, 1});
  NoteDelivered(1);
}

void StoreDevice::OnLocalResults(std::span<DeviceResult> results) {
  std::vector<DeviceResult> whole;
  for (DeviceResult& result : results) {
    LocalRead local;
    {
      MutexLock lock(&mutex_);
      const auto found = local_reads_.find(result.id);
      local = std::move(found->second);
      local_reads_.erase(found);
    }
    parts_.cache.Unpin(*local.file, local.range);
    const bool is_good = result.status.ok();
    if (!is_good) {
      parts_.cache.Invalidate(*local.file, local.range);
    }
    if (is_good && local.gather == nullptr) {
      result.id = local.read.id;
      whole.push_back(std::move(result));
      continue;
    }
    if (local.gather == nullptr) {
      auto gather = std::make_shared<Gather>();
      gather->read = local.read;
      gather->file = local.file;
      parts_.loop.Post([this, gather] { Begin(gather); });
      continue;
    }
    parts_.loop.Post(
        [this, gather = local.gather, range = local.range, is_good] {
          if (!is_good) {
            BeginPart(gather, range);
          }
          EndPart(gather, gather->end(), absl::OkStatus());
        });
  }
  if (!whole.empty()) {
    done_(whole);
    NoteDelivered(whole.size());
  }
}

void StoreDevice::NoteDelivered(size_t count) {
  MutexLock lock(&mutex_);
  read_count_ -= count;
  if (read_count_ == 0) {
    all_ended_.NotifyAll();
  }
}

void StoreDevice::Invalidate(int fd, FileOffset offset, uint64_t size_bytes) {
  const CachedFilePtr file = parts_.files->Find(fd);
  if (file != nullptr && size_bytes > 0 &&
      offset.value + size_bytes <= file->map.size_bytes()) {
    parts_.cache.Invalidate(*file,
                            file->map.Covering(offset.value, size_bytes));
  }
}

}  // namespace quire
