// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/device.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/mutex.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Engine = DeviceEngine;

std::vector<uint8_t> Content(size_t size_bytes) {
  std::vector<uint8_t> content(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    content[i] = static_cast<uint8_t>(i * 2654435761 >> 13);
  }
  return content;
}

// Collects results by id.
class Results {
 public:
  Device::Done Collect() {
    return [this](std::span<DeviceResult> results) {
      MutexLock lock(&mutex_);
      for (DeviceResult& result : results) {
        const uint64_t id = result.id;
        EXPECT_TRUE(results_.emplace(id, std::move(result)).second);
      }
      changed_.NotifyAll();
    };
  }

  void WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    while (results_.size() < count) {
      changed_.Wait(&mutex_);
    }
  }

  DeviceResult Get(uint64_t id) {
    MutexLock lock(&mutex_);
    return results_.at(id);
  }

  size_t count() {
    MutexLock lock(&mutex_);
    return results_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<uint64_t, DeviceResult> results_ ABSL_GUARDED_BY(mutex_);
};

// I/O priorities of this process's threads by their ids, as ioprio_get(2)
// returns them.
std::map<std::string, int> IoPriorities() {
  constexpr int kWhoProcess = 1;
  std::map<std::string, int> priorities;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string thread = task.path().filename();
    priorities[thread] = static_cast<int>(
        syscall(SYS_ioprio_get, kWhoProcess, std::stoi(thread)));
  }
  return priorities;
}

// kAuto selects io_uring if the machine allows it.
class DeviceTest : public ::testing::TestWithParam<Engine> {
 protected:
  std::unique_ptr<Device> Open(uint32_t depth, Device::Done done) {
    auto opened = OpenDevice(GetParam(), depth, std::move(done));
    QUIRE_EXPECT_OK(opened);
    return std::move(opened->device);
  }

  Results results_;
};

TEST_P(DeviceTest, ReadsMoreAtOnceThanItsDepth) {
  const std::vector<uint8_t> content = Content(1 << 20);
  TempFile file(content);
  auto device = Open(4, results_.Collect());
  std::vector<std::vector<uint8_t>> buffers;
  std::vector<DeviceRead> reads;
  for (uint64_t i = 0; i < 300; ++i) {
    buffers.emplace_back(1 + i * 37);
    reads.push_back({.id = i,
                     .fd = file.fd(),
                     .offset = FileOffset{i * 3001},
                     .urgent = i % 3 == 0,
                     .buffer = buffers.back()});
  }
  device->Submit(reads);
  results_.WaitFor(300);
  for (uint64_t i = 0; i < 300; ++i) {
    const DeviceResult result = results_.Get(i);
    QUIRE_EXPECT_OK(result.status);
    EXPECT_EQ(result.size_bytes, buffers[i].size());
    EXPECT_TRUE(std::equal(buffers[i].begin(), buffers[i].end(),
                           content.begin() + static_cast<ptrdiff_t>(i * 3001)));
  }
}

TEST_P(DeviceTest, LeavesTheIoPrioritiesOfThreadsUnchanged) {
  const std::map<std::string, int> before = IoPriorities();
  const int own = before.at(absl::StrCat(gettid()));
  TempFile file(Content(8192));
  auto device = Open(4, results_.Collect());
  std::vector<uint8_t> buffer(8192);
  const DeviceRead read = {.id = 0,
                           .fd = file.fd(),
                           .offset = FileOffset{0},
                           .urgent = true,
                           .buffer = buffer};
  device->Submit({&read, 1});
  results_.WaitFor(1);
  // The device's thread waits for the next read, or is about to.
  for (const auto& [thread, priority] : IoPriorities()) {
    EXPECT_EQ(priority, before.contains(thread) ? before.at(thread) : own)
        << thread;
  }
}

