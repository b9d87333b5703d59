// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks that the cache holds in another form than their text.
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "codecs/base/status_matchers.h"
#include "server/storage/block_store.h"
#include "server/storage/fetch/buffer_pool.h"
#include "server/storage/testing/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAreArray;

constexpr uint32_t kRawSizeBytes = 16 << 10;

// Packs blocks to their first quarter, but those whose index is odd not at all.
class QuarterDecoder final : public BlockDecoder {
 public:
  QuarterDecoder(std::shared_ptr<const BlockDecoder> decoder, bool is_even)
      : decoder_(std::move(decoder)), is_even_(is_even) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      MutableByteView raw) const override {
    return decoder_->Decode(block, stored, raw);
  }

  bool packs() const override { return true; }

  bool Pack(
      ByteView raw,
      const std::function<MutableByteView(size_t)>& allocate) const override {
    if (!is_even_) {
      return false;
    }
    const MutableByteView to = allocate(raw.size() / 4);
    std::copy_n(raw.begin(), to.size(), to.begin());
    return !to.empty();
  }

 private:
  const std::shared_ptr<const BlockDecoder> decoder_;
  const bool is_even_;
};

class PackedBlockTest : public ::testing::Test {
 protected:
  PackedBlockTest() {
    BlockStoreOptions options;
    options.decode_threads = 1;
    store_ = BlockStore::Create(options).value();
  }

  BlockStore::BlockPtr Fetch(uint64_t index, FetchClass fetch_class,
                             bool takes_packed) {
    BlockFetch fetch = blocks_.Fetch(index, fetch_class);
    fetch.takes_packed = takes_packed;
    fetch.decoder =
        std::make_shared<QuarterDecoder>(fetch.decoder, index % 2 == 0);
    FetchLog log;
    store_->Fetch(std::move(fetch), log.Watch());
    log.WaitForAll();
    return log.Get(0).result.value_or(nullptr);
  }

  void ExpectText(const BlockStore::BlockPtr& block, uint64_t index) {
    ASSERT_NE(block, nullptr);
    EXPECT_FALSE(block->is_packed());
    EXPECT_THAT(block->bytes(), ElementsAreArray(blocks_.Text(index)));
  }

  void ExpectPacked(const BlockStore::BlockPtr& block, uint64_t index) {
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(block->is_packed());
    std::vector<uint8_t> quarter = blocks_.Text(index);
    quarter.resize(quarter.size() / 4);
    EXPECT_THAT(block->bytes(), ElementsAreArray(quarter));
  }

  TestBlocks blocks_{8, kRawSizeBytes};
  std::unique_ptr<BlockStore> store_;
};

TEST_F(PackedBlockTest, WhoeverReadsItTakesTheFormAskedFor) {
  ExpectText(Fetch(0, FetchClass::kInteractive, false), 0);
  ExpectPacked(Fetch(2, FetchClass::kBatch, true), 2);
}

TEST_F(PackedBlockTest, TheCacheHoldsThePackedForm) {
  ExpectText(Fetch(0, FetchClass::kInteractive, false), 0);
  ExpectPacked(store_->Lookup(blocks_.Key(0)), 0);
  ExpectPacked(Fetch(0, FetchClass::kInteractive, false), 0);
  EXPECT_LE(store_->Stats().cache_size_bytes,
            BufferPool::MemorySizeBytes(kRawSizeBytes / 4) + 1024);
  EXPECT_EQ(store_->Stats().buffers_size_bytes, 0u);
}

TEST_F(PackedBlockTest, WhatDoesNotShrinkStaysText) {
  ExpectText(Fetch(1, FetchClass::kInteractive, true), 1);
  ExpectText(store_->Lookup(blocks_.Key(1)), 1);
}

TEST_F(PackedBlockTest, ScansPackOnlyWhatTheyTake) {
  ExpectText(Fetch(4, FetchClass::kScan, false), 4);
  ExpectText(store_->Lookup(blocks_.Key(4)), 4);
  ExpectPacked(Fetch(6, FetchClass::kScan, true), 6);
  ExpectPacked(store_->Lookup(blocks_.Key(6)), 6);
}

TEST_F(PackedBlockTest, TasksRunOnThePoolAndBeforeTheEnd) {
  int run_count = 0;
  for (int i = 0; i < 100; ++i) {
    store_->decode_pool().Add([&run_count] { ++run_count; });
  }
  store_.reset();
  EXPECT_EQ(run_count, 100);
}

// Finds no memory, as a codec may whose work space a block's header sizes.
class NoMemoryDecoder final : public BlockDecoder {
 public:
  NoMemoryDecoder(std::shared_ptr<const BlockDecoder> decoder, bool decodes)
      : decoder_(std::move(decoder)), decodes_(decodes) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      MutableByteView raw) const override {
    if (!decodes_) {
      throw std::bad_alloc();
    }
    return decoder_->Decode(block, stored, raw);
  }

  bool packs() const override { return true; }

  bool Pack(ByteView /*raw*/, const std::function<MutableByteView(size_t)>&
            /*allocate*/) const override {
    throw std::bad_alloc();
  }

 private:
  const std::shared_ptr<const BlockDecoder> decoder_;
  const bool decodes_;
};

TEST_F(PackedBlockTest, NoMemoryToDecodeIsTheFetchsError) {
  BlockFetch fetch = blocks_.Fetch(0, FetchClass::kInteractive);
  fetch.decoder =
      std::make_shared<NoMemoryDecoder>(fetch.decoder, /*decodes=*/false);
  FetchLog log;
  store_->Fetch(std::move(fetch), log.Watch());
  log.WaitForAll();
  EXPECT_THAT(log.Get(0).result, HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(store_->Lookup(blocks_.Key(0)), nullptr);
  EXPECT_EQ(store_->Stats().buffers_size_bytes, 0u);
  // The thread goes on.
  ExpectText(Fetch(1, FetchClass::kInteractive, false), 1);
}

TEST_F(PackedBlockTest, NoMemoryToPackLeavesTheText) {
  BlockFetch fetch = blocks_.Fetch(0, FetchClass::kInteractive);
  fetch.decoder =
      std::make_shared<NoMemoryDecoder>(fetch.decoder, /*decodes=*/true);
  FetchLog log;
  store_->Fetch(std::move(fetch), log.Watch());
  log.WaitForAll();
  ExpectText(log.Get(0).result.value_or(nullptr), 0);
  ExpectText(store_->Lookup(blocks_.Key(0)), 0);
}

}  // namespace
}  // namespace quire
