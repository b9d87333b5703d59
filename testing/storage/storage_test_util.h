// SPDX-License-Identifier: GPL-3.0-or-later
//
// For the tests of storage: a file of small checked blocks, devices that obey
// the test, and a log of how fetches ended.
#ifndef QUIRE_TESTING_STORAGE_STORAGE_TEST_UTIL_H_
#define QUIRE_TESTING_STORAGE_STORAGE_TEST_UTIL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/storage/block_store.h"
#include "server/storage/device/device.h"

namespace quire {

// A file that is gone when the descriptor is.
class TempFile {
 public:
  explicit TempFile(ByteView content);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  int fd() const { return fd_; }

  void Truncate(uint64_t size_bytes);

 private:
  int fd_ = -1;
};

// Blocks of one size, stored as text and its checksum, seeded with the block's
// index; decoding checks and copies. Thread-safe.
class TestBlocks {
 public:
  // `gap_size_bytes` of nothing between one block and the next.
  TestBlocks(uint64_t count, uint32_t raw_size_bytes, uint64_t source_id = 1,
             uint64_t gap_size_bytes = 0);
  ~TestBlocks();

  BlockFetch Fetch(uint64_t block_index,
                   FetchClass fetch_class = FetchClass::kInteractive) const;
  BlockKey Key(uint64_t block_index) const;
  std::vector<uint8_t> Text(uint64_t block_index) const;
  uint64_t OffsetOf(uint64_t block_index) const;

  uint64_t count() const { return count_; }

  uint32_t stored_size_bytes() const { return raw_size_bytes_ + 8; }

  TempFile& file() { return *file_; }

  // Decodings begun, by block.
  uint64_t DecodeCount(uint64_t block_index) const;

 private:
  class Decoder;

  const uint64_t count_;
  const uint32_t raw_size_bytes_;
  const uint64_t source_id_;
  const uint64_t gap_size_bytes_;
  std::unique_ptr<TempFile> file_;
  std::shared_ptr<Decoder> decoder_;
};

// Changes the result or the bytes of a read that a test's file has served.
using ReadFault = std::function<void(const DeviceRead&, DeviceResult&)>;

// Keeps reads until the test lets them go, on the test's thread.
// Thread-safe.
class ManualDevice final : public Device {
 public:
  explicit ManualDevice(Done done) : done_(std::move(done)) {}

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::string name() const override { return "manual"; }

  std::vector<DeviceRead> waiting() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Serves the read that waits longest from its file, but for `fault`, or fails
  // it after `good_bytes`. REQUIRES: one waits.
  void Serve(const ReadFault& fault = nullptr);
  void Fail(absl::Status status, size_t good_bytes = 0);

 private:
  DeviceRead TakeFirst() ABSL_LOCKS_EXCLUDED(mutex_);

  const Done done_;
  mutable Mutex mutex_;
  std::deque<DeviceRead> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Returns a device opener for BlockStore and DriveQueue that makes a
// ManualDevice, which `device` then points to. `device` must outlive the
// result.
inline auto OpensManualDevice(ManualDevice*& device) {
  return [&device](Device::Done done) {
    auto made = std::make_unique<ManualDevice>(std::move(done));
    device = made.get();
    return OpenedDevice{std::move(made), ""};
  };
}

// Serves reads on a thread of its own in an order drawn from a seed, several
// results at once or one by one, each as `fault` has it.
// Thread-safe.
class ChaosDevice final : public Device {
 public:
  ChaosDevice(uint64_t seed, ReadFault fault, Done done);
  ~ChaosDevice() override;

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::string name() const override { return "chaos"; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const ReadFault fault_;
  const Done done_;
  Mutex mutex_;
  CondVar work_;
  std::vector<DeviceRead> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::mt19937_64 random_;
  std::thread thread_;
};

// Reads what the file has, as a device would.
DeviceResult ReadForTest(const DeviceRead& read);

// Returns when the decode pool has done all that it has to do now.
// REQUIRES: the pool has one thread.
void SettleDecoding(BlockStore& store);

// Counts ends of fetches.
// Thread-safe; outlives the fetches it watches.
class FetchLog {
 public:
  struct End {
    int calls = 0;
    absl::StatusOr<BlockStore::BlockPtr> result = absl::UnknownError("no end");
  };

  // For one fetch; the i-th call belongs to the i-th end.
  BlockStore::Done Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when all that were watched have ended.
  void WaitForAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitFor(size_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  End Get(size_t index) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t ended() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<End> ends_ ABSL_GUARDED_BY(mutex_);
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_TESTING_STORAGE_STORAGE_TEST_UTIL_H_
