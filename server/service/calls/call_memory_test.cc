// SPDX-License-Identifier: GPL-3.0-or-later
//
// Calls in which an allocation of the server's own code fails: each one in
// turn, first, second and so on. Every call ends, well or with
// RESOURCE_EXHAUSTED, gives back what it was charged for, and the next call is
// as good as any.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

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
// The client's.
thread_local bool is_spared = false;

bool IsToFail(const void* caller) {
  const auto* const at = static_cast<const char*>(caller);
  if (is_spared || at < &__executable_start || at >= &etext ||
      allocations_left.load() < 0 || allocations_left.fetch_sub(1) != 0) {
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

constexpr uint64_t kRangeSizeBytes = 100'000;

// Far above what any call allocates: the loop ends where none has failed.
constexpr int64_t kAllocationsMax = 10'000;

class CallMemoryTest : public ServerTest {
 protected:
  using Call = std::function<grpc::Status(grpc::ClientContext&)>;

  CallMemoryTest() : all_(Concatenate(documents_)) {
    is_spared = true;
    WriteArchive(archive_path(), documents_, "zstd");
    Serve();
  }

  ~CallMemoryTest() override { allocations_left = -1; }

  void Serve() {
    ServerOptions options;
    options.metrics_address = "127.0.0.1:0";
    StartServer(std::move(options));
  }

  // `call` returns OK only if what it got is right.
  void FailEachAllocation(const Call& call) {
    // What it reads is in the cache from here on.
    EXPECT_TRUE(Run(call).ok());
    uint64_t refused_count = 0;
    for (int64_t n = 0; n < kAllocationsMax; ++n) {
      SCOPED_TRACE(absl::StrCat("allocation ", n));
      const uint64_t failed_before = failed_count;
      allocations_left = n;
      const grpc::Status status = Run(call);
      allocations_left = -1;
      if (failed_count == failed_before) {
        EXPECT_GT(refused_count, 0u);
        AwaitNothingInFlight();
        return;
      }
      if (!status.ok()) {
        ++refused_count;
        ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
            << status.error_message();
      }
      const grpc::Status after = Run(call);
      ASSERT_TRUE(after.ok()) << after.error_message();
    }
    FAIL() << "some allocation failed in each of " << kAllocationsMax
           << " calls";
  }

  v1::ReadRequest DocumentRequest() const {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_id(documents_[7].id);
    return request;
  }

  const std::vector<TestDocument> documents_ = MakeDocuments(100, 12);
  const std::string all_;

 private:
  static grpc::Status Run(const Call& call) {
    grpc::ClientContext context;
    // A call that does not end is found out.
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    return call(context);
  }

  void AwaitNothingInFlight() {
    const absl::Time give_up = absl::Now() + absl::Minutes(1);
    std::string metrics;
    while (!absl::StrContains(
        metrics = HttpGet(server().metrics_address(), "/metrics"),
        "\nquire_in_flight_bytes 0\n")) {
      ASSERT_LT(absl::Now(), give_up) << metrics;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
};

grpc::Status Wrong(const std::string& what) {
  return {grpc::StatusCode::INTERNAL, absl::StrCat("wrong ", what)};
}

TEST_F(CallMemoryTest, AnswersFromMemory) {
  FailEachAllocation([&](grpc::ClientContext& context) {
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    const grpc::Status status = stub().GetArchive(&context, request, &response);
    return !status.ok() || response.archive().name() == "docs" ? status
                                                               : Wrong("name");
  });
  FailEachAllocation([&](grpc::ClientContext& context) {
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_page_size(3);
    v1::ListDocumentsResponse response;
    const grpc::Status status =
        stub().ListDocuments(&context, request, &response);
    return !status.ok() || response.documents_size() == 3 ? status
                                                          : Wrong("page");
  });
}

TEST_F(CallMemoryTest, Reads) {
  FailEachAllocation([&](grpc::ClientContext& context) {
    v1::ReadResponse response;
    const grpc::Status status =
        stub().Read(&context, DocumentRequest(), &response);
    return !status.ok() || response.data() == documents_[7].text
               ? status
               : Wrong("document");
  });
}

// Such an answer is made on the decode pool.
TEST_F(CallMemoryTest, LongWork) {
  StopServer();
  WriteArchive(archive_path(), documents_, "zstd", TrainTable(documents_));
  Serve();
  FailEachAllocation([&](grpc::ClientContext& context) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_size_bytes(2 * kRangeSizeBytes);
    request.add_accepted_encodings(v1::WIRE_ENCODING_FSST);
    v1::ReadResponse response;
    const grpc::Status status = stub().Read(&context, request, &response);
    return !status.ok() || response.encoding() == v1::WIRE_ENCODING_FSST
               ? status
               : Wrong("encoding");
  });
}

TEST_F(CallMemoryTest, Streams) {
  FailEachAllocation([&](grpc::ClientContext& context) {
    const auto reader = stub().ReadStream(&context, DocumentRequest());
    std::string text;
    for (v1::ReadStreamResponse response; reader->Read(&response);) {
      text += response.data();
    }
    const grpc::Status status = reader->Finish();
    return !status.ok() || text == documents_[7].text ? status
                                                      : Wrong("document");
  });
  FailEachAllocation([&](grpc::ClientContext& context) {
    v1::ScanRequest request;
    request.set_archive("docs");
    request.set_size_bytes(kRangeSizeBytes);
    const auto reader = stub().Scan(&context, request);
    std::string text;
    for (v1::ScanResponse response; reader->Read(&response);) {
      text += response.data();
    }
    const grpc::Status status = reader->Finish();
    return !status.ok() || text == all_.substr(0, kRangeSizeBytes)
               ? status
               : Wrong("text");
  });
}

// An item alone may fail, too.
TEST_F(CallMemoryTest, Batches) {
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (uint64_t tag = 0; tag < 5; ++tag) {
    v1::BatchItem* item = request.add_items();
    item->set_tag(tag);
    if (tag % 2 == 0) {
      item->mutable_document()->set_ordinal(tag);
    } else {
      item->mutable_range()->set_offset(tag * 20'000);
      item->mutable_range()->set_size_bytes(10'000);
    }
  }
  FailEachAllocation([&](grpc::ClientContext& context) {
    const auto stream = stub().BatchRead(&context);
    stream->Write(request);
    stream->WritesDone();
    std::map<uint64_t, v1::BatchResult> results;
    for (v1::BatchReadResponse response; stream->Read(&response);) {
      for (v1::BatchResult& result : *response.mutable_results()) {
        results[result.tag()] = result;
      }
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) {
      return status;
    }
    grpc::Status worst = results.size() == 5 ? status : Wrong("count");
    for (const auto& [tag, result] : results) {
      if (result.has_status()) {
        worst = {static_cast<grpc::StatusCode>(result.status().code()),
                 result.status().message()};
      } else if (tag % 2 == 1 &&
                 result.data() != all_.substr(tag * 20'000, 10'000)) {
        return Wrong("range");
      }
    }
    return worst;
  });
}

}  // namespace
}  // namespace quire
