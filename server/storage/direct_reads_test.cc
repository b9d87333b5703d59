// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests reads through descriptors that require alignment: step by step over a
// device that the test controls, and with O_DIRECT where the temporary
// directory supports it.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// With a checksum of 8 bytes each, blocks lie across the alignment.
constexpr uint32_t kDirectBlockSize = 5000;
constexpr uint32_t kAlignmentBytes = 512;

class DirectReadsTest : public ::testing::Test {
 protected:
  ~DirectReadsTest() override {
    store_ = nullptr;
    if (direct_fd_ >= 0) {
      close(direct_fd_);
    }
  }

  // `flags`: added to those of the other descriptor.
  bool OpenDirectFd(int flags) {
    direct_fd_ =
        open(absl::StrCat("/proc/self/fd/", blocks_.file().fd()).c_str(),
             O_RDONLY | O_CLOEXEC | flags);
    return direct_fd_ >= 0;
  }

  void OpenManual(bool direct_io) {
    BlockStoreOptions options;
    options.direct_io = direct_io;
    options.decode_threads = 1;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, BlockStore::Create(options, OpensManualDevice(device_)));
  }

  BlockFetch FetchOf(uint64_t block_index,
                     uint32_t alignment_bytes = kAlignmentBytes) const {
    BlockFetch fetch = blocks_.Fetch(block_index);
    fetch.extent.direct_fd = direct_fd_;
    fetch.extent.direct_alignment_bytes = alignment_bytes;
    return fetch;
  }

  void FetchAll(const std::vector<uint64_t>& block_indexes) {
    std::vector<BlockStore::FetchItem> items;
    for (const uint64_t i : block_indexes) {
      items.push_back({FetchOf(i), log_.Watch()});
    }
    store_->FetchAll(std::move(items));
  }

  void ExpectText(size_t end_index, uint64_t block_index) {
    const FetchLog::End end = log_.Get(end_index);
    QUIRE_ASSERT_OK(end.result);
    EXPECT_THAT((*end.result)->bytes(),
                ElementsAreArray(blocks_.Text(block_index)));
  }

  TestBlocks blocks_{8, kDirectBlockSize};
  int direct_fd_ = -1;
  FetchLog log_;
  ManualDevice* device_ = nullptr;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(DirectReadsTest, WidensReadsToTheAlignment) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/true);
  FetchAll({3, 4, 5});
  const std::vector<DeviceRead> reads = device_->waiting();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].fd, direct_fd_);
  EXPECT_EQ(reads[0].offset.value,
            blocks_.OffsetOf(3) / kAlignmentBytes * kAlignmentBytes);
  EXPECT_EQ(reads[0].buffer.size() % kAlignmentBytes, 0);
  const uint64_t end = reads[0].offset.value + reads[0].buffer.size();
  EXPECT_GE(end, blocks_.OffsetOf(6));
  EXPECT_LT(end, blocks_.OffsetOf(6) + kAlignmentBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(reads[0].buffer.data()) % 4096, 0);
  device_->Serve();
  log_.WaitForAll();
  for (size_t i = 0; i < 3; ++i) {
    ExpectText(i, 3 + i);
  }
  EXPECT_EQ(store_->Stats().buffers_size_bytes, 0);
  EXPECT_EQ(store_->Stats().device_read_bytes, reads[0].buffer.size());
}

TEST_F(DirectReadsTest, LeavesReadsAloneUnlessTold) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/false);
  FetchAll({3});
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].fd, blocks_.file().fd());
  EXPECT_EQ(device_->waiting()[0].offset.value, blocks_.OffsetOf(3));
  EXPECT_EQ(device_->waiting()[0].buffer.size(), blocks_.stored_size_bytes());
  device_->Serve();
  log_.WaitForAll();
  ExpectText(0, 3);
}

TEST_F(DirectReadsTest, ReadsOnePlainlyThatHasNoDescriptor) {
  OpenManual(/*direct_io=*/true);
  FetchAll({3});
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, blocks_.OffsetOf(3));
  device_->Serve();
  log_.WaitForAll();
  ExpectText(0, 3);
}