TEST_P(DeviceTest, TellsHowMuchPrecedesTheEndOfTheFile) {
  const std::vector<uint8_t> content = Content(5000);
  TempFile file(content);
  auto device = Open(4, results_.Collect());
  std::vector<uint8_t> across(4096);
  std::vector<uint8_t> behind(10);
  const std::vector<DeviceRead> reads = {
      {.id = 1, .fd = file.fd(), .offset = FileOffset{4000}, .buffer = across},
      {.id = 2, .fd = file.fd(), .offset = FileOffset{9000}, .buffer = behind}};
  device->Submit(reads);
  results_.WaitFor(2);
  EXPECT_EQ(results_.Get(1).size_bytes, 1000);
  EXPECT_THAT(results_.Get(1).status,
              FailsWith(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("offset 4000"), HasSubstr("4096"),
                              HasSubstr("found 1000"))));
  EXPECT_TRUE(std::equal(across.begin(), across.begin() + 1000,
                         content.begin() + 4000));
  EXPECT_EQ(results_.Get(2).size_bytes, 0);
  EXPECT_THAT(results_.Get(2).status, HasCode(absl::StatusCode::kDataLoss));
}

TEST_P(DeviceTest, NamesErrorsOfTheSystem) {
  // Address 0 of a process is unmapped: EIO.
  const int nowhere = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  const int directory = open("/", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(nowhere, 0);
  ASSERT_GE(directory, 0);
  auto device = Open(4, results_.Collect());
  std::vector<uint8_t> buffer(64);
  const std::vector<DeviceRead> reads = {
      {.id = 1, .fd = nowhere, .offset = FileOffset{0}, .buffer = buffer},
      {.id = 2, .fd = directory, .offset = FileOffset{0}, .buffer = buffer},
      {.id = 3, .fd = -1, .offset = FileOffset{0}, .buffer = buffer}};
  device->Submit(reads);
  results_.WaitFor(3);
  EXPECT_THAT(results_.Get(1).status,
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("Input/output error")));
  EXPECT_THAT(results_.Get(2).status, FailsWith(absl::StatusCode::kUnavailable,
                                                HasSubstr("Is a directory")));
  EXPECT_THAT(results_.Get(3).status,
              FailsWith(absl::StatusCode::kUnavailable,
                        HasSubstr("Bad file descriptor")));
  close(nowhere);
  close(directory);
}

TEST_P(DeviceTest, PutsShortReadsTogether) {
  // The kernel returns this file page by page.
  const int file = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
  std::vector<uint8_t> expected(50000);
  if (file < 0 || pread(file, expected.data(), expected.size(), 0) == 50000) {
    GTEST_SKIP() << "nothing here is read in pieces";
  }
  for (size_t done = 0; done < expected.size();) {
    const ssize_t got = pread(file, expected.data() + done,
                              expected.size() - done, static_cast<off_t>(done));
    ASSERT_GT(got, 0);
    done += static_cast<size_t>(got);
  }
  auto device = Open(4, results_.Collect());
  std::vector<uint8_t> buffer(expected.size());
  const DeviceRead read{
      .id = 1, .fd = file, .offset = FileOffset{0}, .buffer = buffer};
  device->Submit({&read, 1});
  results_.WaitFor(1);
  QUIRE_EXPECT_OK(results_.Get(1).status);
  EXPECT_TRUE(buffer == expected);
  close(file);
}

TEST_P(DeviceTest, DeliversEverythingBeforeItGoes) {
  const std::vector<uint8_t> content = Content(1 << 16);
  TempFile file(content);
  std::vector<uint8_t> buffer(1 << 16);
  std::atomic<uint64_t> left = 500;
  std::atomic<uint64_t> delivered = 0;
  Device* self = nullptr;
  // Reads that submit others, also while the device is being destroyed.
  const auto submit = [&](uint64_t id) {
    const DeviceRead read{.id = id,
                          .fd = file.fd(),
                          .offset = FileOffset{id % 1000},
                          .buffer = {buffer.data() + id * 64, 64}};
    self->Submit({&read, 1});
  };
  auto device = Open(8, [&](std::span<DeviceResult> results) {
    for (const DeviceResult& result : results) {
      EXPECT_TRUE(result.status.ok());
      ++delivered;
      const uint64_t next = left.fetch_sub(1);
      if (next > 0 && next <= 500) {
        submit(next);
      }
    }
  });
  self = device.get();
  for (uint64_t id = 501; id < 520; ++id) {
    submit(id);
  }
  device.reset();
  EXPECT_EQ(delivered, 519);
}

