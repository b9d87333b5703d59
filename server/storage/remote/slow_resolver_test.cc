// SPDX-License-Identifier: GPL-3.0-or-later
//
// A name server that does not answer: transfers of other stores continue, and
// the store stops at once.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

#include "codecs/base/status_matchers.h"
#include "codecs/base/testing/temporary_directory.h"
#include "server/storage/remote/remote_store.h"
#include "server/storage/remote/testing/tiny_object_server.h"

namespace quire {
namespace {

using std::chrono::steady_clock;

constexpr char kSlowHost[] = "slow.test";
constexpr std::chrono::seconds kResolvingTime{8};
// A connection is given up after two seconds.
constexpr std::chrono::milliseconds kWatchedTime{3000};
constexpr std::chrono::seconds kPatience{2};

std::atomic<int> resolving_count = 0;

TEST(SlowResolverTest, NothingWaitsForTheNameServer) {
  const TemporaryDirectory directory;
  const TinyObjectServer server("object");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<RemoteStore> store,
      RemoteStore::Open({.endpoint = {},
                         .cache_directory = directory.path(),
                         .cache_size_bytes = 1 << 20},
                        DeviceEngine::kPread, nullptr));
  const auto address_of = [&](const std::string& url) {
    return std::make_shared<const StoreAddress>(
        store->ParseAddress(url).value());
  };
  std::thread waiter([&, address = address_of("http://slow.test/a")] {
    EXPECT_FALSE(store->ReadObject(address, "MANIFEST", "", 100, nullptr).ok());
  });
  const auto other = address_of(server.url());
  const steady_clock::time_point end = steady_clock::now() + kWatchedTime;
  while (resolving_count == 0 || steady_clock::now() < end) {
    const steady_clock::time_point begun = steady_clock::now();
    // The answer does not matter.
    EXPECT_FALSE(store->ReadObject(other, "x", "", 100, nullptr).ok());
    EXPECT_LT(steady_clock::now() - begun, kPatience);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const steady_clock::time_point begun = steady_clock::now();
  store->SetStopTime(begun);
  waiter.join();
  store.reset();
  EXPECT_LT(steady_clock::now() - begun, kPatience);
}

}  // namespace
}  // namespace quire

// libcurl calls this one.
extern "C" int getaddrinfo(const char* node, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  if (node != nullptr && absl::string_view(node) == quire::kSlowHost) {
    ++quire::resolving_count;
    std::this_thread::sleep_for(quire::kResolvingTime);
    return EAI_AGAIN;
  }
  static const auto next =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, found);
}
