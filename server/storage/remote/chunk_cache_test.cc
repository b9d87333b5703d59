// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/chunk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/storage/remote/chunk_map.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kChunk = 16 << 10;

class ChunkCacheTest : public ::testing::Test {
 protected:
  ChunkCacheTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }

  ~ChunkCacheTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<ChunkCache> OpenCache(uint64_t size_bytes_max) {
    auto cache = ChunkCache::Open({.directory = directory_,
                                   .size_bytes_max = size_bytes_max,
                                   .chunk_size_bytes = kChunk});
    QUIRE_EXPECT_OK(cache.status());
    return *std::move(cache);
  }

  // A file of `count` chunks of which the first and the last are kept.
  CachedFilePtr OpenCopy(ChunkCache& cache, const std::string& name,
                         uint64_t count) {
    auto file = cache.OpenFile(directory_ + "/" + name, count * kChunk,
                               (count - 1) * kChunk);
    QUIRE_EXPECT_OK(file.status());
    return *std::move(file);
  }

  static bool Fill(ChunkCache& cache, CachedFile& file, uint64_t chunk) {
    const ChunkRange range = {.first = chunk, .count = 1};
    if (!cache.Reserve(file, range).ok()) {
      return false;
    }
    const std::vector<uint8_t> bytes(file.map.SizeOf(range),
                                     static_cast<uint8_t>(chunk + 1));
    QUIRE_EXPECT_OK(cache.Write(file, file.map.StartOf(chunk), bytes));
    cache.Commit(file, range);
    return true;
  }

  static bool Has(ChunkCache& cache, CachedFile& file, uint64_t chunk) {
    return cache.AllPresent(file, {.first = chunk, .count = 1});
  }

  uint64_t AllocatedBytes(const std::string& name) const {
    struct stat status {};

    EXPECT_EQ(stat((directory_ + "/" + name).c_str(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  std::string directory_;
};

TEST(ChunkMapTest, DividesFiles) {
  ChunkMap map(100, 16, 5);
  EXPECT_EQ(map.count(), 7U);
  EXPECT_EQ(map.Covering(0, 1), (ChunkRange{.first = 0, .count = 1}));
  EXPECT_EQ(map.Covering(15, 2), (ChunkRange{.first = 0, .count = 2}));
  EXPECT_EQ(map.Covering(16, 16), (ChunkRange{.first = 1, .count = 1}));
  EXPECT_EQ(map.Covering(90, 10), (ChunkRange{.first = 5, .count = 2}));
  EXPECT_EQ(map.SizeOf({.first = 5, .count = 2}), 20U);
  EXPECT_TRUE(map.IsKept(0));
  EXPECT_FALSE(map.IsKept(4));
  EXPECT_TRUE(map.IsKept(5));
  map.EndWrite({.first = 1, .count = 2});
  map.EndWrite({.first = 4, .count = 1});
  EXPECT_THAT(
      map.Runs({.first = 0, .count = 6}),
      ElementsAre(
          ChunkRun{.range = {.first = 0, .count = 1}},
          ChunkRun{.range = {.first = 1, .count = 2}, .is_present = true},
          ChunkRun{.range = {.first = 3, .count = 1}},
          ChunkRun{.range = {.first = 4, .count = 1}, .is_present = true},
          ChunkRun{.range = {.first = 5, .count = 1}}));
}

TEST(ChunkMapTest, KeepsHeaderAndEndExceptForAHole) {
  const auto kept = [](const ChunkMap& map) {
    std::vector<uint64_t> chunks;
    uint64_t end = 0;
    for (const ChunkRange& range : map.KeptRanges()) {
      EXPECT_TRUE(chunks.empty() || range.first > end);
      for (uint64_t i = range.first; i < range.end(); ++i) {
        EXPECT_TRUE(map.IsKept(i));
        chunks.push_back(i);
      }
      end = range.end();
    }
    return chunks;
  };
  using Chunks = std::vector<uint64_t>;
  EXPECT_EQ(kept(ChunkMap(95, 10, 7)), (Chunks{0, 7, 8, 9}));
  EXPECT_EQ(kept(ChunkMap(95, 10, 1)), (Chunks{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(kept(ChunkMap(95, 10, 4, {.first = 5, .count = 3})),
            (Chunks{0, 4, 8, 9}));
  EXPECT_EQ(kept(ChunkMap(95, 10, 4, {.first = 4, .count = 6})), (Chunks{0}));
  EXPECT_EQ(kept(ChunkMap(0, 10, 0)), Chunks{});
  ChunkMap map(95, 10, 4, {.first = 5, .count = 3});
  map.EndWrite({.first = 0, .count = 10});
  for (const uint64_t victim : {1U, 2U, 3U, 5U, 6U, 7U}) {
    ASSERT_EQ(map.NextVictim(0), victim);
    map.Drop({.first = victim, .count = 1});
  }
  EXPECT_EQ(map.NextVictim(0), std::nullopt);
}

TEST(ChunkMapTest, GivesEachChunkASecondChance) {
  ChunkMap map(200 * 16, 16, 199);
  for (const uint64_t chunk : {0U, 3U, 70U, 150U, 199U}) {
    map.EndWrite({.first = chunk, .count = 1});
  }
  map.Pin({.first = 3, .count = 1});
  map.Unpin({.first = 3, .count = 1});
  EXPECT_EQ(map.NextVictim(0), 70U);
  EXPECT_EQ(map.NextVictim(71), 150U);
  EXPECT_EQ(map.NextVictim(151), std::nullopt);
  // Its mark of use is gone.
  EXPECT_EQ(map.NextVictim(0), 3U);
  map.Pin({.first = 3, .count = 1});
  EXPECT_EQ(map.NextVictim(0), 70U);
  EXPECT_EQ(map.NextVictim(0), 70U);
}

TEST_F(ChunkCacheTest, FindsChunksAgain) {
  {
    const auto cache = OpenCache(1 << 20);
    const CachedFilePtr file = OpenCopy(*cache, "a", 10);
    EXPECT_TRUE(Fill(*cache, *file, 0));
    EXPECT_TRUE(Fill(*cache, *file, 5));
    EXPECT_TRUE(Fill(*cache, *file, 9));
    EXPECT_EQ(cache->GetStats().used_bytes, 3U * kChunk);
    // As after a crash: a part of a chunk.
    const std::vector<uint8_t> page(4096, 1);
    EXPECT_EQ(pwrite(file->fd.get(), page.data(), page.size(), 7 * kChunk),
              4096);
  }
  const auto cache = OpenCache(1 << 20);
  const CachedFilePtr file = OpenCopy(*cache, "a", 10);
  for (uint64_t chunk = 0; chunk < 10; ++chunk) {
    EXPECT_EQ(Has(*cache, *file, chunk),
              chunk == 0 || chunk == 5 || chunk == 9);
  }
  EXPECT_EQ(cache->GetStats().used_bytes, 3U * kChunk);
  EXPECT_EQ(AllocatedBytes("a"), 3U * kChunk);
  EXPECT_EQ(cache->FindFile(file->fd.get()), file);
}

TEST_F(ChunkCacheTest, ReplacesAFileOfAnotherSize) {
  const auto cache = OpenCache(1 << 20);
  const CachedFilePtr file = OpenCopy(*cache, "a", 10);
  EXPECT_TRUE(Fill(*cache, *file, 3));
  EXPECT_EQ(OpenCopy(*cache, "a", 10), file);
  const CachedFilePtr other = OpenCopy(*cache, "a", 11);
  EXPECT_NE(other, file);
  EXPECT_FALSE(Has(*cache, *other, 3));
}

TEST_F(ChunkCacheTest, EvictsButNeverKeptOrPinnedChunks) {
  const auto cache = OpenCache(5 * kChunk);
  const CachedFilePtr a = OpenCopy(*cache, "a", 10);
  const CachedFilePtr b = OpenCopy(*cache, "b", 10);
  EXPECT_TRUE(Fill(*cache, *a, 0));
  EXPECT_TRUE(Fill(*cache, *a, 9));
  EXPECT_TRUE(Fill(*cache, *a, 4));
  ASSERT_TRUE(cache->PinAll(*a, {.first = 4, .count = 1}));
  EXPECT_TRUE(Fill(*cache, *a, 5));
  EXPECT_TRUE(Fill(*cache, *b, 3));
  EXPECT_TRUE(Fill(*cache, *b, 4));
  EXPECT_TRUE(Fill(*cache, *b, 5));
  EXPECT_TRUE(Has(*cache, *a, 0));
  EXPECT_TRUE(Has(*cache, *a, 9));
  EXPECT_TRUE(Has(*cache, *a, 4));
  EXPECT_FALSE(Has(*cache, *a, 5));
  EXPECT_LE(AllocatedBytes("a") + AllocatedBytes("b"), 5U * kChunk);
  // Nothing can be evicted for more than there is.
  EXPECT_THAT(cache->Reserve(*b, {.first = 1, .count = 3}),
              HasCode(absl::StatusCode::kResourceExhausted));
  cache->Unpin(*a, {.first = 4, .count = 1});
  QUIRE_EXPECT_OK(cache->Reserve(*b, {.first = 1, .count = 3}));
  cache->Abandon(*b, {.first = 1, .count = 3});
  EXPECT_EQ(cache->GetStats().used_bytes, 2U * kChunk);
}

TEST_F(ChunkCacheTest, DistrustedChunksAreWrittenAgain) {
  const auto cache = OpenCache(3 * kChunk);
  const CachedFilePtr a = OpenCopy(*cache, "a", 10);
  EXPECT_TRUE(Fill(*cache, *a, 4));
  cache->Invalidate(*a, {.first = 3, .count = 3});
  EXPECT_FALSE(Has(*cache, *a, 4));
  EXPECT_EQ(cache->GetStats().invalidated_chunks, 1U);
  EXPECT_EQ(cache->GetStats().used_bytes, kChunk);
  EXPECT_TRUE(Fill(*cache, *a, 4));
  EXPECT_EQ(cache->GetStats().used_bytes, kChunk);
}

TEST_F(ChunkCacheTest, RetiredFilesLeaveNothing) {
  const auto cache = OpenCache(1 << 20);
  const CachedFilePtr a = OpenCopy(*cache, "a", 10);
  EXPECT_TRUE(Fill(*cache, *a, 0));
  EXPECT_TRUE(Fill(*cache, *a, 4));
  EXPECT_THAT(cache->FilesBelow(directory_), ElementsAre(a));
  cache->Retire(a);
  cache->Retire(a);
  EXPECT_EQ(AllocatedBytes("a"), 0U);
  EXPECT_EQ(cache->GetStats().used_bytes, 0U);
  EXPECT_THAT(cache->Reserve(*a, {.first = 1, .count = 1}),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(cache->FilesBelow(directory_), ElementsAre());
}

// A full disk is not a full cache: eviction does not help.
TEST_F(ChunkCacheTest, AFailingDiskIsNamed) {
  const auto cache = OpenCache(1 << 20);
  const CachedFilePtr a = OpenCopy(*cache, "a", 10);
  EXPECT_TRUE(Fill(*cache, *a, 0));
  const ChunkRange range = {.first = 4, .count = 1};
  QUIRE_EXPECT_OK(cache->Reserve(*a, range));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 2 * kChunk, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status failed =
      cache->Write(*a, 4 * kChunk, std::vector<uint8_t>(kChunk));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable,
                                HasSubstr("free space on the disk")));
  cache->Abandon(*a, range);
  EXPECT_EQ(cache->Reserve(*a, range), failed);
  EXPECT_EQ(cache->GetStats().evicted_chunks, 0U);
  EXPECT_TRUE(Has(*cache, *a, 0));
}

TEST_F(ChunkCacheTest, CountsUsedBytesUnderRandomUse) {
  std::mt19937 random(20261126);
  const auto cache = OpenCache(20 * kChunk);
  std::vector<CachedFilePtr> files = {OpenCopy(*cache, "a", 30),
                                      OpenCopy(*cache, "b", 200)};
  std::vector<std::pair<CachedFilePtr, ChunkRange>> pins;
  for (int i = 0; i < 5000; ++i) {
    const CachedFilePtr& file = files[random() % files.size()];
    const uint64_t first = random() % (file->map.count() - 3);
    const ChunkRange range = {.first = first, .count = 1 + random() % 3};
    switch (random() % 5) {
      case 0:
        if (pins.size() < 4 && cache->PinAll(*file, range)) {
          pins.emplace_back(file, range);
        }
        break;
      case 1:
        if (!pins.empty()) {
          cache->Unpin(*pins.back().first, pins.back().second);
          pins.pop_back();
        }
        break;
      case 2:
        cache->Invalidate(*file, range);
        break;
      default:
        if (!cache->AllPresent(*file, range) &&
            cache->Reserve(*file, range).ok()) {
          const std::vector<uint8_t> bytes(file->map.SizeOf(range), 1);
          QUIRE_EXPECT_OK(
              cache->Write(*file, file->map.StartOf(range.first), bytes));
          random() % 4 == 0 ? cache->Abandon(*file, range)
                            : cache->Commit(*file, range);
        }
    }
    ASSERT_LE(cache->GetStats().used_bytes, 20U * kChunk);
  }
  EXPECT_EQ(AllocatedBytes("a") + AllocatedBytes("b"),
            cache->GetStats().used_bytes);
}

TEST_F(ChunkCacheTest, IsOfOneProcess) {
  const auto cache = OpenCache(1 << 20);
  const auto second = ChunkCache::Open({.directory = directory_,
                                        .size_bytes_max = 1 << 20,
                                        .chunk_size_bytes = kChunk});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  std::string trial_directory;
  {
    const auto trial = ChunkCache::Open({.directory = directory_,
                                         .size_bytes_max = 1 << 20,
                                         .chunk_size_bytes = kChunk,
                                         .is_trial = true});
    QUIRE_ASSERT_OK(trial.status());
    trial_directory = (*trial)->directory();
    EXPECT_NE(trial_directory, directory_);
  }
  EXPECT_FALSE(std::filesystem::exists(trial_directory));
}

// remote_archive_test.py has a file system without holes.
// Any user may put files into a directory such as /tmp.
TEST_F(ChunkCacheTest, WritesToNoFileOfOthers) {
  namespace fs = std::filesystem;
  const fs::path directory = directory_;
  const fs::path victim = directory / "victim";
  const std::string text(2 * kChunk, 'v');
  const auto is_untouched = [&] {
    std::string now;
    std::getline(std::ifstream(victim, std::ios::binary), now);
    return now == text;
  };
  std::ofstream(victim, std::ios::binary) << text;
  const auto cache = OpenCache(4 * kChunk);
  // Where a new file is prepared, and at its name: links, and a hard link.
  fs::create_symlink(victim, directory / "a.new");
  fs::create_symlink(victim, directory / "b");
  fs::create_hard_link(victim, directory / "c");
  for (const char* name : {"a", "b", "c"}) {
    const CachedFilePtr file = OpenCopy(*cache, name, 2);
    EXPECT_FALSE(file->map.IsPresent(0)) << name;
    ASSERT_TRUE(Fill(*cache, *file, 0));
    EXPECT_TRUE(is_untouched()) << name;
    EXPECT_FALSE(fs::is_symlink(directory / name));
  }
  ASSERT_EQ(mkfifo((directory / "d").c_str(), 0600), 0);
  ASSERT_TRUE(Fill(*cache, *OpenCopy(*cache, "d", 2), 0));

  fs::create_directory(directory / "real");
  fs::create_directory_symlink(directory / "real", directory / "link");
  QUIRE_EXPECT_OK(cache->MakeDirectory(directory / "real"));
  QUIRE_EXPECT_OK(cache->MakeDirectory(directory / "new"));
  EXPECT_THAT(cache->MakeDirectory(directory / "link"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("is not a directory of this user")));
  if (geteuid() == 0) {
    ASSERT_EQ(chown((directory / "real").c_str(), 12345, 12345), 0);
    EXPECT_FALSE(cache->MakeDirectory(directory / "real").ok());
    ASSERT_EQ(chown((directory / "a").c_str(), 12345, 12345), 0);
    EXPECT_FALSE(OpenCopy(*cache, "a", 2)->map.IsPresent(0));
  }
}

TEST_F(ChunkCacheTest, RefusesALockOfOthers) {
  const std::filesystem::path directory = directory_;
  std::ofstream(directory / "victim") << "v";
  const ChunkCache::Options options = {.directory = directory_,
                                       .size_bytes_max = 4 * kChunk,
                                       .chunk_size_bytes = kChunk};
  std::filesystem::create_symlink(directory / "victim", directory / "LOCK");
  EXPECT_FALSE(ChunkCache::Open(options).ok());
  std::filesystem::remove(directory / "LOCK");
  std::filesystem::create_hard_link(directory / "victim", directory / "LOCK");
  EXPECT_THAT(ChunkCache::Open(options),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("LOCK: is not a file of this user alone")));
}

TEST_F(ChunkCacheTest, RefusesDirectoriesWithoutFiles) {
  const auto cache = ChunkCache::Open({.directory = "/proc/self/task",
                                       .size_bytes_max = 1 << 20,
                                       .chunk_size_bytes = kChunk});
  EXPECT_FALSE(cache.ok());
}

TEST_F(ChunkCacheTest, RefusesOddChunks) {
  for (const uint32_t size_bytes : {0U, 1000U, 4097U, 32U << 20}) {
    const auto cache = ChunkCache::Open({.directory = directory_,
                                         .size_bytes_max = 1 << 20,
                                         .chunk_size_bytes = size_bytes});
    EXPECT_EQ(cache.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ChunkCacheTest, MapsAreBoundedUntilTheLastReaderOfAFileHasEnded) {
  const auto cache = OpenCache(1 << 20);
  // Maps grow by steps of 64 chunks.
  const uint64_t map_bytes = ChunkMap::MemoryBytes(64 * kChunk, kChunk);
  cache->SetMapBytesMax(3 * map_bytes);
  CachedFilePtr first = OpenCopy(*cache, "first", 100);
  OpenCopy(*cache, "second", 64);
  const auto open = [&](const std::string& name) {
    return cache->OpenFile(directory_ + "/" + name, kChunk, 0).status();
  };
  EXPECT_THAT(
      open("third"),
      FailsWith(absl::StatusCode::kResourceExhausted,
                HasSubstr("third: its chunk map needs 24 B of memory, and "
                          "those of all local copies can have 72 B; raise "
                          "--memory or --store-chunk")));
  // The same file again has no other map.
  QUIRE_EXPECT_OK(cache->OpenFile(first->path, 100 * kChunk, 0).status());
  cache->Retire(first);
  EXPECT_THAT(open("third"), HasCode(absl::StatusCode::kResourceExhausted));
  first.reset();
  QUIRE_EXPECT_OK(open("third"));
}

}  // namespace
}  // namespace quire
