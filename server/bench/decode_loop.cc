// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/bench/decode_loop.h"

#include <algorithm>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"

namespace quire {
namespace {

// What is held of one archive.
constexpr uint64_t kStoredSizeBytesMax = uint64_t{4} << 30;

absl::StatusOr<BenchCounts> DecodeOnOneThread(const Archive& archive,
                                              const StoredBlocks& stored,
                                              BenchRequests& requests,
                                              BenchClock::time_point end) {
  BenchCounts counts;
  const auto scratch = archive.codec().NewScratch();
  std::vector<uint8_t> raw(archive.info().block_size_bytes_max);
  // A server has a block for all parts of a range that lie in it.
  std::set<BlockAddress> blocks;
  do {
    const std::vector<BlockSlice> slices = requests.Next();
    blocks.clear();
    for (const BlockSlice& slice : slices) {
      blocks.insert(slice.block);
    }
    for (const BlockAddress& block : blocks) {
      const BlockPart whole = {
          .offset_in_block = 0,
          .text = MutableByteView(raw).first(archive.BlockSizeBytes(block))};
      QUIRE_RETURN_IF_ERROR(archive.DecodeBlock(
          block, stored.Get(block, archive.BlockExtent(block)), {&whole, 1},
          *scratch));
    }
    ++counts.requests;
    counts.blocks += blocks.size();
    counts.text_size_bytes += TextSizeBytes(slices);
  } while (BenchClock::now() < end);
  return counts;
}

}  // namespace

absl::StatusOr<StoredBlocks> StoredBlocks::Load(const Archive& archive) {
  StoredBlocks blocks;
  if (archive.info().stored_size_bytes > kStoredSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the archive has ", archive.info().stored_size_bytes,
        " bytes; at most ", kStoredSizeBytesMax, " are held in memory"));
  }
  for (uint32_t s = 0; s < archive.info().segment_count; ++s) {
    const uint64_t count = archive.SegmentBlockCount(s);
    const Extent first = count > 0 ? archive.BlockExtent({s, 0}) : Extent();
    const Extent last =
        count > 0 ? archive.BlockExtent({s, count - 1}) : Extent();
    blocks.segments_.push_back(
        {first.offset.value,
         std::vector<uint8_t>(last.offset.value + last.size_bytes -
                              first.offset.value)});
    QUIRE_RETURN_IF_ERROR(ReadExactly(first.fd, first.offset.value,
                                      blocks.segments_.back().bytes,
                                      archive.path()));
  }
  return blocks;
}

ByteView StoredBlocks::Get(BlockAddress block, const Extent& extent) const {
  const Segment& segment = segments_[block.segment_index];
  return ByteView(segment.bytes)
      .subspan(extent.offset.value - segment.start, extent.size_bytes);
}

absl::StatusOr<BenchCounts> DecodeFromMemory(const Archive& archive,
                                             const StoredBlocks& stored,
                                             BenchRequests& requests,
                                             BenchClock::time_point end) {
  std::vector<absl::StatusOr<BenchCounts>> results(
      std::max(1U, std::thread::hardware_concurrency()), BenchCounts());
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (absl::StatusOr<BenchCounts>& result : results) {
    threads.emplace_back(
        [&] { result = DecodeOnOneThread(archive, stored, requests, end); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  BenchCounts sum;
  for (const absl::StatusOr<BenchCounts>& result : results) {
    QUIRE_RETURN_IF_ERROR(result.status());
    sum.requests += result->requests;
    sum.blocks += result->blocks;
    sum.text_size_bytes += result->text_size_bytes;
  }
  return sum;
}

}  // namespace quire
