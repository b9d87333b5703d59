// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/decode_pipeline.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// A stream of the numbers from 0 to below `end`.
class DecodePipelineTest : public ::testing::TestWithParam<int> {
 protected:
  absl::Status Run(int end) {
    std::atomic<int> received = 0;
    std::atomic<bool> cancelled = false;
    const auto accept = [&](const int& message) {
      // In order, on any thread.
      EXPECT_EQ(message, accepted_count_++);
      return message == refused_ ? absl::InternalError("refused")
                                 : absl::OkStatus();
    };
    const auto decode =
        [&](const int& message,
            std::string& buffer) -> absl::StatusOr<absl::string_view> {
      if (message == damaged_) {
        return absl::DataLossError("damaged");
      }
      // Later ones finish earlier.
      if (message % 3 != 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(50) *
                                    (message % 3));
      }
      buffer = absl::StrCat("text ", message);
      return absl::string_view(buffer.data(), buffer.size());
    };
    const auto take = [&](const int& message, absl::string_view text) {
      EXPECT_EQ(std::this_thread::get_id(), caller_);
      EXPECT_EQ(text, absl::StrCat("text ", message));
      EXPECT_EQ(message, taken_count_);
      // The number in memory is bounded.
      EXPECT_LE(received - message, GetParam() + 2);
      ++taken_count_;
      return message == unwanted_ ? absl::AbortedError("enough")
                                  : absl::OkStatus();
    };
    const auto receive = [&](int& message) {
      if (cancelled || received + 1 == end) {
        return false;
      }
      message = ++received;
      return true;
    };
    const auto cancel = [&] { cancelled = true; };
    DecodePipeline<int> pipeline({accept, decode, take}, GetParam(), receive,
                                 cancel);
    return pipeline.Run(0);
  }

  const std::thread::id caller_ = std::this_thread::get_id();
  int refused_ = -1;
  int damaged_ = -1;
  int unwanted_ = -1;
  int accepted_count_ = 0;
  int taken_count_ = 0;
};

TEST_P(DecodePipelineTest, TakesAllInOrder) {
  for (const int count : {1, 2, 3, 200}) {
    accepted_count_ = 0;
    taken_count_ = 0;
    QUIRE_EXPECT_OK(Run(count));
    EXPECT_EQ(taken_count_, count);
  }
}

TEST_P(DecodePipelineTest, EndsAtTheFirstFault) {
  for (const int fault : {0, 1, 50, 199}) {
    accepted_count_ = taken_count_ = 0;
    refused_ = fault;
    EXPECT_THAT(Run(200), HasCode(absl::StatusCode::kInternal));
    EXPECT_EQ(taken_count_, fault);
    refused_ = -1;
    accepted_count_ = taken_count_ = 0;
    damaged_ = fault;
    EXPECT_THAT(Run(200), HasCode(absl::StatusCode::kDataLoss));
    EXPECT_EQ(taken_count_, fault);
    damaged_ = -1;
    accepted_count_ = taken_count_ = 0;
    unwanted_ = fault;
    EXPECT_THAT(Run(200), HasCode(absl::StatusCode::kAborted));
    EXPECT_EQ(taken_count_, fault + 1);
    unwanted_ = -1;
  }
}

// Exceptions of the caller's own function reach the caller.
TEST_P(DecodePipelineTest, PassesOnWhatTakeThrows) {
  for (const int fault : {0, 1, 50}) {
    std::atomic<bool> cancelled = false;
    int received_count = 0;
    const auto accept = [](int) { return absl::OkStatus(); };
    const auto decode = [](int,
                           std::string&) -> absl::StatusOr<absl::string_view> {
      return absl::string_view();
    };
    const auto take = [&](int message, absl::string_view) -> absl::Status {
      if (message == fault) {
        throw std::runtime_error("of the caller");
      }
      return absl::OkStatus();
    };
    const auto receive = [&](int& message) {
      message = ++received_count;
      return !cancelled && received_count < 200;
    };
    const auto cancel = [&] { cancelled = true; };
    DecodePipeline<int> pipeline({accept, decode, take}, GetParam(), receive,
                                 cancel);
    EXPECT_THROW(static_cast<void>(pipeline.Run(0)), std::runtime_error);
    EXPECT_TRUE(cancelled);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, DecodePipelineTest,
                         ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace quire
