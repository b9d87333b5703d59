// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests archives that are opened on first use, and closed for others, with a
// catalog, a loader and an opener, and without a server.
#include "server/service/archive_opener.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "codecs/base/mutex.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/service/archive_loader.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using Clock = Catalog::Clock;

// Generous: only a hang takes this long.
constexpr std::chrono::seconds kPatience{60};

// Returns the first bytes of an archive's text.
std::string FirstText(const Archive& archive, size_t size) {
  const BlockAddress first = {0, 0};
  std::vector<uint8_t> text(archive.BlockSizeBytes(first));
  const auto scratch = archive.codec().NewScratch();
  QUIRE_EXPECT_OK(archive.ReadBlock(first, text, *scratch));
  return {reinterpret_cast<const char*>(text.data()),
          std::min(size, text.size())};
}

class ArchiveOpenerTest : public ServerTest {
 protected:
  ArchiveOpenerTest() {
    options_.before_opening = [this](const std::string& name) {
      MutexLock lock(&mutex_);
      ++openings_[name];
    };
    options_.log = [this](LogLevel, const std::string& line) {
      MutexLock lock(&mutex_);
      said_ += line + "\n";
    };
  }

  ~ArchiveOpenerTest() override {
    if (loader_ != nullptr) {
      loader_->Stop();
      opener_->Stop();
    }
  }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(directory(), "/", name, ".quire");
  }

  // The texts of different archives and seeds differ.
  void Write(const std::string& name, uint64_t seed = 0) {
    std::vector<TestDocument> documents;
    for (int i = 0; i < 50; ++i) {
      const std::string id = absl::StrCat("page", i);
      documents.push_back(
          {.id = id, .text = absl::StrCat(name, " ", seed, " ", id, "\n")});
    }
    WriteArchive(PathOf(name), documents, "copy");
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveOutline outline,
                               Archive::ReadOutline(PathOf(name)));
    archive_bytes_ = std::max(archive_bytes_, outline.memory_bytes);
    opening_bytes_ = std::max(opening_bytes_, outline.opening_bytes);
  }

  // Lists these archives, of which `fitting_count` can be open at a time.
  void Start(const std::vector<std::string>& names, uint64_t fitting_count) {
    std::vector<ArchiveArgument> arguments;
    for (const std::string& name : names) {
      arguments.push_back(
          {.name = name, .path = PathOf(name), .is_listed = true});
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(std::vector<PlannedArchive> planned,
                               ReadOutlines(arguments, nullptr, nullptr));
    plan_.listed_bytes = fitting_count == 0
                             ? archive_bytes_ / 2
                             : fitting_count * archive_bytes_ + opening_bytes_;
    plan_.workspaces_bytes = kDecodeScratchBytesMax;
    BlockStoreOptions store_options;
    store_options.cache_size_bytes = 0;
    store_options.engine = BlockStoreOptions::Engine::kPread;
    store_options.decode_threads = 1;
    QUIRE_ASSERT_OK_AND_ASSIGN(store_, BlockStore::Create(store_options));
    loader_ =
        std::make_unique<ArchiveLoader>(options_, plan_, std::move(planned),
                                        catalog_, *store_, nullptr, nullptr);
    opener_ = std::make_unique<ArchiveOpener>(*loader_, options_.log);
    catalog_.SetDemand(
        [this](const ArchiveArgument& archive) { opener_->Open(archive); });
    QUIRE_ASSERT_OK(opener_->Start());
  }

  // Finds an archive as clients do: again until it is open.
  std::shared_ptr<const ServedArchive> Await(const std::string& name) {
    const Clock::time_point end = Clock::now() + kPatience;
    while (Clock::now() < end) {
      auto found = catalog_.Find(name);
      if (found.ok()) {
        return *found;
      }
      EXPECT_THAT(found, HasCode(absl::StatusCode::kUnavailable));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << name << " was never opened: " << said();
    return nullptr;
  }

  void ExpectText(const ServedArchive& served, const std::string& name) {
    EXPECT_EQ(FirstText(*served.archive, name.size() + 1), name + " ");
  }

  bool IsOpen(const std::string& name) const {
    return catalog_.FindOpen(name) != nullptr;
  }

  std::string said() {
    MutexLock lock(&mutex_);
    return said_;
  }

  int openings(const std::string& name) {
    MutexLock lock(&mutex_);
    return openings_[name];
  }

  // Returns the number of openings that began.
  uint64_t opening_count() {
    MutexLock lock(&mutex_);
    uint64_t sum = 0;
    for (const auto& [name, count] : openings_) {
      sum += static_cast<uint64_t>(count);
    }
    return sum;
  }

  // Also waits for the openers, which read an archive until its opening counts:
  // what a call reads is not closed first.
  void Use(const std::string& name) {
    EXPECT_NE(Await(name), nullptr);
    ExpectOpened(opening_count());
  }

  // An opening counts a moment after the archive can be found.
  void ExpectOpened(uint64_t count) {
    const Clock::time_point end = Clock::now() + kPatience;
    while (opener_->figures().opened_count < count && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(opener_->figures().opened_count, count);
  }

  uint64_t archive_bytes_ = 0;
  uint64_t opening_bytes_ = 0;
  ServerOptions options_;
  MemoryPlan plan_;
  Catalog catalog_;
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<ArchiveLoader> loader_;
  std::unique_ptr<ArchiveOpener> opener_;
  Mutex mutex_;
  std::string said_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> openings_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ArchiveOpenerTest, OpensOnFirstUseAndClosesTheLeastRecentlyUsed) {
  for (const char* name : {"a", "b", "c"}) {
    Write(name);
  }
  Start({"a", "b", "c"}, 2);
  EXPECT_TRUE(catalog_.Get().empty());
  EXPECT_EQ(catalog_.counts().closed, 3u);
  EXPECT_EQ(catalog_.Show("a")->state, v1::ARCHIVE_STATE_CLOSED);
  EXPECT_GT(catalog_.Show("a")->known->document_count(), 0u);
  Use("a");
  Use("b");
  Use("a");
  // Its memory is that of b, which was not used for longer.
  Use("c");
  EXPECT_TRUE(IsOpen("a"));
  EXPECT_FALSE(IsOpen("b"));
  EXPECT_EQ(catalog_.counts().closings, 1u);
  Use("c");
  Use("b");
  EXPECT_FALSE(IsOpen("a"));
  EXPECT_TRUE(IsOpen("c"));
  ExpectOpened(4);
  EXPECT_EQ(opener_->figures().failed_count, 0u);
  ExpectText(*Await("b"), "b");
}

TEST_F(ArchiveOpenerTest, ManyCallsOpenAnArchiveOnce) {
  Write("a");
  Start({"a"}, 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      const auto served = Await("a");
      ASSERT_NE(served, nullptr);
      ExpectText(*served, "a");
    });
  }
  threads.clear();
  EXPECT_EQ(openings("a"), 1);
  ExpectOpened(1);
}