TEST_P(DeviceTest, TakesReadsFromManyThreads) {
  const std::vector<uint8_t> content = Content(1 << 16);
  TempFile file(content);
  auto device = Open(8, results_.Collect());
  std::vector<std::vector<uint8_t>> buffers(400, std::vector<uint8_t>(512));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t id = t * 100; id < (t + 1) * 100; ++id) {
        const DeviceRead read{.id = id,
                              .fd = file.fd(),
                              .offset = FileOffset{id * 100},
                              .buffer = buffers[id]};
        device->Submit({&read, 1});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  results_.WaitFor(400);
  for (uint64_t id = 0; id < 400; ++id) {
    EXPECT_TRUE(std::equal(buffers[id].begin(), buffers[id].end(),
                           content.begin() + static_cast<ptrdiff_t>(id * 100)));
  }
}

// With any patience of the caller, each read ends, and so does the device.
TEST_P(DeviceTest, DeliversToWhoIsPatient) {
  const std::vector<uint8_t> content = Content(1 << 16);
  TempFile file(content);
  auto device = Open(4, results_.Collect());
  std::atomic<uint64_t> asked = 0;
  device->SetPatience([&asked] {
    // Sometimes there is none.
    return std::chrono::microseconds(++asked % 3 * 300);
  });
  std::vector<std::vector<uint8_t>> buffers(100, std::vector<uint8_t>(512));
  for (uint64_t id = 0; id < 100; ++id) {
    const DeviceRead read{.id = id,
                          .fd = file.fd(),
                          .offset = FileOffset{id * 100},
                          .buffer = buffers[id]};
    device->Submit({&read, 1});
    if (id % 10 == 0) {
      results_.WaitFor(id + 1);
    }
  }
  device.reset();
  ASSERT_EQ(results_.count(), 100);
  for (uint64_t id = 0; id < 100; ++id) {
    QUIRE_EXPECT_OK(results_.Get(id).status);
    EXPECT_TRUE(std::equal(buffers[id].begin(), buffers[id].end(),
                           content.begin() + static_cast<ptrdiff_t>(id * 100)));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, DeviceTest,
                         ::testing::Values(Engine::kAuto, Engine::kPread),
                         [](const auto& param_info) {
                           return param_info.param == Engine::kAuto ? "Auto"
                                                                    : "Pread";
                         });

// Makes a system call fail with EPERM in this thread and those that it starts,
// as containers do.
void ForbidSystemCall(uint32_t number) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {.len = 4, .filter = filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

class ForbiddenRingTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(ForbiddenRingTest, FallsBackAndSaysWhy) {
  std::thread([] {
    ForbidSystemCall(GetParam());
    Results results;
    EXPECT_THAT(OpenDevice(Engine::kIoUring, 4, results.Collect()),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          AllOf(HasSubstr("io_uring"), HasSubstr("seccomp"),
                                HasSubstr("pread"))));
    auto opened = OpenDevice(Engine::kAuto, 4, results.Collect());
    QUIRE_ASSERT_OK(opened);
    EXPECT_EQ(opened->device->name(), "pread");
    EXPECT_THAT(opened->note, HasSubstr("seccomp"));
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Calls, ForbiddenRingTest,
                         ::testing::Values(SYS_io_uring_setup,
                                           SYS_io_uring_enter));

TEST(OpenDeviceTest, TakesWhatIsAskedFor) {
  Results results;
  auto pread_device = OpenDevice(Engine::kPread, 4, results.Collect());
  QUIRE_ASSERT_OK(pread_device);
  EXPECT_EQ(pread_device->device->name(), "pread");
  EXPECT_EQ(pread_device->note, "");
  QUIRE_EXPECT_OK(
      OpenDevice(Engine::kPread, kDeviceDepthMax, results.Collect()));
  for (const uint32_t depth : {uint32_t{0}, kDeviceDepthMax + 1}) {
    EXPECT_THAT(OpenDevice(Engine::kAuto, depth, results.Collect()),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  // It works, or the error names the reason.
  auto ring = OpenDevice(Engine::kIoUring, 4, results.Collect());
  if (ring.ok()) {
    EXPECT_EQ(ring->device->name(), "io_uring");
  } else {
    EXPECT_THAT(ring, HasCode(absl::StatusCode::kFailedPrecondition));
  }
}

}  // namespace
}  // namespace quire
