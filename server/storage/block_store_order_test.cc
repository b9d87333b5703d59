// SPDX-License-Identifier: GPL-3.0-or-later
//
// In which order the store reads, and for whom.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"
#include "server/storage/block_store.h"
#include "server/storage/device_block_store.h"
#include "server/storage/storage_test_util.h"

namespace quire {
namespace {

// Takes whatever a file has.
class AnyBytes final : public BlockDecoder {
 public:
  absl::Status Decode(BlockAddress /*block*/, ByteView /*stored*/,
                      MutableByteView /*raw*/) const override {
    return absl::OkStatus();
  }
};

// A large file of nothing, in blocks that lie too far apart to be read
// together.
class SparseBlocks {
 public:
  static constexpr uint64_t kDistanceBytes = 128 << 10;

  explicit SparseBlocks(uint64_t count) : file_({}) {
    file_.Truncate(count * kDistanceBytes);
  }

  BlockFetch Fetch(uint64_t block_index, FetchClass fetch_class,
                   uint64_t client_id) const {
    return {.key = {.source_id = 1, .block = {0, block_index}},
            .extent = {.fd = file_.fd(),
                       .offset = FileOffset{block_index * kDistanceBytes},
                       .size_bytes = 512},
            .raw_size_bytes = 512,
            .fetch_class = fetch_class,
            .client_id = client_id,
            .decoder = decoder_};
  }

 private:
  TempFile file_;
  std::shared_ptr<const BlockDecoder> decoder_ = std::make_shared<AnyBytes>();
};

constexpr uint64_t kMany = 5'000;
constexpr uint64_t kFew = 5;
// Room for 56 blocks read but not decoded.
constexpr uint64_t kBuffersSizeBytes = 512 << 10;
// Those in the buffers, 64 and two for each of two clients' five until the
// first of the few is overdue, and one overdue read in four.
constexpr uint64_t kBeforeTheFewMax = 56 + 64 + 20 + 4 * kFew + 10;

class ManyAndFewTest : public ::testing::TestWithParam<FetchClass> {
 protected:
  // Client 1 wants all blocks but the first few, which client 2 wants
  // afterwards; the sweep has passed them by then. Waits until both have them.
  // Returns how many of client 1's came between client 2's asking and the last
  // of his.
  uint64_t Run(BlockStore& store, const std::function<void()>& serve) {
    std::vector<BlockStore::FetchItem> many;
    for (uint64_t i = 0; i < kMany; ++i) {
      many.push_back({blocks_.Fetch(kFew + i, GetParam(), 1),
                      [this, done = log_.Watch()](const auto& end) {
                        ++many_ended_;
                        done(end);
                      }});
    }
    store.FetchAll(std::move(many));
    for (uint64_t i = 0; i < kFew; ++i) {
      store.Fetch(blocks_.Fetch(i, GetParam(), 2),
                  [this, done = log_.Watch()](const auto& end) {
                    many_before_few_ = many_ended_.load();
                    done(end);
                  });
    }
    const uint64_t many_before_asking = many_ended_;
    serve();
    log_.WaitForAll();
    for (uint64_t i = 0; i < kMany + kFew; ++i) {
      EXPECT_TRUE(log_.Get(i).result.ok());
    }
    // The few may have been quicker than this thread.
    return many_before_few_ -
           std::min<uint64_t>(many_before_few_, many_before_asking);
  }

  SparseBlocks blocks_{kMany + kFew};
  std::atomic<uint64_t> many_ended_ = 0;
  std::atomic<uint64_t> many_before_few_ = 0;
  FetchLog log_;
};

TEST_P(ManyAndFewTest, AFewDoNotWaitForAnothersBacklog) {
  ManualDevice* device = nullptr;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto store,
      DeviceBlockStore::Create(
          {.cache_size_bytes = 0, .buffers_size_bytes_max = kBuffersSizeBytes},
          [&](Device::Done done) {
            auto made = std::make_unique<ManualDevice>(std::move(done));
            device = made.get();
            return OpenedDevice{std::move(made), ""};
          }));
  const uint64_t before = Run(*store, [&] {
    for (uint64_t served = 0; served < kMany + kFew; ++served) {
      // What is next is begun when what was served has been decoded.
      while (device->waiting().empty()) {
        std::this_thread::yield();
      }
      device->Serve();
    }
  });
  EXPECT_LE(before, kBeforeTheFewMax);
}

TEST_P(ManyAndFewTest, NorOnAModelledDrive) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto store,
      BlockStore::Create({.cache_size_bytes = 0,
                          .buffers_size_bytes_max = kBuffersSizeBytes,
                          .device_model = "table1-ssd"}));
  EXPECT_LE(Run(*store, [] {}), kBeforeTheFewMax);
}

INSTANTIATE_TEST_SUITE_P(Classes, ManyAndFewTest,
                         ::testing::Values(FetchClass::kInteractive,
                                           FetchClass::kBatch,
                                           FetchClass::kScan));

}  // namespace
}  // namespace quire
