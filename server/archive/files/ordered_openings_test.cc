// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/ordered_openings.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/base/no_more_threads.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;

// Allows some threads and some memory, and counts both.
class CountedHelpers final : public OpeningHelpers {
 public:
  CountedHelpers(size_t threads_max, uint64_t bytes_max)
      : threads_max_(threads_max), bytes_max_(bytes_max) {}

  ~CountedHelpers() override {
    EXPECT_EQ(thread_count_, 0u);
    EXPECT_EQ(held_bytes_, 0u);
  }

  bool Begin(uint64_t working_bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (thread_count_ == threads_max_ ||
        held_bytes_ + working_bytes > bytes_max_) {
      return false;
    }
    ++begin_count_;
    ++thread_count_;
    held_bytes_ += working_bytes;
    return true;
  }

  void End(uint64_t working_bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --thread_count_;
    held_bytes_ -= working_bytes;
  }

  size_t begin_count() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return begin_count_;
  }

 private:
  const size_t threads_max_;
  const uint64_t bytes_max_;
  Mutex mutex_;
  size_t begin_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t thread_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status Bad(size_t index) {
  return absl::DataLossError(absl::StrCat("bad ", index));
}

TEST(OrderedOpeningsTest, OpensOneAfterTheOtherWithoutHelpers) {
  std::vector<size_t> opened;
  QUIRE_EXPECT_OK(OpenInOrder(std::vector<uint64_t>(4), nullptr, [&](size_t i) {
    opened.push_back(i);
    return absl::OkStatus();
  }));
  EXPECT_THAT(opened, ElementsAre(0, 1, 2, 3));
  opened.clear();
  EXPECT_THAT(OpenInOrder(std::vector<uint64_t>(4), nullptr,
                          [&](size_t i) {
                            opened.push_back(i);
                            return i < 2 ? absl::OkStatus() : Bad(i);
                          }),
              FailsWith(absl::StatusCode::kDataLoss, Eq("bad 2")));
  EXPECT_THAT(opened, ElementsAre(0, 1, 2));
  QUIRE_EXPECT_OK(OpenInOrder({}, nullptr, [](size_t i) { return Bad(i); }));
}

TEST(OrderedOpeningsTest, OpensSeveralAtATime) {
  CountedHelpers helpers(3, UINT64_MAX);
  std::atomic<int> running = 0;
  std::vector<std::atomic<int>> opened(40);
  QUIRE_EXPECT_OK(
      OpenInOrder(std::vector<uint64_t>(40), &helpers, [&](size_t i) {
        ++running;
        // Hangs with fewer threads.
        while (running < 4) {
          std::this_thread::yield();
        }
        ++opened[i];
        return absl::OkStatus();
      }));
  EXPECT_TRUE(std::ranges::all_of(
      opened, [](const std::atomic<int>& count) { return count == 1; }));
}

TEST(OrderedOpeningsTest, LeavesToOneThreadWhatThereIsNoMemoryFor) {
  const std::vector<uint64_t> needs = {5, 20, 5, 30, 5, 5, 20};
  CountedHelpers helpers(100, 10);
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<int> count = 0;
  QUIRE_EXPECT_OK(OpenInOrder(needs, &helpers, [&](size_t i) {
    ++count;
    EXPECT_TRUE(needs[i] <= 10 || std::this_thread::get_id() == own) << i;
    return absl::OkStatus();
  }));
  EXPECT_EQ(count, 7);
}

TEST(OrderedOpeningsTest, StartsNoThreadForOneOpening) {
  CountedHelpers helpers(100, UINT64_MAX);
  QUIRE_EXPECT_OK(OpenInOrder(std::vector<uint64_t>(1), &helpers,
                              [](size_t) { return absl::OkStatus(); }));
  EXPECT_EQ(helpers.begin_count(), 0u);
}

TEST(OrderedOpeningsTest, OpensAllIfNoThreadStarts) {
  CountedHelpers helpers(100, UINT64_MAX);
  std::set<size_t> opened;
  {
    const NoMoreThreads none;
    QUIRE_EXPECT_OK(
        OpenInOrder(std::vector<uint64_t>(30), &helpers, [&](size_t i) {
          opened.insert(i);
          return absl::OkStatus();
        }));
  }
  EXPECT_EQ(opened.size(), 30u);
}

