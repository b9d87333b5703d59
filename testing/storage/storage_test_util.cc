// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/storage/storage_test_util.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kChecksumSizeBytes = 8;

void RequireOrAbort(bool condition, const char* what) {
  QUIRE_CHECK(condition, what, ": ", std::generic_category().message(errno));
}

}  // namespace

TempFile::TempFile(ByteView content) {
  std::string path =
      std::filesystem::temp_directory_path() / "quire_storage_XXXXXX";
  fd_ = mkstemp(path.data());
  RequireOrAbort(fd_ >= 0, path.c_str());
  unlink(path.c_str());
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t count =
        write(fd_, content.data() + written, content.size() - written);
    RequireOrAbort(count > 0, path.c_str());
    written += static_cast<size_t>(count);
  }
}

TempFile::~TempFile() {
  close(fd_);
}

void TempFile::Truncate(uint64_t size_bytes) {
  RequireOrAbort(ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0,
                 "ftruncate");
}

class TestBlocks::Decoder : public BlockDecoder {
 public:
  explicit Decoder(uint64_t count) : decodings_(count) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    decodings_[block.block_index].fetch_add(1, std::memory_order_relaxed);
    const ByteView text = stored.first(stored.size() - kChecksumSizeBytes);
    if (LoadLittleEndian<uint64_t>(stored.data() + text.size()) !=
        Checksum64(text, block.block_index)) {
      return absl::DataLossError(
          absl::StrCat("block ", block.block_index, ": checksum mismatch"));
    }
    for (const BlockPart& part : parts) {
      if (part.offset_in_block > text.size() ||
          part.text.size() > text.size() - part.offset_in_block) {
        return absl::DataLossError("sizes do not match");
      }
      std::copy_n(text.begin() + part.offset_in_block, part.text.size(),
                  part.text.begin());
    }
    return absl::OkStatus();
  }

  uint64_t count(uint64_t block_index) const {
    return decodings_[block_index].load(std::memory_order_relaxed);
  }

 private:
  mutable std::vector<std::atomic<uint64_t>> decodings_;
};

TestBlocks::TestBlocks(uint64_t count, uint32_t raw_size_bytes,
                       uint64_t source_id, uint64_t gap_size_bytes)
    : count_(count),
      raw_size_bytes_(raw_size_bytes),
      source_id_(source_id),
      gap_size_bytes_(gap_size_bytes),
      decoder_(std::make_shared<Decoder>(count)) {
  std::vector<uint8_t> content(OffsetOf(count));
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<uint8_t> text = Text(i);
    uint8_t* to = content.data() + OffsetOf(i);
    std::copy(text.begin(), text.end(), to);
    StoreLittleEndian(Checksum64(text, i), to + raw_size_bytes);
  }
  file_ = std::make_unique<TempFile>(content);
}

TestBlocks::~TestBlocks() = default;

BlockKey TestBlocks::Key(uint64_t block_index) const {
  return {.source_id = source_id_,
          .block = {.segment_index = 0, .block_index = block_index}};
}

BlockFetch TestBlocks::Fetch(uint64_t block_index,
                             FetchClass fetch_class) const {
  return {.key = Key(block_index),
          .extent = {.fd = file_->fd(),
                     .offset = FileOffset{OffsetOf(block_index)},
                     .size_bytes = stored_size_bytes()},
          .raw_size_bytes = raw_size_bytes_,
          .fetch_class = fetch_class,
          .decoder = decoder_};
}

std::vector<uint8_t> TestBlocks::Text(uint64_t block_index) const {
  std::vector<uint8_t> text(raw_size_bytes_);
  uint64_t state = block_index * 0x9E3779B97F4A7C15 + source_id_;
  for (uint8_t& byte : text) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return text;
}

uint64_t TestBlocks::OffsetOf(uint64_t block_index) const {
  return block_index * (stored_size_bytes() + gap_size_bytes_);
}

uint64_t TestBlocks::DecodeCount(uint64_t block_index) const {
  return decoder_->count(block_index);
}

