// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/store_device.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "codecs/base/mutex.h"
#include "server/storage/remote/remote_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/tiny_object_server.h"

namespace quire {
namespace {

constexpr uint32_t kDeviceChunk = 4 << 10;
constexpr uint64_t kDeviceObjectSize = 300 * kDeviceChunk + 1234;

std::string RandomBytes() {
  std::mt19937_64 random(7);
  std::string bytes(kDeviceObjectSize, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

// Waits for results by id.
class Results {
 public:
  void Take(std::span<DeviceResult> results) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    for (DeviceResult& result : results) {
      EXPECT_TRUE(results_.emplace(result.id, std::move(result)).second);
    }
    arrived_.NotifyAll();
  }

  DeviceResult Wait(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!results_.contains(id)) {
      arrived_.Wait(&mutex_);
    }
    DeviceResult result = results_[id];
    results_.erase(id);
    return result;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::map<uint64_t, DeviceResult> results_ ABSL_GUARDED_BY(mutex_);
};

class StoreDeviceTest : public ::testing::Test {
 protected:
  StoreDeviceTest() : object_(RandomBytes()), server_(object_) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }

  ~StoreDeviceTest() override {
    device_.reset();
    placement_.registration.reset();
    store_.reset();
    if (fd_ >= 0) {
      close(fd_);
    }
    std::filesystem::remove_all(directory_);
  }

  void Open(uint64_t cache_size_bytes) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, RemoteStore::Open({.endpoint = {},
                                   .cache_directory = directory_,
                                   .cache_size_bytes = cache_size_bytes,
                                   .chunk_size_bytes = kDeviceChunk,
                                   .requests_max = 8},
                                  DeviceEngine::kPread,
                                  [this](const absl::Status& failure) {
                                    failures_ += failure.ok() ? 0 : 1;
                                  }));
    const std::string path = directory_ + "/copy";
    QUIRE_ASSERT_OK_AND_ASSIGN(
        file_, store_->cache().OpenFile(path, kDeviceObjectSize,
                                        kDeviceObjectSize - 100));
    QUIRE_ASSERT_OK_AND_ASSIGN(const StoreAddress address,
                               store_->ParseAddress(server_.url()));
    file_->address = std::make_shared<const StoreAddress>(address);
    file_->object = "object";
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto placement = store_->Place(fd_);
    ASSERT_TRUE(placement.has_value());
    placement_ = *placement;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        OpenedDevice opened,
        store_->DeviceOpener()([this](std::span<DeviceResult> results) {
          results_.Take(results);
        }));
    device_ = std::move(opened.device);
  }

  uint64_t Submit(uint64_t offset, std::vector<uint8_t>& buffer) {
    const uint64_t id = next_id_++;
    const DeviceRead read = {
        .id = id, .fd = fd_, .offset = FileOffset{offset}, .buffer = buffer};
    device_->Submit({&read, 1});
    return id;
  }

  // Reads and compares a range.
  DeviceResult Read(uint64_t offset, uint64_t size_bytes) {
    std::vector<uint8_t> buffer(size_bytes);
    DeviceResult result = results_.Wait(Submit(offset, buffer));
    EXPECT_TRUE(std::equal(
        buffer.begin(),
        buffer.begin() + static_cast<ptrdiff_t>(result.size_bytes),
        object_.begin() + static_cast<ptrdiff_t>(offset),
        [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }))
        << offset << " " << size_bytes;
    return result;
  }

  std::string directory_;
  const std::string object_;
  TinyObjectServer server_;
  std::atomic<int> failures_ = 0;
  std::unique_ptr<RemoteStore> store_;
  CachedFilePtr file_;
  FilePlacement placement_;
  int fd_ = -1;
  Results results_;
  std::atomic<uint64_t> next_id_ = 1;
  std::unique_ptr<Device> device_;
};

TEST_F(StoreDeviceTest, ReadsAMissingRunByOneGet) {
  Open(1 << 20);
  QUIRE_EXPECT_OK(Read(10 * kDeviceChunk + 5, 3 * kDeviceChunk).status);
  EXPECT_EQ(server_.request_count(), 1U);
  QUIRE_EXPECT_OK(Read(10 * kDeviceChunk, 4 * kDeviceChunk).status);
  EXPECT_EQ(server_.request_count(), 1U);
  // Two runs next to what is there.
  QUIRE_EXPECT_OK(Read(8 * kDeviceChunk, 8 * kDeviceChunk).status);
  EXPECT_EQ(server_.request_count(), 3U);
  QUIRE_EXPECT_OK(Read(kDeviceObjectSize - 10, 10).status);
  EXPECT_EQ(device_->name(), "store+pread");
}

