// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/range_read.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codecs/base/checksum.h"
#include "server/service/read/read_planner.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

std::string TextOf(const std::vector<BlockPiece>& pieces) {
  std::string text;
  for (const BlockPiece& piece : pieces) {
    text += std::string(AsText(piece.bytes()));
  }
  return text;
}

class RangeReadTest : public ServerTest {
 protected:
  RangeReadTest() : documents_(MakeDocuments(80, 31)) {
    all_ = Concatenate(documents_);
    WriteArchive(archive_path(), documents_);
    Open();
  }

  void Open(RangeDecode range_decode = RangeDecode::kAuto,
            const std::string& device_model = "") {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        archive_, OpenServedArchive({"docs", archive_path()},
                                    std::make_shared<DecodeWorkspaces>(
                                        DecodeWorkspaces::kSizeBytesMin),
                                    {}, {}, range_decode));
    BlockStoreOptions options;
    // A few blocks only, so that they come and go.
    options.cache_size_bytes = 300000;
    options.device_model = device_model;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(options));
  }

  // Null if all blocks are cached and `done` was called.
  std::shared_ptr<RangeRead> Start(LogicalRange range, FetchClass fetch_class,
                                   RangeRead::Done done,
                                   FetchBundle* bundle = nullptr) {
    const std::vector<BlockSlice> slices = SplitAtParts(
        *archive_, PlanBlocks(*archive_->archive, range), BlockForm::kText);
    std::vector<BlockPiece> found;
    if (RangeRead::FindCached(*store_, *archive_, slices, BlockForm::kText,
                              fetch_class, found)) {
      done(std::move(found), RangeRead::EndedOn::kStarter);
      return nullptr;
    }
    return RangeRead::StartMissing(*store_, archive_, slices, BlockForm::kText,
                                   {fetch_class}, std::move(found),
                                   std::move(done), bundle);
  }

  // Waits for one result.
  class Result {
   public:
    RangeRead::Done Setter() {
      return [this](absl::StatusOr<std::vector<BlockPiece>> pieces,
                    RangeRead::EndedOn /*thread*/) {
        MutexLock lock(&mutex_);
        pieces_ = std::move(pieces);
        changed_.NotifyAll();
      };
    }

    absl::StatusOr<std::vector<BlockPiece>> Wait() {
      MutexLock lock(&mutex_);
      while (!pieces_.has_value()) {
        changed_.Wait(&mutex_);
      }
      return *std::move(pieces_);
    }

   private:
    Mutex mutex_;
    CondVar changed_;
    std::optional<absl::StatusOr<std::vector<BlockPiece>>> pieces_
        ABSL_GUARDED_BY(mutex_);
  };

  void ReadAndCompare(uint64_t offset, uint64_t size_bytes) {
    Result result;
    Start({{offset}, size_bytes}, FetchClass::kInteractive, result.Setter());
    const auto pieces = result.Wait();
    EXPECT_THAT(pieces, IsOk());
    EXPECT_TRUE(pieces.ok() &&
                TextOf(*pieces) == all_.substr(offset, size_bytes))
        << offset << " " << size_bytes;
  }

  // Of blocks in partitions, as WriteArchive() makes them.
  static constexpr uint64_t kPart = 4 << 10;

  std::vector<TestDocument> documents_;
  std::string all_;
  std::shared_ptr<const ServedArchive> archive_;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(RangeReadTest, GivesTheRangeAndItsChecksum) {
  for (const FetchClass fetch_class :
       {FetchClass::kInteractive, FetchClass::kBatch, FetchClass::kScan}) {
    for (const auto& [offset, size_bytes] :
         std::vector<std::pair<uint64_t, uint64_t>>{
             {0, 1}, {16383, 2}, {5000, 200000}, {all_.size(), 0}}) {
      Result result;
      Start({{offset}, size_bytes}, fetch_class, result.Setter());
      QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> pieces,
                                 result.Wait());
      const std::string expected = all_.substr(offset, size_bytes);
      EXPECT_TRUE(TextOf(pieces) == expected);
      EXPECT_EQ(ChecksumOf(pieces), Checksum64(AsBytes(expected)));
    }
  }
}