TEST_F(ArchiveOpenerTest, AnArchiveThatACallReadsIsNotClosedForAnother) {
  for (const char* name : {"a", "b", "c"}) {
    Write(name);
  }
  Start({"a", "b", "c"}, 2);
  const auto read = Await("a");
  Use("b");
  // Least recently used, but read.
  Use("c");
  EXPECT_TRUE(IsOpen("a"));
  EXPECT_FALSE(IsOpen("b"));
  ExpectText(*read, "a");
}

// Its memory counts until the last call has ended.
TEST_F(ArchiveOpenerTest, WaitsForTheMemoryOfArchivesThatAreRead) {
  Write("a");
  Write("b");
  Start({"a", "b"}, 1);
  auto read = Await("a");
  const std::weak_ptr<const Archive> memory = read->archive;
  // No new call gets it, so that its memory is free some time.
  EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kUnavailable));
  while (IsOpen("a")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(IsOpen("b"));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(openings("b"), 0);
  ExpectText(*read, "a");
  EXPECT_EQ(catalog_.Show("b")->state, v1::ARCHIVE_STATE_OPENING);
  read = nullptr;
  EXPECT_TRUE(memory.expired());
  ExpectText(*Await("b"), "b");
}

TEST_F(ArchiveOpenerTest, AnArchiveStaysOpenUntilItsCallersCome) {
  Write("a");
  Write("b");
  Start({"a", "b"}, 1);
  EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kUnavailable));
  while (!IsOpen("a")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Clock::time_point opened = Clock::now();
  EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kUnavailable));
  while (IsOpen("a")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // The caller of a has not come.
  EXPECT_GT(Clock::now() - opened,
            Catalog::kUnusedTimeMin - std::chrono::seconds(1));
  Use("b");
}

