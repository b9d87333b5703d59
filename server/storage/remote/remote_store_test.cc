// SPDX-License-Identifier: GPL-3.0-or-later
//
// Objects that are read whole, within their memory.
#include "server/storage/remote/remote_store.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"
#include "testing/storage/tiny_object_server.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A sixth of it is the largest object.
constexpr uint64_t kObjectMemory = uint64_t{6} << 16;
constexpr uint64_t kNoLimit = uint64_t{64} << 20;

class RemoteStoreTest : public ::testing::Test {
 protected:
  void Open() {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, RemoteStore::Open({.endpoint = {},
                                   .cache_directory = directory_.path(),
                                   .cache_size_bytes = 1 << 20,
                                   .object_memory_bytes = kObjectMemory},
                                  DeviceEngine::kPread, nullptr));
  }

  absl::StatusOr<std::optional<RemoteStore::Object>> Read(
      const TinyObjectServer& server, uint64_t size_bytes_max = kNoLimit,
      const std::atomic<bool>* cancel = nullptr) {
    return store_->ReadObject(std::make_shared<const StoreAddress>(
                                  store_->ParseAddress(server.url()).value()),
                              "MANIFEST", "", size_bytes_max, cancel);
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<RemoteStore> store_;
};

TEST_F(RemoteStoreTest, ReadsObjectsThatFitTheirMemory) {
  Open();
  for (const size_t size : {1u, 1u << 15, 1u << 16}) {
    TinyObjectServer server(std::string(size, 'x'));
    server.SendWholeObjects();
    const auto read = Read(server);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ((*read)->bytes, std::string(size, 'x'));
  }
}

TEST_F(RemoteStoreTest, ReadsLittleOfTheBodyOfAnError) {
  Open();
  TinyObjectServer server(std::string(1 << 20, 'x'));
  server.MissEndlessly();
  EXPECT_THAT(Read(server), FailsWith(absl::StatusCode::kNotFound,
                                      HasSubstr("does not have it (404)")));
}

TEST_F(RemoteStoreTest, RefusesLargerObjects) {
  Open();
  for (const bool has_length : {true, false}) {
    TinyObjectServer server(std::string((1 << 16) + 1, 'x'));
    server.SendWholeObjects();
    if (!has_length) {
      server.SendTrailers();
    }
    EXPECT_THAT(
        Read(server),
        FailsWith(absl::StatusCode::kFailedPrecondition,
                  AllOf(HasSubstr("/MANIFEST: the store "), HasSubstr("65536"),
                        HasSubstr("restart with more --memory"))));
    EXPECT_THAT(Read(server, 100),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          AllOf(HasSubstr("100"),
                                testing::Not(HasSubstr("--memory")))));
  }
}

TEST_F(RemoteStoreTest, HoldsOneLargeObjectAtATime) {
  Open();
  TinyObjectServer server(std::string(40000, 'x'));
  server.SendWholeObjects();
  TinyObjectServer small("x");
  small.SendWholeObjects();
  {
    const auto first = Read(server);
    QUIRE_ASSERT_OK(first);
    QUIRE_EXPECT_OK(Read(small));
    const uint64_t request_count = server.request_count();
    std::atomic<bool> cancel = false;
    std::thread canceller([&] {
      while (server.request_count() == request_count) {
        std::this_thread::yield();
      }
      cancel = true;
    });
    EXPECT_THAT(Read(server, kNoLimit, &cancel),
                HasCode(absl::StatusCode::kCancelled));
    canceller.join();
  }
  QUIRE_EXPECT_OK(Read(server));
}

}  // namespace
}  // namespace quire
