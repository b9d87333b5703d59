// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/order_trial.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/status_macros.h"
#include "testing/base/noise.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using Order = OrderCandidate::Order;

constexpr size_t kMiB = size_t{1} << 20;

BuildOptions Options() {
  BuildOptions options;
  options.archive.codec = *ParseCodecSpec("lz4");
  options.archive.block_size_bytes = 64 << 10;
  options.threads = 2;
  return options;
}

absl::StatusOr<ReorderedText> Reordered(
    const std::vector<std::string>& segments,
    ReorderOptions::Moves moves = ReorderOptions::Moves::kNothing) {
  QUIRE_ASSIGN_OR_RETURN(
      const auto reorderer,
      TextReorderer::Create({.spool_directory = ::testing::TempDir(),
                             .segment_size_bytes = 16 * kMiB,
                             .moves = moves}));
  for (const std::string& text : segments) {
    QUIRE_RETURN_IF_ERROR(reorderer->Add(AsBytes(text)));
    QUIRE_RETURN_IF_ERROR(reorderer->EndDocument({.id = "x"}));
    QUIRE_RETURN_IF_ERROR(reorderer->EndSegment());
  }
  return reorderer->Finish();
}

absl::StatusOr<OrderComparison> Compare(const ReorderedText& text, Order plain,
                                        Order changed, double gain_min = 0.02,
                                        double layout_bytes = 0) {
  const auto context = std::make_shared<const CodecContext>();
  return CompareOrders(Options(),
                       {.text = &text, .order = plain, .context = context},
                       {.text = &text,
                        .order = changed,
                        .context = context,
                        .other_bytes = layout_bytes},
                       gain_min);
}

// Noise does not compress: an archive is as large as its text.
TEST(OrderTrialTest, SmallTextsAreMeasuredExactly) {
  const std::string part = Noise(500'000, 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ReorderedText text,
      Reordered({part + Noise(123'457, 2) + part, Noise(300'000, 3)}));
  ASSERT_LT(text.size_bytes, 1'000'000u);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const OrderComparison result,
      Compare(text, Order::kDocuments, Order::kDuplicatesOmitted));
  EXPECT_EQ(result.sampled_bytes, 1'423'457u);
  EXPECT_DOUBLE_EQ(result.plain_bytes, 1'423'457);
  EXPECT_NEAR(result.changed_bytes, static_cast<double>(text.size_bytes), 2);
  EXPECT_TRUE(result.is_smaller);
}

TEST(OrderTrialTest, WhatIsBesideTheBlocksCounts) {
  const std::string part = Noise(500'000, 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText text,
                             Reordered({part + Noise(500'000, 2) + part}));
  for (const auto& [layout_bytes, is_smaller] :
       {std::pair<double, bool>{100'000, true}, {500'000, false}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const OrderComparison result,
        Compare(text, Order::kDocuments, Order::kDuplicatesOmitted,
                /*gain_min=*/0.02, layout_bytes));
    EXPECT_EQ(result.is_smaller, is_smaller) << layout_bytes;
  }
  // A third is saved.
  for (const auto& [gain_min, is_smaller] :
       {std::pair<double, bool>{0.32, true}, {0.34, false}}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const OrderComparison result,
        Compare(text, Order::kDocuments, Order::kDuplicatesOmitted, gain_min));
    EXPECT_EQ(result.is_smaller, is_smaller) << gain_min;
  }
}

// Samples of the same text in both orders tell at once.
TEST(OrderTrialTest, SamplesUntilTheDifferenceIsClear) {
  const std::string first = Noise(12 * kMiB, 1);
  const std::string second = Noise(12 * kMiB, 2);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ReorderedText text,
      Reordered({first + first, second + second, Noise(16 * kMiB, 3)}));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const OrderComparison result,
      Compare(text, Order::kDocuments, Order::kDuplicatesOmitted));
  EXPECT_LT(result.sampled_bytes, 20 * kMiB);
  EXPECT_NEAR(result.plain_bytes, 64 * kMiB, 0.01 * kMiB);
  EXPECT_NEAR(result.changed_bytes, static_cast<double>(text.size_bytes),
              0.02 * 64 * kMiB);
  EXPECT_TRUE(result.is_smaller);
  // As much is saved as is asked for: all text is sampled.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const OrderComparison unclear,
      Compare(text, Order::kDocuments, Order::kDuplicatesOmitted,
              1 - static_cast<double>(text.size_bytes) / (64 * kMiB)));
  EXPECT_GE(unclear.sampled_bytes, 64 * kMiB);
}

// Text that moved is compared by as much of each text.
TEST(OrderTrialTest, MovedTextIsSampledInItsOwnOrder) {
  const std::string part = Noise(2 * kMiB, 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText text,
                             Reordered({part + Noise(4 * kMiB, 2) + part},
                                       ReorderOptions::Moves::kChunks));
  QUIRE_ASSERT_OK_AND_ASSIGN(const OrderComparison result,
                             Compare(text, Order::kDocuments, Order::kMoved));
  EXPECT_DOUBLE_EQ(result.plain_bytes, 8 * kMiB);
  const auto size_bytes = static_cast<double>(text.size_bytes);
  EXPECT_NEAR(result.changed_bytes, size_bytes, size_bytes / 1000);
  EXPECT_TRUE(result.is_smaller);
}

TEST(OrderTrialTest, DoesNotDependOnThreads) {
  std::string part;
  while (part.size() < kMiB) {
    part += Noise(3'000, part.size()) + std::string(3'000, 'x');
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText text,
                             Reordered({part + Noise(kMiB, 2) + part}));
  const auto context = std::make_shared<const CodecContext>();
  std::vector<double> sizes;
  for (const uint32_t threads : {1u, 8u}) {
    BuildOptions options = Options();
    options.threads = threads;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const OrderComparison result,
        CompareOrders(options, {.text = &text, .context = context},
                      {.text = &text,
                       .order = Order::kDuplicatesOmitted,
                       .context = context},
                      0.02));
    sizes.push_back(result.changed_bytes);
  }
  EXPECT_EQ(sizes[0], sizes[1]);
}

TEST(OrderTrialTest, IsCancelled) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReorderedText text,
                             Reordered({Noise(100'000, 1)}));
  std::atomic<bool> cancel = true;
  BuildOptions options = Options();
  options.cancel = &cancel;
  const auto context = std::make_shared<const CodecContext>();
  EXPECT_THAT(CompareOrders(options, {.text = &text, .context = context},
                            {.text = &text, .context = context}, 0.02),
              HasCode(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace quire
