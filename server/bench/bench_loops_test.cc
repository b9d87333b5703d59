// SPDX-License-Identifier: GPL-3.0-or-later
//
// What archive_bench compares: requests, decoding out of memory, and reading.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/archive/archive.h"
#include "server/bench/bench_requests.h"
#include "server/bench/decode_loop.h"
#include "server/bench/storage_loop.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

constexpr uint64_t kStepSizeBytes = 100'000;
constexpr BenchClock::time_point kLongAgo = BenchClock::time_point::min();

class BenchLoopsTest : public ServerTest {
 protected:
  BenchLoopsTest() {
    const std::vector<TestDocument> documents = MakeDocuments(80, 31);
    all_ = Concatenate(documents);
    WriteArchive(archive_path(), documents);
    Open();
  }

  void Open() {
    QUIRE_ASSERT_OK_AND_ASSIGN(archive_, Archive::Open(archive_path(), {}));
    BlockStoreOptions options;
    options.cache_size_bytes = 0;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(options));
  }

  // Spoils the last byte of the first block.
  void Damage() {
    const Extent extent = archive_->BlockExtent({0, 0});
    std::fstream file(archive_path() + "/segment-00000000",
                      std::ios::in | std::ios::out | std::ios::binary);
    const auto at =
        static_cast<std::streamoff>(extent.offset.value + extent.size_bytes) -
        1;
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.flush());
  }

  BenchRequests Requests(bool in_order) const {
    return BenchRequests(archive_, in_order, kStepSizeBytes, /*seed=*/1);
  }

  std::string all_;
  std::shared_ptr<const Archive> archive_;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(BenchLoopsTest, AScanIsAllInOrderAndBeginsAgain) {
  BenchRequests requests = Requests(/*in_order=*/true);
  ASSERT_GT(all_.size(), 2 * kStepSizeBytes);
  for (int round = 0; round < 2; ++round) {
    uint64_t size_bytes = 0;
    while (size_bytes < all_.size()) {
      const std::vector<BlockSlice> slices = requests.Next();
      ASSERT_FALSE(slices.empty());
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const std::vector<BlockSlice> planned,
          archive_->Plan({LogicalOffset{size_bytes},
                          std::min(kStepSizeBytes, all_.size() - size_bytes)}));
      EXPECT_EQ(slices.front().block.block_index,
                planned.front().block.block_index);
      EXPECT_EQ(TextSizeBytes(slices), TextSizeBytes(planned));
      size_bytes += TextSizeBytes(slices);
    }
    EXPECT_EQ(size_bytes, all_.size());
  }
}

TEST_F(BenchLoopsTest, RangesHaveTheSizeThatWasAskedFor) {
  BenchRequests requests = Requests(/*in_order=*/false);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(TextSizeBytes(requests.Next()), kStepSizeBytes);
  }
}

TEST_F(BenchLoopsTest, WhatIsHeldInMemoryDecodesToTheText) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredBlocks stored,
                             StoredBlocks::Load(*archive_));
  const auto scratch = archive_->codec().NewScratch();
  std::string text;
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockSlice> slices,
                             archive_->Plan({LogicalOffset{0}, all_.size()}));
  for (const BlockSlice& slice : slices) {
    std::vector<uint8_t> raw(archive_->BlockSizeBytes(slice.block));
    const BlockPart whole = {.offset_in_block = 0, .text = raw};
    QUIRE_ASSERT_OK(archive_->DecodeBlock(
        slice.block,
        stored.Get(slice.block, archive_->BlockExtent(slice.block)),
        {&whole, 1}, *scratch));
    text.append(raw.begin(), raw.end());
  }
  EXPECT_EQ(text, all_);
}

TEST_F(BenchLoopsTest, EachThreadDecodesOneRequestAtLeast) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredBlocks stored,
                             StoredBlocks::Load(*archive_));
  BenchRequests requests = Requests(/*in_order=*/true);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const BenchCounts counts,
      DecodeFromMemory(*archive_, stored, requests, kLongAgo));
  EXPECT_EQ(counts.requests, std::max(1U, std::thread::hardware_concurrency()));
  EXPECT_GE(counts.blocks, counts.requests);
}

TEST_F(BenchLoopsTest, WhatWasBegunIsCounted) {
  BenchRequests requests = Requests(/*in_order=*/false);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const BenchCounts counts,
      ReadFromStore(archive_, requests, FetchClass::kInteractive,
                    /*in_flight=*/7, kLongAgo, *store_));
  EXPECT_EQ(counts.requests, 7);
  EXPECT_EQ(counts.text_size_bytes, 7 * kStepSizeBytes);
  EXPECT_GE(counts.blocks, 7);
}

TEST_F(BenchLoopsTest, ADamagedBlockIsAnError) {
  Damage();
  Open();
  QUIRE_ASSERT_OK_AND_ASSIGN(const StoredBlocks stored,
                             StoredBlocks::Load(*archive_));
  BenchRequests scan = Requests(/*in_order=*/true);
  EXPECT_EQ(
      DecodeFromMemory(*archive_, stored, scan, BenchClock::time_point::max())
          .status()
          .code(),
      absl::StatusCode::kDataLoss);
  BenchRequests again = Requests(/*in_order=*/true);
  EXPECT_EQ(ReadFromStore(archive_, again, FetchClass::kScan, /*in_flight=*/1,
                          BenchClock::time_point::max(), *store_)
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace quire