TEST_F(ArchiveOpenerTest, FailuresAreRememberedAndReported) {
  Write("a");
  Write("b");
  Start({"a", "b"}, 1);
  std::filesystem::rename(PathOf("a"), (directory() + "/away"));
  EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kUnavailable));
  while (opener_->figures().failed_count == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (said().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(said(), HasSubstr("archive a cannot be opened"));
  EXPECT_THAT(said(), HasSubstr(PathOf("a")));
  const absl::Status told = catalog_.Find("a").status();
  EXPECT_THAT(told, FailsWith(absl::StatusCode::kUnavailable,
                              HasSubstr("could not be opened")));
  EXPECT_THAT(std::string(told.message()),
              ::testing::Not(HasSubstr(directory())));
  // Others are not affected.
  Use("b");
  EXPECT_EQ(catalog_.counts().failed, 1u);
  // A reload lets it be tried at once.
  std::filesystem::rename((directory() + "/away"), PathOf("a"));
  catalog_.Add({.name = "a", .path = PathOf("a"), .is_listed = true}, {});
  Use("a");
  ExpectOpened(2);
  EXPECT_EQ(catalog_.counts().failed, 0u);
}

TEST_F(ArchiveOpenerTest, AnArchiveThatDoesNotFitAloneFails) {
  Write("a");
  Start({"a"}, 0);
  EXPECT_THAT(catalog_.Find("a"), HasCode(absl::StatusCode::kUnavailable));
  while (said().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(said(), HasSubstr("restart with more --memory"));
  EXPECT_EQ(openings("a"), 0);
}

// The list is read again while its archives are opened and closed.
TEST_F(ArchiveOpenerTest, ReloadsChangeTheList) {
  for (const char* name : {"a", "b", "c"}) {
    Write(name);
  }
  Start({"a", "b"}, 2);
  const auto old_a = Await("a");
  Use("b");
  const auto argument = [&](const std::string& name) {
    return ArchiveArgument{
        .name = name, .path = PathOf(name), .is_listed = true};
  };
  std::map<std::string, bool> changes;
  const auto reload = [&](const std::vector<ArchiveArgument>& wanted) {
    std::string lines;
    for (const LogLine& line : loader_->Reload(
             wanted, {},
             [&](const std::string&name, bool is_serving) {
               changes[name] = is_serving;
             },
             [](bool ok) { EXPECT_TRUE(ok); })) {
      absl::StrAppend(&lines, line.text, "\n");
    }
    return lines;
  };
  EXPECT_THAT(reload({argument("a"), argument("b")}), HasSubstr("unchanged"));
  EXPECT_EQ(openings("a"), 1);
  // One is gone, one is new, one has other contents, and is open.
  Write("a", 1);
  const std::string lines = reload({argument("a"), argument("c")});
  EXPECT_THAT(lines, HasSubstr("archive a: replaced"));
  EXPECT_THAT(lines, HasSubstr("archive c: added, opened on first use"));
  EXPECT_THAT(lines, HasSubstr("archive b: removed"));
  EXPECT_EQ(changes, (std::map<std::string, bool>{
                         {"a", true}, {"b", false}, {"c", true}}));
  EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kNotFound));
  EXPECT_NE(Await("a")->archive->info().uuid, old_a->archive->info().uuid);
  ExpectText(*old_a, "a");
  ExpectText(*Await("c"), "c");
  // From the list to the archives that are opened at once, and back.
  ArchiveArgument eager = argument("c");
  eager.is_listed = false;
  reload({argument("a"), eager});
  EXPECT_TRUE(IsOpen("c"));
  EXPECT_EQ(catalog_.Show("c")->wanted, Wanted::kAlways);
  reload({argument("a"), argument("c")});
  EXPECT_EQ(catalog_.Show("c")->wanted, Wanted::kOnUse);
  ExpectText(*Await("c"), "c");
  // Another path under the same name.
  ArchiveArgument moved = argument("b");
  moved.name = "a";
  reload({moved, argument("c")});
  ExpectText(*Await("a"), "b");
}

