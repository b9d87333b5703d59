// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/table_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/testing/client_fixture.h"
#include "codecs/fsst/table/symbol_table.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class CountingSource : public TableSource {
 public:
  absl::StatusOr<std::string> FetchSymbolTable(absl::string_view, uint64_t,
                                               size_t) override {
    ++count;
    return table;
  }

  absl::StatusOr<std::string> FetchDictionary(absl::string_view, uint64_t,
                                              size_t) override {
    ++count;
    return dictionary;
  }

  std::atomic<int> count = 0;
  absl::StatusOr<std::string> table = SymbolTable().Serialise();
  std::string dictionary = WordyText(1, 5000);
};

class TableStoreTest : public ::testing::Test {
 protected:
  TableStoreTest()
      : directory_(absl::StrCat(::testing::TempDir(), "table_store_test_",
                                getpid())) {}

  ~TableStoreTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_;
  CountingSource source_;
  const uint64_t table_hash_ = HashOf(*source_.table);
  const uint64_t dictionary_hash_ = HashOf(source_.dictionary);
  const CodecInfo& rlz_ = *FindCodec("rlz");
};

TEST(FetchOnceTest, FetchesOnceForManyThreads) {
  FetchOnce<int, int> values(10);
  std::atomic<int> fetch_count = 0;
  std::atomic<int> asking_count = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++asking_count;
      const auto value = values.Get(
          7,
          [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
            ++fetch_count;
            // All request it before there is an answer.
            while (asking_count < 8) {
              std::this_thread::yield();
            }
            return std::make_shared<const int>(49);
          },
          [](const int&) { return size_t{1}; });
      ASSERT_TRUE(value.ok());
      EXPECT_EQ(**value, 49);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(fetch_count, 1);
  EXPECT_EQ(values.count(), 1u);
}

TEST(FetchOnceTest, KeepsWhatWasUsedLastAndNoFailures) {
  FetchOnce<int, int> values(5);
  int fetch_count = 0;
  const auto get = [&](int key) {
    return values.Get(
        key,
        [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
          ++fetch_count;
          if (key < 0) {
            return absl::UnavailableError("not now");
          }
          return std::make_shared<const int>(key);
        },
        [](const int& value) { return static_cast<size_t>(value); });
  };
  QUIRE_EXPECT_OK(get(1));
  QUIRE_EXPECT_OK(get(2));
  QUIRE_EXPECT_OK(get(1));
  EXPECT_EQ(fetch_count, 2);
  QUIRE_EXPECT_OK(get(3));  // 2 goes
  EXPECT_TRUE(values.Has(1));
  EXPECT_FALSE(values.Has(2));
  EXPECT_EQ(values.cost(), 4u);
  QUIRE_EXPECT_OK(get(9));  // Alone over the limit.
  EXPECT_EQ(values.count(), 1u);
  EXPECT_TRUE(values.Has(9));
  EXPECT_THAT(get(-1), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(get(-1), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(fetch_count, 6);
}

TEST_F(TableStoreTest, KeepsTablesInMemory) {
  TableStore store({}, &source_);
  for (int i = 0; i < 3; ++i) {
    QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
    QUIRE_EXPECT_OK(store.GetStoredCodec("web", rlz_, 0, dictionary_hash_, {}));
  }
  EXPECT_EQ(source_.count, 2);
  EXPECT_TRUE(store.HoldsDictionary(rlz_, dictionary_hash_));
  EXPECT_FALSE(store.HoldsDictionary(rlz_, 1));
  WireStats stats;
  store.Describe(stats);
  EXPECT_EQ(stats.table_count, 1u);
  EXPECT_EQ(stats.dictionary_count, 1u);
  EXPECT_GE(stats.dictionary_memory_bytes, 5000u);
  EXPECT_EQ(stats.fetched_size_bytes, 5000 + source_.table->size());
}

TEST_F(TableStoreTest, RefusesWhatIsNotWhatItsHashSays) {
  TableStore store({}, &source_);
  EXPECT_THAT(store.GetFsstDecoder("web", 1),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("symbol table 0000000000000001")));
  EXPECT_THAT(store.GetStoredCodec("web", rlz_, 0, 1, {}),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("dictionary")));
  EXPECT_THAT(store.GetStoredCodec("web", rlz_, 0, {}, {}),
              HasCode(absl::StatusCode::kDataLoss));
  source_.table = "no table";
  EXPECT_THAT(store.GetFsstDecoder("web", HashOf("no table")),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
  source_.table = absl::NotFoundError("gone");
  EXPECT_THAT(store.GetFsstDecoder("web", 2),
              HasCode(absl::StatusCode::kNotFound));
}

TEST_F(TableStoreTest, KeepsTablesOnDisk) {
  const TableStoreOptions options{.directory = directory_ + "/quire"};
  {
    TableStore store(options, &source_);
    QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
    QUIRE_EXPECT_OK(store.GetStoredCodec("web", rlz_, 0, dictionary_hash_, {}));
  }
  EXPECT_EQ(source_.count, 2);
  TableStore store(options, &source_);
  EXPECT_TRUE(store.HoldsDictionary(rlz_, dictionary_hash_));
  QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
  QUIRE_EXPECT_OK(store.GetStoredCodec("web", rlz_, 0, dictionary_hash_, {}));
  EXPECT_EQ(source_.count, 2);
}

TEST_F(TableStoreTest, FetchesAgainWhatTheDirectoryHasWrong) {
  std::filesystem::create_directory(directory_);
  const std::string path =
      directory_ + "/symbols-" + FormatTableHash(table_hash_);
  std::ofstream(path) << "something else";
  const TableStoreOptions options{.directory = directory_};
  {
    TableStore store(options, &source_);
    QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
    EXPECT_EQ(source_.count, 1);
  }
  // The first store repaired the file.
  TableStore store(options, &source_);
  QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
  EXPECT_EQ(source_.count, 1);
}

TEST_F(TableStoreTest, DoesWithoutADirectory) {
  std::ofstream file(directory_);
  file << "a file where the directory should be";
  file.close();
  TableStore store({.directory = directory_}, &source_);
  QUIRE_EXPECT_OK(store.GetFsstDecoder("web", table_hash_));
  EXPECT_EQ(source_.count, 1);
}

TEST_F(TableStoreTest, LeavesStrangeFilesAlone) {
  std::filesystem::create_directory(directory_);
  const std::string path = directory_ + "/symbols-" + FormatTableHash(5);
  const TableDirectory directory(directory_);
  EXPECT_FALSE(directory.Load("symbols", 5, 100).has_value());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(directory.Load("symbols", 5, 100).has_value());
  const std::string text(101, 'x');
  directory.Store("symbols", HashOf(text), text);
  EXPECT_FALSE(directory.Load("symbols", HashOf(text), 100).has_value());
  EXPECT_EQ(directory.Load("symbols", HashOf(text), 101), text);
}

TEST_F(TableStoreTest, ATableThatCannotBeStoredLeavesNoFile) {
  // No file replaces a directory.
  std::filesystem::create_directories(directory_ + "/symbols-" +
                                      FormatTableHash(5));
  TableDirectory(directory_).Store("symbols", 5, "text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}),
            1);
}

}  // namespace
}  // namespace quire
