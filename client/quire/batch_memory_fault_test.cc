// SPDX-License-Identifier: Apache-2.0
//
// Batches of whose own threads an allocation fails: each one in turn. Every
// item is answered, rightly or with ResourceExhausted, and the process goes on.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client.h"
#include "client/quire/testing/client_fixture.h"
#include "codecs/base/status_matchers.h"

// The ends of this program's own code, of the linker. gRPC, protobuf and the
// C++ library are shared ones and lie elsewhere; own_allocations.map keeps them
// from calling templates that lie here.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern "C" const char __executable_start;
extern "C" const char etext;

// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

namespace {

// Allocations until one fails; negative: none does.
std::atomic<int64_t> allocations_left = -1;
std::atomic<uint64_t> failed_count = 0;
// The test's own, and the server's, which gRPC gives names to.
thread_local bool is_main = false;

bool IsThreadOfTheClient() {
  thread_local const bool is_named_by_grpc = [] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return std::string_view(name) != "quire-batchtest";
  }();
  return !is_main && !is_named_by_grpc;
}

bool IsToFail(const void* caller) {
  const auto* const at = static_cast<const char*>(caller);
  if (allocations_left.load() < 0 || at < &__executable_start || at >= &etext ||
      !IsThreadOfTheClient() || allocations_left.fetch_sub(1) != 0) {
    return false;
  }
  ++failed_count;
  return true;
}

}  // namespace

ABSL_ATTRIBUTE_NOINLINE void* operator new(size_t size) {
  void* const memory = IsToFail(__builtin_return_address(0))
                           ? nullptr
                           : std::malloc(std::max<size_t>(size, 1));
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

ABSL_ATTRIBUTE_NOINLINE void operator delete(void* memory) noexcept {
  std::free(memory);
}

ABSL_ATTRIBUTE_NOINLINE void operator delete(void* memory,
                                             size_t /*size*/) noexcept {
  std::free(memory);
}

namespace quire {
namespace {

constexpr uint64_t kItemCount = 30;
// Far above what a batch allocates: the loop ends where none has failed.
constexpr int64_t kAllocationsMax = 20'000;

using BatchMemoryFaultTest = ClientFixture;

TEST_F(BatchMemoryFaultTest, EveryItemIsAnswered) {
  is_main = true;
  QUIRE_ASSERT_OK(client_->GetLimits().status());
  // What threads inherit that the client starts from here on.
  ASSERT_EQ(pthread_setname_np(pthread_self(), "quire-batchtest"), 0);
  uint64_t failed_items = 0;
  for (int64_t n = 0; n < kAllocationsMax; ++n) {
    SCOPED_TRACE(absl::StrCat("allocation ", n));
    const uint64_t failed_before = failed_count;
    allocations_left = n;
    {
      const std::unique_ptr<BatchReader> batch = client_->StartBatch("web", {});
      for (uint64_t tag = 0; tag < kItemCount; ++tag) {
        batch->Add(
            tag, DocumentKey{.name = absl::StrCat("doc/", tag / 10, tag % 10)});
      }
      batch->CloseAdds();
      std::map<uint64_t, absl::StatusOr<ReadResult>> answers;
      while (std::optional<BatchAnswer> answer = batch->Next()) {
        answers.emplace(answer->tag, std::move(answer->result));
      }
      EXPECT_EQ(batch->unanswered_count(), 0u);
      ASSERT_EQ(answers.size(), kItemCount);
      for (const auto& [tag, result] : answers) {
        if (result.ok()) {
          ASSERT_TRUE(result->data == RandomText(tag, 10 * tag));
        } else {
          ASSERT_THAT(result.status(),
                      HasCode(absl::StatusCode::kResourceExhausted));
          ++failed_items;
        }
      }
    }
    allocations_left = -1;
    if (failed_count == failed_before) {
      EXPECT_GT(failed_items, 0u);
      return;
    }
  }
  FAIL() << "some allocation failed in each of " << kAllocationsMax
         << " batches";
}

}  // namespace
}  // namespace quire
