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
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#include "server/storage/remote/remote_store.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"
#include "testing/storage/tiny_object_server.h"

namespace quire {
namespace {

constexpr char kSlowHost[] = "slow.test";
// Ends a test that waits for the name server.
constexpr absl::Duration kResolvingMax = absl::Seconds(60);

std::atomic<int> resolving_count = 0;
std::atomic<bool> was_waited_for = false;
absl::Notification test_has_ended;

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
  // The second time, the first transfer has been given up.
  while (resolving_count < 2 && !was_waited_for) {
    // The answer does not matter.
    EXPECT_FALSE(store->ReadObject(other, "x", "", 100, nullptr).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  store->SetStopTime(std::chrono::steady_clock::now());
  waiter.join();
  store.reset();
  EXPECT_FALSE(was_waited_for);
  test_has_ended.Notify();
}

}  // namespace
}  // namespace quire

// libcurl calls this one.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int getaddrinfo(const char* node, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  if (node != nullptr && absl::string_view(node) == quire::kSlowHost) {
    ++quire::resolving_count;
    if (!quire::test_has_ended.WaitForNotificationWithTimeout(
            quire::kResolvingMax)) {
      quire::was_waited_for = true;
    }
    return EAI_AGAIN;
  }
  static const auto next =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(node, service, hints, found);
}
