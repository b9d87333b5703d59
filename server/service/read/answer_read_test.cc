// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_read.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codecs/base/checksum.h"
#include "server/archive/archive_writer.h"
#include "server/service/read/answer_plan.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const std::vector<BlockPiece>& pieces) {
  std::string text;
  for (const BlockPiece& piece : pieces) {
    text += std::string(AsText(piece.bytes()));
  }
  return text;
}

class AnswerReadTest : public ServerTest {
 protected:
  AnswerReadTest() : documents_(MakeDocuments(80, 31)) {
    all_ = Concatenate(documents_);
    WriteArchive(archive_path(), documents_);
    Open();
  }

  void Open(const std::string& device_model = "") {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        archive_, OpenServedArchive({"docs", archive_path()},
                                    std::make_shared<DecodeWorkspaces>(
                                        DecodeWorkspaces::kSizeBytesMin),
                                    std::make_shared<WireEncoders>(), {}));
    BlockStoreOptions options;
    // A few blocks only, so that they are evicted.
    options.cache_size_bytes = 300000;
    options.device_model = device_model;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(options));
  }

  // Returns null if `done` was called.
  std::shared_ptr<AnswerRead> Start(LogicalRange range, FetchClass fetch_class,
                                    AnswerRead::Done done,
                                    FetchBundle* bundle = nullptr) {
    return AnswerRead::Start(
        *store_, archive_,
        PlanAnswer(ServedContents(archive_), range, v1::WIRE_ENCODING_IDENTITY),
        {fetch_class}, std::move(done), bundle);
  }

  // Waits for one result.
  class Result {
   public:
    AnswerRead::Done Setter() {
      return [this](absl::StatusOr<Answer> answer) {
        MutexLock lock(&mutex_);
        answer_ = std::move(answer);
        changed_.NotifyAll();
      };
    }

    absl::StatusOr<std::vector<BlockPiece>> Wait() {
      MutexLock lock(&mutex_);
      while (!answer_.has_value()) {
        changed_.Wait(&mutex_);
      }
      if (!answer_->ok()) {
        return answer_->status();
      }
      return std::move((*answer_)->pieces);
    }

   private:
    Mutex mutex_;
    CondVar changed_;
    std::optional<absl::StatusOr<Answer>> answer_ ABSL_GUARDED_BY(mutex_);
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

  // Partition size of WriteArchive().
  static constexpr uint64_t kPart = 4 << 10;

  std::vector<TestDocument> documents_;
  std::string all_;
  std::shared_ptr<const ServedArchive> archive_;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(AnswerReadTest, GivesTheRangeAndItsChecksum) {
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

TEST_F(AnswerReadTest, OfBlocksInPartitionsDecodesWhatItTouches) {
  for (const char* const codec :
       {"zlib/parts", "zstd/parts", "lz4/parts", "rlz/parts"}) {
    SCOPED_TRACE(codec);
    WriteArchive(archive_path(), documents_, codec);
    Open();
    // In two partitions of the second block.
    ReadAndCompare(5 * kPart + 10, kPart);
    BlockStoreStats stats = store_->Stats();
    EXPECT_EQ(stats.device_reads, 1u);
    EXPECT_EQ(stats.decoded_bytes, 2 * kPart);
    EXPECT_EQ(stats.partial_decodes, 1u);
    EXPECT_EQ(stats.whole_decodes, 0u);
    // Both are cached; their neighbour is not.
    ReadAndCompare(6 * kPart, kPart);
    EXPECT_EQ(store_->Stats().device_reads, 1u);
    ReadAndCompare(7 * kPart, 1);
    EXPECT_EQ(store_->Stats().device_reads, 2u);
    ReadAndCompare(0, 200000);
    ReadAndCompare(all_.size() - 5, 5);
    ReadAndCompare(all_.size(), 0);
  }
}

TEST_F(AnswerReadTest, OfItselfDecodesNoMoreThanItTouches) {
  WriteArchive(archive_path(), documents_, "zlib/parts");
  Open();
  // None follows a cached partition.
  uint64_t count = 0;
  for (const uint64_t part : {7U, 5U, 2U, 0U, 11U, 9U}) {
    ReadAndCompare(part * kPart + 10, 100);
    EXPECT_EQ(store_->Stats().partial_decodes, ++count);
    EXPECT_EQ(store_->Stats().decoded_bytes, count * kPart);
  }
}

TEST_F(AnswerReadTest, DecodesTheBlockForAClientThatReadsOnFromASlowDrive) {
  WriteArchive(archive_path(), documents_, "lz4/parts");
  // A read takes milliseconds; decoding the block some hundredths of one.
  Open("wd-red");
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

TEST_F(AnswerReadTest, FindsWhatIsCachedAndReadsTheRest) {
  const LogicalRange first = {{100}, 500};
  const LogicalRange both = {{100}, archive_->archive->info().block_size_bytes};
  Result result;
  Start(first, FetchClass::kInteractive, result.Setter());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> found,
                             result.Wait());
  Result rest;
  Start(both, FetchClass::kInteractive, rest.Setter());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> pieces, rest.Wait());
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].block, found[0].block);
  EXPECT_TRUE(TextOf(pieces) ==
              all_.substr(both.offset.value, both.size_bytes));
  EXPECT_EQ(store_->Stats().blocks_decoded, 2U);
  // All blocks are cached: the answer comes before Start() returns.
  Result again;
  EXPECT_EQ(Start(both, FetchClass::kInteractive, again.Setter()), nullptr);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> same, again.Wait());
  EXPECT_TRUE(TextOf(same) == TextOf(pieces));
  EXPECT_EQ(store_->Stats().blocks_decoded, 2U);
}