TEST_F(ArchiveOpenerTest, AClosedArchiveIsOpenedInItsNewState) {
  Write("a");
  Write("b");
  Start({"a", "b"}, 1);
  const uint64_t before = Await("a")->opening_id;
  Use("b");
  Use("a");
  // Checks of its files go on.
  EXPECT_EQ(Await("a")->opening_id, before);
  Use("b");
  ASSERT_FALSE(IsOpen("a"));
  Write("a", 7);
  const auto served = Await("a");
  EXPECT_NE(served->opening_id, before);
  EXPECT_EQ(FirstText(*served->archive, 3), "a 7");
}

// More archives than fit, many threads, and reloads: every read has the bytes
// of its archive, and the memory that is counted is never too much.
TEST_F(ArchiveOpenerTest, ManyThreadsUseMoreArchivesThanFit) {
  constexpr int kArchiveCount = 6;
  constexpr int kThreadCount = 6;
  constexpr int kReadsPerThread = 40;
  std::vector<std::string> names;
  std::vector<ArchiveArgument> wanted;
  for (int i = 0; i < kArchiveCount; ++i) {
    names.push_back(absl::StrCat("n", i));
    Write(names.back());
    wanted.push_back({.name = names.back(),
                      .path = PathOf(names.back()),
                      .is_listed = true});
  }
  Start(names, 3);
  std::atomic<bool> is_done = false;
  std::vector<std::jthread> threads;
  std::atomic<int> reading_count = kThreadCount;
  for (int t = 0; t < kThreadCount; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < kReadsPerThread; ++i) {
        const std::string& name = names[random() % names.size()];
        const auto served = Await(name);
        if (served == nullptr) {
          break;
        }
        ExpectText(*served, name);
      }
      --reading_count;
    });
  }
  std::jthread reloader([&] {
    while (!is_done) {
      loader_->Reload(
          wanted, {}, [](const std::string&, bool) {}, [](bool) {});
    }
  });
  while (reading_count > 0) {
    uint64_t open_bytes = 0;
    for (const auto& [name, served] : catalog_.Get()) {
      open_bytes += served->archive->memory_bytes_max();
    }
    EXPECT_LE(open_bytes, plan_.listed_bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  is_done = true;
  threads.clear();
  reloader.join();
  EXPECT_EQ(opener_->figures().failed_count, 0u) << said();
  EXPECT_GT(catalog_.counts().closings, 0u);
}

TEST_F(ArchiveOpenerTest, StopsWithArchivesInTheQueue) {
  Write("a");
  Write("b");
  Start({"a", "b"}, 1);
  const auto read = Await("a");
  // It waits for memory.
  EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kUnavailable));
  loader_->Stop();
  opener_->Stop();
  EXPECT_THAT(catalog_.Find("b"), HasCode(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace quire