TEST_F(StoreDeviceTest, DistrustedChunksAreReadFromTheStore) {
  Open(1 << 20);
  QUIRE_EXPECT_OK(Read(0, 4 * kDeviceChunk).status);
  const char wrong = static_cast<char>(~object_[kDeviceChunk]);
  ASSERT_EQ(pwrite(file_->fd.get(), &wrong, 1, kDeviceChunk), 1);
  device_->Invalidate(fd_, FileOffset{kDeviceChunk + 10}, 20);
  QUIRE_EXPECT_OK(Read(0, 4 * kDeviceChunk).status);
  EXPECT_EQ(server_.request_count(), 2U);
}

TEST_F(StoreDeviceTest, ReportsAnotherObject) {
  Open(1 << 20);
  QUIRE_EXPECT_OK(Read(0, 10).status);
  server_.Replace();
  const DeviceResult result = Read(10 * kDeviceChunk, 10);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(result.is_final);
  EXPECT_EQ(result.size_bytes, 0U);
  EXPECT_TRUE(file_->is_stale);
  EXPECT_EQ(failures_, 1);
  // Cached text stays readable, and so does the front of a longer read.
  QUIRE_EXPECT_OK(Read(0, 10).status);
  EXPECT_EQ(Read(0, 2 * kDeviceChunk).size_bytes, kDeviceChunk);
}

TEST_F(StoreDeviceTest, ComparesTheTagsOfGetsInFlightTogether) {
  Open(1 << 20);
  server_.ReplaceAlways();
  std::vector<uint8_t> buffers[2];
  std::vector<DeviceRead> reads;
  for (uint64_t i = 0; i < 2; ++i) {
    buffers[i].resize(kDeviceChunk);
    reads.push_back({.id = next_id_++,
                     .fd = fd_,
                     .offset = FileOffset{i * 100 * kDeviceChunk},
                     .buffer = buffers[i]});
  }
  device_->Submit(reads);
  const bool is_good[2] = {results_.Wait(reads[0].id).status.ok(),
                           results_.Wait(reads[1].id).status.ok()};
  EXPECT_NE(is_good[0], is_good[1]);
  EXPECT_TRUE(file_->is_stale);
  EXPECT_EQ(failures_, 1);
  // Only chunks of the GET that succeeded are kept.
  EXPECT_EQ(file_->map.IsPresent(0), is_good[0]);
  EXPECT_EQ(file_->map.IsPresent(100), is_good[1]);
}

// The ETag of the head was checked.
TEST_F(StoreDeviceTest, IgnoresFieldsAfterTheBody) {
  Open(1 << 20);
  server_.SendTrailers();
  QUIRE_EXPECT_OK(Read(0, 10).status);
  EXPECT_EQ(file_->etag, "\"1\"");
}

TEST_F(StoreDeviceTest, EndsAllReadsAtAStop) {
  Open(1 << 20);
  server_.FailEvery(1);
  store_->SetStopTime(std::chrono::steady_clock::now() +
                      std::chrono::milliseconds(20));
  std::vector<std::vector<uint8_t>> buffers(20, std::vector<uint8_t>(10));
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < buffers.size(); ++i) {
    ids.push_back(Submit(i * 3 * kDeviceChunk, buffers[i]));
  }
  for (const uint64_t id : ids) {
    EXPECT_EQ(results_.Wait(id).status.code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Read(200 * kDeviceChunk, 10).status.code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(StoreDeviceTest, RefusesReadsPastTheEnd) {
  Open(1 << 20);
  std::vector<uint8_t> buffer(20);
  const DeviceResult result =
      results_.Wait(Submit(kDeviceObjectSize - 10, buffer));
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDataLoss);
}

// Many threads, a cache that is too small, failures, and damage.
TEST_F(StoreDeviceTest, ReadsTheRightBytesUnderStress) {
  Open(40 * kDeviceChunk);
  server_.FailEvery(7);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 200; ++i) {
        const uint64_t size_bytes = 1 + random() % (5 * kDeviceChunk);
        const uint64_t offset = random() % (kDeviceObjectSize - size_bytes);
        if (random() % 10 == 0) {
          device_->Invalidate(fd_, FileOffset{offset}, size_bytes);
        }
        // A read fails if its requests failed four times.
        const DeviceResult result = Read(offset, size_bytes);
        EXPECT_TRUE(result.status.ok() || result.is_final) << result.status;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const RemoteStore::Stats stats = store_->GetStats();
  EXPECT_LE(stats.cache.used_bytes, 40U * kDeviceChunk);
  EXPECT_GT(stats.cache.evicted_chunks, 0U);
  EXPECT_GT(stats.requests.retries, 0U);
  EXPECT_EQ(stats.cache.uncached_gets, 0U);
}

}  // namespace
}  // namespace quire