TEST_F(AnswerReadTest, ABundleBeginsTogether) {
  const uint64_t block_size = archive_->archive->info().block_size_bytes;
  constexpr size_t kRanges = 8;
  FetchBundle bundle;
  std::vector<Result> results(2 * kRanges);
  // Two ranges in each of several adjacent blocks.
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
  // Nothing starts twice.
  bundle.Start(*store_);
  EXPECT_EQ(store_->Stats().blocks_decoded, kRanges);
}

TEST_F(AnswerReadTest, WhatIsCancelledBeforeItsBundleBeginsEndsOnce) {
  FetchBundle bundle;
  Result cancelled;
  Result kept;
  std::atomic<int> call_count{0};
  const std::shared_ptr<AnswerRead> read = Start(
      {{0}, 100000}, FetchClass::kBatch,
      [&, set = cancelled.Setter()](absl::StatusOr<Answer> answer) {
        ++call_count;
        set(std::move(answer));
      },
      &bundle);
  Start({{200000}, 1000}, FetchClass::kBatch, kept.Setter(), &bundle);
  read->Cancel();
  EXPECT_EQ(call_count, 0);
  bundle.Start(*store_);
  const absl::StatusOr<std::vector<BlockPiece>> pieces = cancelled.Wait();
  // Unless it had reached the device.
  EXPECT_TRUE(pieces.ok() || absl::IsCancelled(pieces.status()))
      << pieces.status();
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> rest, kept.Wait());
  EXPECT_TRUE(TextOf(rest) == all_.substr(200000, 1000));
  EXPECT_EQ(call_count, 1);
}

