// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/block_spans.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "server/archive/index/slice_counter.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint32_t kBlockSizeLimitBytes = 1 << 20;

std::vector<BlockSpan> SpansOf(const std::vector<uint64_t>& sizes) {
  std::vector<BlockSpan> spans;
  for (const uint64_t size : sizes) {
    AppendBlock(size, spans);
  }
  return spans;
}

BlockSpans::Expected ExpectedOf(const std::vector<BlockSpan>& spans) {
  BlockSpans::Expected expected = {
      .span_count = spans.size(), .block_size_bytes_max = kBlockSizeLimitBytes};
  for (const BlockSpan& span : spans) {
    expected.block_count += span.block_count;
    expected.size_bytes += span.block_count * span.size_bytes;
  }
  return expected;
}

// Uniform segments, segments with some cut blocks, and blocks that all differ.
std::vector<std::vector<uint64_t>> Samples() {
  std::vector<std::vector<uint64_t>> samples = {
      {1}, {4096, 4096, 4096}, std::vector<uint64_t>(1000, 65536)};
  samples.back().push_back(17);
  std::mt19937_64 random(1);
  for (const uint64_t one_in : {2u, 30u, 500u}) {
    std::vector<uint64_t>& sizes = samples.emplace_back();
    for (int i = 0; i < 2000; ++i) {
      sizes.push_back(random() % one_in == 0 ? 1 + random() % 100'000 : 65536);
    }
  }
  return samples;
}

TEST(BlockSpansTest, FindsEveryBlock) {
  for (const std::vector<uint64_t>& sizes : Samples()) {
    SCOPED_TRACE(sizes.size());
    const std::vector<BlockSpan> spans = SpansOf(sizes);
    const std::string section = EncodeBlockSpans(spans);
    const BlockSpans::Expected expected = ExpectedOf(spans);
    QUIRE_ASSERT_OK_AND_ASSIGN(const BlockSpans blocks,
                               BlockSpans::Parse(AsBytes(section), expected));
    EXPECT_EQ(blocks.block_count(), sizes.size());
    EXPECT_EQ(blocks.size_bytes(), expected.size_bytes);
    EXPECT_LE(blocks.MemoryBytes(), BlockSpans::EstimateBytes(expected));
    uint64_t start = 0;
    for (uint64_t i = 0; i < sizes.size(); ++i) {
      ASSERT_EQ(blocks.StartOf(i), start);
      ASSERT_EQ(blocks.SizeOf(i), sizes[i]);
      ASSERT_EQ(blocks.BlockAt(start), i);
      ASSERT_EQ(blocks.BlockAt(start + sizes[i] - 1), i);
      start += sizes[i];
    }
  }
}

TEST(BlockSpansTest, TakesLittleMemory) {
  const auto memory_bytes = [](const std::vector<uint64_t>& sizes) {
    return BlockSpans(SpansOf(sizes)).MemoryBytes();
  };
  EXPECT_EQ(BlockSpans().MemoryBytes(), 0u);
  std::vector<uint64_t> sizes(100'000, 65536);
  sizes.push_back(1);
  EXPECT_LE(memory_bytes(sizes), 48u);
  std::mt19937_64 random(2);
  for (uint64_t& size : sizes) {
    size = 32768 + random() % 65536;
  }
  EXPECT_LE(memory_bytes(sizes) * 8, sizes.size() * 34);
}

TEST(BlockSpansTest, RefusesWhatIsNotExpected) {
  const std::vector<BlockSpan> spans = {{3, 4096}, {1, 17}};
  const BlockSpans::Expected good = ExpectedOf(spans);
  const auto parse = [](const std::vector<BlockSpan>& found,
                        const BlockSpans::Expected& expected) {
    return BlockSpans::Parse(AsBytes(EncodeBlockSpans(found)), expected);
  };
  QUIRE_EXPECT_OK(parse(spans, good));
  for (const std::vector<BlockSpan>& bad :
       {std::vector<BlockSpan>{{3, 4096}, {1, 16}},
        {{2, 4096}, {1, 17}},
        {{3, 4096}, {0, 17}},
        {{3, 4096}, {1, 0}},
        {{3, 4096}, {UINT64_MAX, 17}},
        {{3, 4096}, {1, UINT64_MAX}},
        {{2, 4096}, {1, 4096}},
        {{3, 4096}},
        {{3, 4096}, {1, 16}, {1, 1}}}) {
    EXPECT_THAT(parse(bad, good), HasCode(absl::StatusCode::kDataLoss));
  }
  BlockSpans::Expected small = good;
  small.block_size_bytes_max = 4095;
  EXPECT_THAT(parse(spans, small), HasCode(absl::StatusCode::kDataLoss));
  const std::string section = EncodeBlockSpans(spans);
  for (size_t size = 0; size < section.size(); ++size) {
    EXPECT_THAT(BlockSpans::Parse(AsBytes(section).first(size), good),
                HasCode(absl::StatusCode::kDataLoss));
  }
}

struct TestRun {
  uint64_t stored_offset;
  uint64_t size_bytes;
};

// The same count from every slice.
uint64_t MostSlices(const BlockSpans& blocks,
                    const std::vector<TestRun>& runs) {
  std::vector<uint64_t> starts;
  uint64_t end = 0;
  for (const TestRun& run : runs) {
    uint64_t offset = run.stored_offset;
    const uint64_t run_end = offset + run.size_bytes;
    while (offset < run_end) {
      starts.push_back(end);
      const uint64_t block = blocks.BlockAt(offset);
      const uint64_t next =
          std::min(run_end, blocks.StartOf(block) + blocks.SizeOf(block));
      end += next - offset;
      offset = next;
    }
  }
  starts.push_back(end);
  uint64_t most = 0;
  for (size_t first = 0; first + 1 < starts.size(); ++first) {
    // A range that begins with the last byte of the first slice.
    const uint64_t range_end = starts[first + 1] - 1 + (1 << 20);
    const auto after =
        std::ranges::lower_bound(starts.begin(), starts.end() - 1, range_end);
    most = std::max<uint64_t>(
        most, static_cast<uint64_t>(after - starts.begin()) - first);
  }
  return most;
}

TEST(SliceCounterTest, CountsTheSlicesOfAMebibyte) {
  for (const std::vector<uint64_t>& sizes : Samples()) {
    const BlockSpans blocks(SpansOf(sizes));
    EXPECT_EQ(SliceCounter(blocks).most(),
              MostSlices(blocks, {{0, blocks.size_bytes()}}));
    std::mt19937_64 random(sizes.size());
    for (const uint64_t run_size_max : {100u, 10'000u, 10'000'000u}) {
      std::vector<TestRun> runs;
      SliceCounter slices(blocks);
      for (int i = 0; i < 300; ++i) {
        const uint64_t offset = random() % blocks.size_bytes();
        const uint64_t size =
            1 + random() % std::min(blocks.size_bytes() - offset, run_size_max);
        runs.push_back({offset, size});
        slices.AddRun(offset, size);
      }
      const uint64_t most = MostSlices(blocks, runs);
      EXPECT_GE(slices.most(), most);
      EXPECT_LE(slices.most(),
                std::max<uint64_t>(most, SliceCounter(blocks).most()));
    }
  }
}

TEST(SliceCounterTest, KnowsExactCounts) {
  const BlockSpans blocks({{.block_count = 100, .size_bytes = 65536}});
  EXPECT_EQ(SliceCounter(blocks).most(), 17u);
  const BlockSpans large({{.block_count = 100, .size_bytes = 1 << 20}});
  EXPECT_EQ(SliceCounter(large).most(), 2u);
  EXPECT_EQ(SliceCounter(BlockSpans()).most(), 0u);
}

}  // namespace
}  // namespace quire
