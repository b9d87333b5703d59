// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/modelled_device.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/mutex.h"
#include "server/storage/model/drive_presets.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

// Holds commands until there are `batch_`, then ends them all at once, last in,
// first out.
class LastFirstDrive final : public DriveModel {
 public:
  explicit LastFirstDrive(size_t batch) : batch_(batch) {}

  void Submit(DriveTime now, const DriveCommand& command) override {
    EXPECT_GE(now, last_);
    last_ = now;
    commands_.push_back(command);
    addresses.push_back(command.address);
  }

  std::optional<DriveTime> NextEnd() const override {
    return commands_.size() < batch_ ? std::nullopt
                                     : std::optional<DriveTime>(last_);
  }

  std::vector<uint64_t> Advance(DriveTime now) override {
    EXPECT_GE(now, last_);
    last_ = now;
    std::vector<uint64_t> ended;
    if (commands_.size() >= batch_) {
      for (; !commands_.empty(); commands_.pop_back()) {
        ended.push_back(commands_.back().id);
      }
    }
    return ended;
  }

  size_t size() const override { return commands_.size(); }

  uint64_t capacity_size_bytes() const override { return 1 << 30; }

  bool rotational() const override { return false; }

  std::vector<uint64_t> addresses;

 private:
  const size_t batch_;
  DriveTime last_{0};
  std::vector<DriveCommand> commands_;
};

DeviceFactory PreadFactory() {
  return [](Device::Done done) {
    return OpenDevice(DeviceEngine::kPread, 4, std::move(done));
  };
}

class Log {
 public:
  Device::Done Collect() {
    return [this](std::span<DeviceResult> results) {
      MutexLock lock(&mutex_);
      for (DeviceResult& result : results) {
        results_.push_back(std::move(result));
      }
      changed_.NotifyAll();
    };
  }

  std::vector<DeviceResult> WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    while (results_.size() < count) {
      changed_.Wait(&mutex_);
    }
    return results_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<DeviceResult> results_ ABSL_GUARDED_BY(mutex_);
};

std::vector<uint8_t> Content(size_t size_bytes, uint8_t seed) {
  std::vector<uint8_t> content(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    content[i] = static_cast<uint8_t>(i * 31 + seed);
  }
  return content;
}

TEST(ModelledDeviceTest, BytesAreTheFilesAndTheOrderIsTheDrives) {
  const std::vector<uint8_t> content = Content(10'000, 1);
  const TempFile file(content);
  Log log;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto device,
      ModelledDevice::Open(std::make_unique<LastFirstDrive>(3), "test",
                           PreadFactory(), log.Collect()));
  EXPECT_EQ(device->name(), "model:test");
  std::vector<std::vector<uint8_t>> buffers(3, std::vector<uint8_t>(1'000));
  std::vector<DeviceRead> reads;
  for (size_t i = 0; i < 3; ++i) {
    reads.push_back({.id = 70 + i,
                     .fd = file.fd(),
                     .offset = FileOffset{i * 3'000},
                     .buffer = buffers[i]});
  }
  device->Submit(reads);
  std::vector<uint64_t> ids;
  for (const DeviceResult& result : log.WaitFor(3)) {
    QUIRE_EXPECT_OK(result.status);
    EXPECT_EQ(result.size_bytes, 1'000);
    ids.push_back(result.id);
  }
  // In the drive's order, unless the other device was slower.
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre(70, 71, 72));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        std::equal(buffers[i].begin(), buffers[i].end(),
                   content.begin() + static_cast<ptrdiff_t>(i * 3'000)));
  }
}

TEST(ModelledDeviceTest, FilesLieOneAfterTheOther) {
  const TempFile first(Content(5'000, 1));
  const TempFile second(Content(7'000, 2));
  Log log;
  auto drive = std::make_unique<LastFirstDrive>(1);
  const LastFirstDrive& seen = *drive;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto device, ModelledDevice::Open(std::move(drive), "test",
                                              PreadFactory(), log.Collect()));
  std::vector<uint8_t> buffer(100);
  uint64_t id = 0;
  for (const auto& [fd, offset] : std::vector<std::pair<int, uint64_t>>{
           {second.fd(), 10}, {first.fd(), 20}, {second.fd(), 30}}) {
    const std::vector<DeviceRead> reads = {
        {.id = id, .fd = fd, .offset = FileOffset{offset}, .buffer = buffer}};
    device->Submit(reads);
    log.WaitFor(++id);
  }
  EXPECT_THAT(seen.addresses, ElementsAre(10, 7'020, 30));
}

TEST(ModelledDeviceTest, ErrorsOfTheFileArePassedOn) {
  const TempFile file(Content(5'000, 1));
  Log log;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto device,
      ModelledDevice::Open(std::make_unique<LastFirstDrive>(2), "test",
                           PreadFactory(), log.Collect()));
  std::vector<uint8_t> cut(2'000);
  std::vector<uint8_t> none(2'000);
  const std::vector<DeviceRead> reads = {
      {.id = 1, .fd = file.fd(), .offset = FileOffset{4'000}, .buffer = cut},
      {.id = 2, .fd = -1, .offset = FileOffset{0}, .buffer = none}};
  device->Submit(reads);
  for (const DeviceResult& result : log.WaitFor(2)) {
    EXPECT_THAT(result.status,
                HasCode(result.id == 1 ? absl::StatusCode::kDataLoss
                                       : absl::StatusCode::kUnavailable));
    EXPECT_EQ(result.size_bytes, result.id == 1 ? 1'000 : 0);
  }
}

TEST(ModelledDeviceTest, TheDestructorDeliversWhatIsInFlight) {
  const TempFile file(Content(100'000, 1));
  std::atomic<size_t> delivered = 0;
  std::vector<std::vector<uint8_t>> buffers(50, std::vector<uint8_t>(500));
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto drive, MakeDriveModel("evo-850"));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto device,
        ModelledDevice::Open(std::move(drive), "evo-850", PreadFactory(),
                             [&delivered](std::span<DeviceResult> results) {
                               delivered += results.size();
                             }));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const std::vector<DeviceRead> reads = {{.id = i,
                                              .fd = file.fd(),
                                              .offset = FileOffset{i * 1'000},
                                              .buffer = buffers[i]}};
      device->Submit(reads);
    }
  }
  EXPECT_EQ(delivered, buffers.size());
}

TEST(ModelledDeviceTest, TakesAtLeastAsLongAsTheDrive) {
  const TempFile file(Content(1 << 20, 1));
  Log log;
  QUIRE_ASSERT_OK_AND_ASSIGN(auto drive, MakeDriveModel("wd-red"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto device, ModelledDevice::Open(std::move(drive), "wd-red",
                                              PreadFactory(), log.Collect()));
  std::vector<uint8_t> buffer(4'096);
  const auto start = std::chrono::steady_clock::now();
  // Backwards: each needs most of a turn, 11.1 ms.
  for (uint64_t i = 0; i < 10; ++i) {
    const std::vector<DeviceRead> reads = {
        {.id = i,
         .fd = file.fd(),
         .offset = FileOffset{(10 - i) * 50'000},
         .buffer = buffer}};
    device->Submit(reads);
    log.WaitFor(i + 1);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(90));
}

}  // namespace
}  // namespace quire