TEST_F(AnswerReadTest, EndsWithTheErrorOfABlock) {
  int damaged_count = 0;
  for (const auto& entry : fs::directory_iterator(archive_path())) {
    if (entry.path().filename().string().starts_with("segment-")) {
      std::fstream file(entry.path(),
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) / 4));
      file << std::string(64, '\x5A');
      ++damaged_count;
    }
  }
  ASSERT_GT(damaged_count, 0);
  Result result;
  Start({{0}, all_.size()}, FetchClass::kInteractive, result.Setter());
  EXPECT_EQ(result.Wait().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(AnswerReadTest, EndsOnceHoweverItIsCancelled) {
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
        std::shared_ptr<AnswerRead> read =
            Start({{offset}, size_bytes}, FetchClass::kInteractive,
                  [result, call_count,
                   set = result->Setter()](absl::StatusOr<Answer> answer) {
                    ++*call_count;
                    set(std::move(answer));
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

// An archive of two blocks whose text consists of short runs out of the first,
// many of them of the same bytes.
class ScatteredReadTest : public AnswerReadTest {
 protected:
  static constexpr uint64_t kBlockSizeBytes = 16 << 10;
  static constexpr uint64_t kRunCount = 2'000;
  static constexpr uint64_t kRunSizeBytes = 300;

  ScatteredReadTest() {
    std::string stored(2 * kBlockSizeBytes, 'x');
    for (size_t i = 0; i < stored.size(); ++i) {
      stored[i] = static_cast<char>(i * i % 251);
    }
    all_ = stored;
    LayoutSection layout = {.stored_text_size_bytes = stored.size(),
                            .runs = {{stored.size(), 0}},
                            .checksums = {}};
    for (uint64_t i = 0; i < kRunCount; ++i) {
      layout.runs.push_back(
          {kRunSizeBytes, i * 7'001 % (kBlockSizeBytes - kRunSizeBytes)});
      all_ += stored.substr(layout.runs.back().stored_offset, kRunSizeBytes);
    }
    DocumentIndexBuilder index;
    EXPECT_TRUE(index.Add({.id = "all", .size_bytes = all_.size()}).ok());
    const ArchiveWriterOptions options = {.codec = {.id = CodecId::kCopy},
                                          .block_size_bytes = kBlockSizeBytes,
                                          .replace = true};
    auto writer = ArchiveWriter::Create(archive_path(), options, nullptr);
    EXPECT_TRUE(writer.ok());
    EXPECT_TRUE((*writer)->SetLayout(std::move(layout), std::move(index)).ok());
    for (size_t at = 0; at < stored.size(); at += kBlockSizeBytes) {
      EXPECT_TRUE(
          (*writer)
              ->AppendBlock(AsBytes(stored).subspan(at, kBlockSizeBytes), {})
              .ok());
    }
    EXPECT_TRUE((*writer)->Commit().ok());
    writer->reset();
    Open();
  }

  AnswerPlan Plan(uint64_t offset, uint64_t size_bytes) const {
    return PlanAnswer(ServedContents(archive_),
                      LogicalRange{{offset}, size_bytes},
                      v1::WIRE_ENCODING_IDENTITY);
  }
};

TEST_F(ScatteredReadTest, CopiesShortSlicesAndLetsTheirBlocksGo) {
  const uint64_t offset = 2 * kBlockSizeBytes + 100;
  const AnswerPlan plan = Plan(offset, 20 * kRunSizeBytes);
  EXPECT_EQ(plan.slices.size(), 21u);
  EXPECT_EQ(plan.copied_text_bytes, 20 * kRunSizeBytes);
  EXPECT_EQ(plan.block_bytes, 0u);
  EXPECT_FALSE(plan.is_shareable);
  Result result;
  Start({{offset}, 20 * kRunSizeBytes}, FetchClass::kInteractive,
        result.Setter());
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<BlockPiece> pieces,
                             result.Wait());
  EXPECT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(TextOf(pieces) == all_.substr(offset, 20 * kRunSizeBytes));
  // All runs are in one block, which is fetched once.
  EXPECT_EQ(store_->Stats().blocks_decoded, 1u);
}

TEST_F(ScatteredReadTest, MixesCopiesAndReferences) {
  // Both blocks contiguously, then runs.
  const uint64_t size_bytes = 2 * kBlockSizeBytes + 1'000;
  const AnswerPlan plan = Plan(0, size_bytes);
  EXPECT_EQ(plan.copied_text_bytes, 1'000u);
  EXPECT_EQ(plan.block_bytes, 2 * kBlockSizeBytes);
  ReadAndCompare(0, size_bytes);
  EXPECT_EQ(store_->Stats().blocks_decoded, 2u);
}

TEST_F(ScatteredReadTest, EveryRangeIsRightAndWithinItsBound) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % all_.size();
    const uint64_t size_bytes =
        std::min<uint64_t>(random() % 50'000, all_.size() - offset);
    ReadAndCompare(offset, size_bytes);
    const AnswerPlan plan = Plan(offset, size_bytes);
    EXPECT_LE(plan.memory_bytes() + plan.serialised_bytes,
              AnswerBytesMax(ServedContents(archive_), size_bytes,
                             v1::WIRE_ENCODING_IDENTITY))
        << offset << " " << size_bytes;
  }
}

TEST_F(AnswerReadTest, PlansOfARowAreSharedAndWithinTheirBound) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % all_.size();
    const uint64_t size_bytes =
        std::min<uint64_t>(random() % 100'000, all_.size() - offset);
    for (const v1::WireEncoding encoding :
         {v1::WIRE_ENCODING_IDENTITY, v1::WIRE_ENCODING_STORED}) {
      const AnswerPlan plan =
          PlanAnswer(ServedContents(archive_),
                     LogicalRange{{offset}, size_bytes}, encoding);
      EXPECT_TRUE(plan.is_shareable);
      EXPECT_EQ(plan.copied_text_bytes, 0u);
      EXPECT_EQ(plan.size_bytes, size_bytes);
      EXPECT_LE(plan.memory_bytes() + plan.serialised_bytes,
                AnswerBytesMax(ServedContents(archive_), size_bytes, encoding));
    }
  }
}

TEST_F(AnswerReadTest, ChunksEndWhereBlocksDo) {
  const uint64_t block_size = archive_->archive->info().block_size_bytes;
  const auto chunk = [&](uint64_t size_bytes, bool is_last,
                         uint64_t memory_bytes_max) {
    return PlanChunk(ServedContents(archive_), LogicalRange{{100}, size_bytes},
                     is_last, v1::WIRE_ENCODING_IDENTITY, memory_bytes_max)
        .size_bytes;
  };
  EXPECT_EQ(chunk(5 * block_size, false, 1 << 20), 5 * block_size - 100);
  EXPECT_EQ(chunk(5 * block_size, true, 1 << 20), 5 * block_size);
  EXPECT_EQ(chunk(5 * block_size, true, 2 * block_size), 2 * block_size - 100);
  // At least one block.
  EXPECT_EQ(chunk(5 * block_size, true, 1), block_size - 100);
}

}  // namespace
}  // namespace quire