TEST_F(RangeReadTest, OfBlocksInPartitionsDecodesWhatItTouches) {
  for (const char* const codec :
       {"zlib/parts", "zstd/parts", "lz4/parts", "rlz/parts"}) {
    SCOPED_TRACE(codec);
    WriteArchive(archive_path(), documents_, codec);
    for (const RangeDecode method :
         {RangeDecode::kPartition, RangeDecode::kWhole}) {
      Open(method);
      const bool is_whole = method == RangeDecode::kWhole;
      // In two partitions of the second block.
      ReadAndCompare(5 * kPart + 10, kPart);
      BlockStoreStats stats = store_->Stats();
      EXPECT_EQ(stats.device_reads, 1u);
      EXPECT_EQ(stats.decoded_bytes, (is_whole ? 4 : 2) * kPart);
      EXPECT_EQ(stats.partial_decodes, is_whole ? 0u : 1u);
      EXPECT_EQ(stats.whole_decodes, is_whole ? 1u : 0u);
      // Both are cached, their neighbour only if all was decoded.
      ReadAndCompare(6 * kPart, kPart);
      EXPECT_EQ(store_->Stats().device_reads, 1u);
      ReadAndCompare(7 * kPart, 1);
      EXPECT_EQ(store_->Stats().device_reads, is_whole ? 1u : 2u);
      ReadAndCompare(0, 200000);
      ReadAndCompare(all_.size() - 5, 5);
      ReadAndCompare(all_.size(), 0);
    }
  }
}

TEST_F(RangeReadTest, OfItselfDecodesNoMoreThanItTouches) {
  WriteArchive(archive_path(), documents_, "zlib/parts");
  Open();
  // None follows a partition that is cached.
  uint64_t count = 0;
  for (const uint64_t part : {7U, 5U, 2U, 0U, 11U, 9U}) {
    ReadAndCompare(part * kPart + 10, 100);
    EXPECT_EQ(store_->Stats().partial_decodes, ++count);
    EXPECT_EQ(store_->Stats().decoded_bytes, count * kPart);
  }
}

TEST_F(RangeReadTest, DecodesTheBlockForAClientThatReadsOnFromASlowDrive) {
  WriteArchive(archive_path(), documents_, "lz4/parts");
  // Milliseconds for a read; decoding the block takes some hundredths of one.
  Open(RangeDecode::kAuto, "wd-red");
  constexpr uint64_t kCount = 20;
  for (uint64_t block = 1; block <= kCount; ++block) {
    ReadAndCompare(block * 4 * kPart, 100);
  }
  EXPECT_EQ(store_->Stats().partial_decodes, kCount);
  ReadAndCompare((kCount * 4 + 1) * kPart, 100);
  EXPECT_EQ(store_->Stats().whole_decodes, 1u);
  ReadAndCompare((kCount * 4 + 2) * kPart, kPart + 100);
  EXPECT_EQ(store_->Stats().device_reads, kCount + 1);
}

TEST_F(RangeReadTest, FindsWhatIsCachedAndReadsTheRest) {
  const LogicalRange first = {{100}, 500};
  const LogicalRange both = {{100}, archive_->archive->info().block_size_bytes};
  const std::vector<BlockSlice> slices = PlanBlocks(*archive_->archive, both);
  ASSERT_EQ(slices.size(), 2U);
  std::vector<BlockPiece> found;
  EXPECT_FALSE(RangeRead::FindCached(*store_, *archive_, slices,
                                     BlockForm::kText, FetchClass::kInteractive,
                                     found));
  EXPECT_EQ(found[0].block, nullptr);

  Result result;
  Start(first, FetchClass::kInteractive, result.Setter());
  ASSERT_TRUE(result.Wait().ok());
  EXPECT_FALSE(RangeRead::FindCached(*store_, *archive_, slices,
                                     BlockForm::kText, FetchClass::kInteractive,
                                     found));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].block, nullptr);
  EXPECT_EQ(found[1].block, nullptr);

  Result rest;
  RangeRead::StartMissing(*store_, archive_, slices, BlockForm::kText,
                          {FetchClass::kInteractive}, found, rest.Setter());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> pieces, rest.Wait());
  EXPECT_EQ(pieces[0].block, found[0].block);
  EXPECT_TRUE(TextOf(pieces) ==
              all_.substr(both.offset.value, both.size_bytes));
  ASSERT_TRUE(RangeRead::FindCached(*store_, *archive_, slices,
                                    BlockForm::kText, FetchClass::kInteractive,
                                    found));
  EXPECT_TRUE(TextOf(found) == TextOf(pieces));
}