// The first one to fail is held back until the second has failed.
TEST(OrderedOpeningsTest, ReturnsTheFailureOfTheLowestIndex) {
  CountedHelpers helpers(1, UINT64_MAX);
  std::atomic<bool> has_failed = false;
  std::atomic<size_t> last = 0;
  EXPECT_THAT(OpenInOrder(std::vector<uint64_t>(100), &helpers,
                          [&](size_t i) {
                            last = std::max<size_t>(last, i);
                            if (i == 1) {
                              has_failed = true;
                              return Bad(1);
                            }
                            while (!has_failed) {
                              std::this_thread::yield();
                            }
                            return Bad(i);
                          }),
              FailsWith(absl::StatusCode::kDataLoss, Eq("bad 0")));
  EXPECT_EQ(last, 1u);
}

TEST(OrderedOpeningsTest, FailsAtRandomAsOneThreadDoes) {
  std::mt19937_64 random(20261126);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const size_t count = random() % 40;
    std::vector<uint64_t> needs(count);
    std::set<size_t> bad;
    for (size_t i = 0; i < count; ++i) {
      needs[i] = random() % 20;
      if (random() % 30 == 0) {
        bad.insert(i);
      }
    }
    std::vector<std::atomic<int>> opened(count);
    CountedHelpers helpers(random() % 6, random() % 60);
    const absl::Status status = OpenInOrder(needs, &helpers, [&](size_t i) {
      ++opened[i];
      for (std::atomic<uint64_t> spins = 0; spins < needs[i] * 500; ++spins) {
      }
      return bad.contains(i) ? Bad(i) : absl::OkStatus();
    });
    const size_t first = bad.empty() ? count : *bad.begin();
    EXPECT_EQ(status, bad.empty() ? absl::OkStatus() : Bad(first));
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(opened[i], 1);
      EXPECT_TRUE(opened[i] == 1 || i > first) << i;
    }
  }
}

// Returns all that an archive knows without reading blocks.
std::string DescribeArchive(const Archive& archive) {
  const ArchiveMemory& memory = archive.memory();
  std::string text = absl::StrCat(
      archive.info().uuid, " ", memory.total_bytes(), " ",
      memory.document_ids_bytes, " ", memory.block_index_bytes, " ",
      archive.memory_bytes_max(), " ", archive.DescriptionSizeBytesMax());
  for (const absl::Status& damage : archive.index_damages()) {
    absl::StrAppend(&text, "\n", damage.message());
  }
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    absl::StrAppend(&text, "\n", archive.SegmentPath(i), " ",
                    archive.SegmentStart(i));
  }
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    const auto document = archive.GetDocument({i});
    const std::string& id = document.value().id;
    absl::StrAppend(&text, "\n", id, " ", document->range.offset.value, " ",
                    document->range.size_bytes);
    const auto found = archive.FindDocuments(id);
    for (const DocumentOrdinal ordinal :
         found.value_or(std::vector<DocumentOrdinal>())) {
      absl::StrAppend(&text, " ", ordinal.value);
    }
  }
  return text;
}

absl::StatusOr<std::string> Describe(const std::string& path,
                                     const ArchiveOpenOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const auto archive, Archive::Open(path, options));
  return DescribeArchive(*archive);
}

class SegmentOpeningTest : public ::testing::Test {
 protected:
  // An archive of 1 to 20 segments.
  void WriteArchive(std::mt19937_64& random) {
    std::filesystem::remove_all(path_);
    std::vector<TestSegment> segments(1 + random() % 20);
    for (TestSegment& segment : segments) {
      segment = RandomTestSegment(1 + random() % 30, 300, random);
    }
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("zstd").value();
    options.block_size_bytes = 4096;
    QUIRE_ASSERT_OK(WriteTestArchive(path_, options, segments));
  }

