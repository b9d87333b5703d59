// SPDX-License-Identifier: Apache-2.0
//
// Clients that cannot start threads.
#include "client/quire/internal/started_thread.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/internal/connection.h"
#include "client/quire/internal/decode_pipeline.h"
#include "testing/base/no_more_threads.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(StartedThreadTest, RunsItsBody) {
  bool ran = false;
  absl::StatusOr<std::thread> thread = StartThread([&] { ran = true; });
  QUIRE_ASSERT_OK(thread);
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(StartedThreadTest, SaysWhatToLookAt) {
  const NoMoreThreads none;
  const absl::StatusOr<std::thread> thread = StartThread([] {});
  EXPECT_EQ(thread.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(thread.status().message()),
              HasSubstr("cannot start another thread"));
  EXPECT_THAT(std::string(thread.status().message()), HasSubstr("ulimit -u"));
}

TEST(StartedThreadTest, ADecodingStreamEndsWithThatStatus) {
  const auto accept = [](const int&) { return absl::OkStatus(); };
  const auto decode = [](const int&,
                         std::string&) -> absl::StatusOr<absl::string_view> {
    return absl::string_view();
  };
  int taken_count = 0;
  const auto take = [&](const int&, absl::string_view) {
    ++taken_count;
    return absl::OkStatus();
  };
  const auto receive = [](int&) { return false; };
  bool cancelled = false;
  const auto cancel = [&] { cancelled = true; };
  DecodePipeline<int> pipeline({accept, decode, take}, 2, receive, cancel);
  const NoMoreThreads none;
  EXPECT_EQ(pipeline.Run(0).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(taken_count, 0);
}

TEST(StartedThreadTest, AStreamThatCannotBeWatchedIsCancelledAndSaysWhy) {
  grpc::ClientContext context;
  const NoMoreThreads none;
  StreamWatchdog watchdog(context, absl::Seconds(30));
  watchdog.Arm();
  watchdog.Disarm();
  EXPECT_EQ(watchdog.Explain(absl::CancelledError("")).code(),
            absl::StatusCode::kResourceExhausted);
  // Earlier messages of the server still count.
  EXPECT_EQ(watchdog.Explain(absl::NotFoundError("")).code(),
            absl::StatusCode::kNotFound);
}

TEST(StartedThreadTest, AStreamThatMayBeSilentForAgesIsNotCancelled) {
  grpc::ClientContext context;
  const NoMoreThreads none;
  // More nanoseconds than clocks can represent.
  StreamWatchdog watchdog(context, absl::Hours(3'000'000));
  watchdog.Arm();
  EXPECT_EQ(watchdog.Explain(absl::CancelledError("")).code(),
            absl::StatusCode::kCancelled);
}

TEST(StartedThreadTest, EachItemOfABatchGetsThatStatus) {
  ClientOptions options;
  options.address = "localhost:1";
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      Connection::Open(std::move(options));
  QUIRE_ASSERT_OK(connection);
  std::unique_ptr<BatchReader> batch;
  {
    const NoMoreThreads none;
    batch = std::make_unique<BatchReader>(*connection, "web", BatchOptions());
  }
  batch->Add(7, ByteSpan{.offset = 0, .size_bytes = 100});
  batch->Add(8, DocumentKey::Id("a"));
  batch->CloseAdds();
  for (const uint64_t tag : {7u, 8u}) {
    const std::optional<BatchAnswer> answer = batch->Next();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->tag, tag);
    EXPECT_EQ(answer->result.status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_FALSE(batch->Next().has_value());
  EXPECT_EQ(batch->unanswered_count(), 0u);
}

}  // namespace
}  // namespace quire