TEST_F(DirectReadsTest, TakesWhatLiesBeforeTheEndOfTheFile) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/true);
  // The last block: widened, the read ends past the end of the file.
  FetchAll({7});
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_GT(
      device_->waiting()[0].offset.value + device_->waiting()[0].buffer.size(),
      blocks_.OffsetOf(8));
  device_->Serve();
  log_.WaitForAll();
  ExpectText(0, 7);
  EXPECT_EQ(store_->Stats().device_errors, 0);
}

TEST_F(DirectReadsTest, RepeatsThroughThePageCacheBlockByBlock) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/true);
  FetchAll({2, 3, 4});
  ASSERT_EQ(device_->waiting().size(), 1);
  const uint64_t head_size_bytes =
      blocks_.OffsetOf(2) - device_->waiting()[0].offset.value;
  ASSERT_GT(head_size_bytes, 0);
  // All of block 2 and nearly all of block 3.
  device_->Fail(absl::UnavailableError("bad sector"),
                head_size_bytes + 2 * blocks_.stored_size_bytes() - 1);
  for (const uint64_t i : {3U, 4U}) {
    ASSERT_EQ(device_->waiting().size(), 1);
    EXPECT_EQ(device_->waiting()[0].fd, blocks_.file().fd());
    EXPECT_EQ(device_->waiting()[0].offset.value, blocks_.OffsetOf(i));
    EXPECT_EQ(device_->waiting()[0].buffer.size(), blocks_.stored_size_bytes());
    device_->Serve();
  }
  log_.WaitForAll();
  for (size_t i = 0; i < 3; ++i) {
    ExpectText(i, 2 + i);
  }
  EXPECT_EQ(store_->Stats().device_errors, 1);
  EXPECT_EQ(store_->Stats().buffers_size_bytes, 0);
}

TEST_F(DirectReadsTest, RepeatsOneBlockOnce) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/true);
  FetchAll({2});
  device_->Fail(absl::UnavailableError("cannot do that"));
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].fd, blocks_.file().fd());
  device_->Fail(absl::UnavailableError("bad sector"));
  log_.WaitForAll();
  EXPECT_TRUE(device_->waiting().empty());
  EXPECT_THAT(log_.Get(0).result,
              FailsWith(absl::StatusCode::kUnavailable, HasSubstr("sector")));
  EXPECT_EQ(store_->Stats().device_errors, 2);
}

TEST_F(DirectReadsTest, ReadsADamagedBlockAgainPastThePageCache) {
  ASSERT_TRUE(OpenDirectFd(0));
  OpenManual(/*direct_io=*/true);
  FetchAll({2});
  device_->Serve([](const DeviceRead& read, DeviceResult&) {
    read.buffer[read.buffer.size() / 2] ^= 1;
  });
  SettleDecoding(*store_);
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].fd, direct_fd_);
  EXPECT_EQ(device_->waiting()[0].offset.value % kAlignmentBytes, 0);
  device_->Serve();
  log_.WaitForAll();
  ExpectText(0, 2);
  EXPECT_EQ(store_->Stats().recovered_blocks, 1);
}

// The kernel's behaviour, with either engine. If this file system refuses
// O_DIRECT, the reads are repeated with the same results.
TEST_F(DirectReadsTest, ReadsPastThePageCache) {
  if (!OpenDirectFd(O_DIRECT)) {
    ASSERT_TRUE(OpenDirectFd(0));
  }
  for (const auto engine :
       {BlockStoreOptions::Engine::kAuto, BlockStoreOptions::Engine::kPread}) {
    BlockStoreOptions options;
    options.direct_io = true;
    options.engine = engine;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(options));
    const size_t first = log_.ended();
    for (uint64_t i = 0; i < blocks_.count(); ++i) {
      store_->Fetch(FetchOf(i, 4096), log_.Watch());
    }
    log_.WaitForAll();
    for (uint64_t i = 0; i < blocks_.count(); ++i) {
      ExpectText(first + i, i);
    }
    EXPECT_EQ(store_->Stats().buffers_size_bytes, 0);
  }
}

}  // namespace
}  // namespace quire