  // Opens it with helpers, and compares.
  void ExpectAsWithOneThread(std::mt19937_64& random) {
    for (const bool without_damaged_indexes : {false, true}) {
      ArchiveOpenOptions options = {.without_damaged_indexes =
                                        without_damaged_indexes};
      const auto expected = Describe(path_, options);
      CountedHelpers helpers(1 + random() % 5, random() % 2 == 0
                                                   ? UINT64_MAX
                                                   : random() % 100'000);
      options.helpers = &helpers;
      const auto found = Describe(path_, options);
      ASSERT_EQ(found.status(), expected.status());
      if (expected.ok()) {
        EXPECT_EQ(*found, *expected);
      }
    }
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
};

TEST_F(SegmentOpeningTest, GivesTheSameArchive) {
  std::mt19937_64 random(28);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    WriteArchive(random);
    ExpectAsWithOneThread(random);
  }
}

TEST_F(SegmentOpeningTest, NamesTheFirstOfSeveralDamagedSegments) {
  std::mt19937_64 random(2028);
  int refused_count = 0;
  TestFiles whole;
  std::map<std::string, TestSegmentParts> parts_of;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    if (round % 10 == 0) {
      WriteArchive(random);
      whole = ReadTestFiles(path_);
      parts_of = PartsOf(path_);
    }
    TestFiles files = whole;
    for (const auto& [name, parts] : parts_of) {
      if (random() % 4 == 0) {
        const TestPart& part =
            random() % 3 == 0
                ? parts.footer
                : parts.sections[random() % parts.sections.size()];
        files[name][part.offset + random() % part.size_bytes] ^= 0x10;
      }
    }
    WriteTestFiles(path_, files);
    ExpectAsWithOneThread(random);
    refused_count += Archive::Open(path_).ok() ? 0 : 1;
  }
  EXPECT_GT(refused_count, 5);
}

TEST_F(SegmentOpeningTest, EndsWhenItIsCancelled) {
  std::mt19937_64 random(3);
  WriteArchive(random);
  const std::atomic<bool> cancel = true;
  CountedHelpers helpers(4, UINT64_MAX);
  EXPECT_THAT(Archive::Open(path_, {.cancel = &cancel, .helpers = &helpers}),
              HasCode(absl::StatusCode::kCancelled));
}

// Adds segments past the number from which on there are filters.
TEST_F(SegmentOpeningTest, SharesSegmentsOfAnEarlierOpening) {
  std::mt19937_64 random(4);
  for (const size_t earlier_count : {3u, 4u, 5u, 8u}) {
    SCOPED_TRACE(earlier_count);
    std::vector<TestSegment> segments(9);
    for (TestSegment& segment : segments) {
      segment = RandomTestSegment(20, 100, random);
    }
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("copy").value();
    const std::vector<TestSegment> earlier(
        segments.begin(), segments.begin() + static_cast<int>(earlier_count));
    const std::string whole = directory_ / "whole";
    std::filesystem::remove_all(whole);
    std::filesystem::remove_all(path_);
    QUIRE_ASSERT_OK(WriteTestArchive(whole, options, segments));
    QUIRE_ASSERT_OK(WriteTestArchive(path_, options, earlier));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto before, Archive::Open(path_));
    // The segments of both are equal; those that are open stay the same files.
    TestFiles added = ReadTestFiles(whole);
    for (const auto& [name, bytes] : ReadTestFiles(path_)) {
      if (name != "MANIFEST") {
        ASSERT_EQ(added.at(name), bytes);
        added.erase(name);
      }
    }
    for (const auto& [name, bytes] : added) {
      WriteTestFile(path_ + "/" + name, bytes);
    }
    CountedHelpers helpers(3, UINT64_MAX);
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto after,
        Archive::Open(path_, {.shared = before.get(), .helpers = &helpers}));
    for (uint32_t i = 0; i < earlier_count; ++i) {
      EXPECT_EQ(after->OpenedSegmentId(i), before->OpenedSegmentId(i));
    }
    EXPECT_EQ(DescribeArchive(*after), *Describe(path_, {}));
  }
}

}  // namespace
}  // namespace quire