TEST_F(RangeReadTest, ABundleBeginsTogether) {
  const uint64_t block_size = archive_->archive->info().block_size_bytes;
  constexpr size_t kRanges = 8;
  FetchBundle bundle;
  std::vector<Result> results(2 * kRanges);
  // Two ranges in each of some blocks that lie side by side.
  for (size_t i = 0; i < results.size(); ++i) {
    Start({{i / 2 * block_size + i}, 100}, FetchClass::kBatch,
          results[i].Setter(), &bundle);
  }
  EXPECT_EQ(store_->Stats().device_reads, 0U);
  bundle.Start(*store_);
  for (size_t i = 0; i < results.size(); ++i) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> pieces,
                               results[i].Wait());
    EXPECT_TRUE(TextOf(pieces) == all_.substr(i / 2 * block_size + i, 100));
  }
  EXPECT_EQ(store_->Stats().blocks_decoded, kRanges);
  EXPECT_LT(store_->Stats().device_reads, kRanges);
  // Nothing is begun twice.
  bundle.Start(*store_);
  EXPECT_EQ(store_->Stats().blocks_decoded, kRanges);
}

TEST_F(RangeReadTest, WhatIsCancelledBeforeItsBundleBeginsEndsOnce) {
  FetchBundle bundle;
  Result cancelled;
  Result kept;
  std::atomic<int> call_count{0};
  const std::shared_ptr<RangeRead> read = Start(
      {{0}, 100000}, FetchClass::kBatch,
      [&, set = cancelled.Setter()](
          absl::StatusOr<std::vector<BlockPiece>> pieces,
          RangeRead::EndedOn thread) {
        ++call_count;
        set(std::move(pieces), thread);
      },
      &bundle);
  Start({{200000}, 1000}, FetchClass::kBatch, kept.Setter(), &bundle);
  read->Cancel();
  EXPECT_EQ(call_count, 0);
  bundle.Start(*store_);
  const absl::StatusOr<std::vector<BlockPiece>> pieces = cancelled.Wait();
  // Unless it was at the device already.
  EXPECT_TRUE(pieces.ok() || absl::IsCancelled(pieces.status()))
      << pieces.status();
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> rest, kept.Wait());
  EXPECT_TRUE(TextOf(rest) == all_.substr(200000, 1000));
  EXPECT_EQ(call_count, 1);
}

TEST_F(RangeReadTest, EndsOnceHoweverItIsCancelled) {
  std::atomic<int> wrong_count{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 200; ++i) {
        const uint64_t offset = random() % all_.size();
        const uint64_t size_bytes =
            std::min<uint64_t>(random() % 100000, all_.size() - offset);
        auto result = std::make_shared<Result>();
        auto call_count = std::make_shared<std::atomic<int>>(0);
        std::shared_ptr<RangeRead> read =
            Start({{offset}, size_bytes}, FetchClass::kInteractive,
                  [result, call_count, set = result->Setter()](
                      absl::StatusOr<std::vector<BlockPiece>> pieces,
                      RangeRead::EndedOn thread) {
                    ++*call_count;
                    set(std::move(pieces), thread);
                  });
        if (read != nullptr && random() % 2 == 0) {
          read->Cancel();
        }
        const absl::StatusOr<std::vector<BlockPiece>> pieces = result->Wait();
        const bool right =
            pieces.ok()
                ? TextOf(*pieces) == all_.substr(offset, size_bytes)
                : pieces.status().code() == absl::StatusCode::kCancelled;
        if (!right || *call_count != 1) {
          ++wrong_count;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong_count, 0) << "seeds 1 to 4";
}

}  // namespace
}  // namespace quire