DeviceResult ReadForTest(const DeviceRead& read) {
  DeviceResult result{.id = read.id, .size_bytes = 0, .status = {}};
  const ssize_t got = pread(read.fd, read.buffer.data(), read.buffer.size(),
                            static_cast<off_t>(read.offset.value));
  if (got < 0) {
    result.status = DeviceErrorStatus(read, errno);
    return result;
  }
  result.size_bytes = static_cast<size_t>(got);
  if (result.size_bytes < read.buffer.size()) {
    result.status = EndOfFileStatus(read, result.size_bytes);
  }
  return result;
}

void SettleDecoding(BlockStore& store) {
  DecodePool& pool = store.decode_pool();
  // It may overtake tasks of other clients.
  size_t waiting_count = 0;
  do {
    std::promise<size_t> settled;
    pool.Add({.run = [&] { settled.set_value(pool.queue_length()); }});
    waiting_count = settled.get_future().get();
  } while (waiting_count > 0);
}

void ManualDevice::Submit(std::span<const DeviceRead> reads) {
  MutexLock lock(&mutex_);
  waiting_.insert(waiting_.end(), reads.begin(), reads.end());
}

std::vector<DeviceRead> ManualDevice::waiting() const {
  MutexLock lock(&mutex_);
  return {waiting_.begin(), waiting_.end()};
}

DeviceRead ManualDevice::TakeFirst() {
  MutexLock lock(&mutex_);
  RequireOrAbort(!waiting_.empty(), "no read waits");
  const DeviceRead read = waiting_.front();
  waiting_.pop_front();
  return read;
}

void ManualDevice::Serve(const ReadFault& fault) {
  const DeviceRead read = TakeFirst();
  DeviceResult result = ReadForTest(read);
  if (fault) {
    fault(read, result);
  }
  done_({&result, 1});
}

void ManualDevice::Fail(absl::Status status, size_t good_bytes) {
  DeviceRead read = TakeFirst();
  const uint64_t id = read.id;
  read.buffer = read.buffer.first(good_bytes);
  ReadForTest(read);
  DeviceResult result{
      .id = id, .size_bytes = good_bytes, .status = std::move(status)};
  done_({&result, 1});
}

ChaosDevice::ChaosDevice(uint64_t seed, ReadFault fault, Done done)
    : fault_(std::move(fault)), done_(std::move(done)), random_(seed) {
  thread_ = std::thread([this] { Run(); });
}

ChaosDevice::~ChaosDevice() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  work_.NotifyAll();
  thread_.join();
}

void ChaosDevice::Submit(std::span<const DeviceRead> reads) {
  {
    MutexLock lock(&mutex_);
    queue_.insert(queue_.end(), reads.begin(), reads.end());
  }
  work_.NotifyAll();
}

void ChaosDevice::Run() {
  while (true) {
    std::vector<DeviceRead> batch;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) {
        work_.Wait(&mutex_);
      }
      if (queue_.empty()) {
        return;
      }
      std::shuffle(queue_.begin(), queue_.end(), random_);
      const size_t count = 1 + random_() % queue_.size();
      batch.assign(queue_.end() - static_cast<ptrdiff_t>(count), queue_.end());
      queue_.resize(queue_.size() - count);
    }
    std::vector<DeviceResult> results;
    for (const DeviceRead& read : batch) {
      results.push_back(ReadForTest(read));
      fault_(read, results.back());
    }
    done_(results);
  }
}

BlockStore::Done FetchLog::Watch() {
  MutexLock lock(&mutex_);
  End* end = &ends_.emplace_back();
  return [this, end](absl::StatusOr<BlockStore::BlockPtr> result) {
    MutexLock done_lock(&mutex_);
    ended_ += end->calls == 0 ? 1 : 0;
    ++end->calls;
    end->result = std::move(result);
    changed_.NotifyAll();
  };
}

void FetchLog::WaitForAll() {
  MutexLock lock(&mutex_);
  while (ended_ < ends_.size()) {
    changed_.Wait(&mutex_);
  }
}

void FetchLog::WaitFor(size_t index) {
  MutexLock lock(&mutex_);
  while (ends_[index].calls == 0) {
    changed_.Wait(&mutex_);
  }
}

FetchLog::End FetchLog::Get(size_t index) const {
  MutexLock lock(&mutex_);
  return ends_[index];
}

size_t FetchLog::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

}  // namespace quire
