// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/codec_trial.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/planner/collection_sample.h"

namespace quire {
namespace {

std::vector<ByteView> CutIntoBlocks(std::span<const std::string> pieces,
                                    size_t block_size) {
  std::vector<ByteView> blocks;
  for (const std::string& piece : pieces) {
    for (size_t at = 0; at < piece.size(); at += block_size) {
      blocks.push_back(
          AsBytes(piece).subspan(at, std::min(block_size, piece.size() - at)));
    }
  }
  return blocks;
}

// Numbers below `count` so that any beginning of them is evenly spread.
class SpreadOrder {
 public:
  explicit SpreadOrder(size_t count) : count_(count) {
    // About the golden section, and coprime.
    step_ = static_cast<size_t>(static_cast<double>(count) * 0.6180339887) | 1;
    while (std::gcd(step_, count_) != 1) {
      step_ += 2;
    }
  }

  size_t At(size_t i) const { return i * step_ % count_; }

 private:
  size_t count_;
  size_t step_ = 1;
};

// What one thread has done.
struct Share {
  absl::Status status = absl::OkStatus();
  uint64_t blocks = 0;
  uint64_t raw = 0;
  // Of incompressible shares x and stored shares y of blocks.
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double last_y = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;
};

class Trial {
 public:
  Trial(const BlockCodec& codec, std::vector<ByteView> blocks,
        const TrialOptions& options)
      : codec_(codec),
        blocks_(std::move(blocks)),
        order_(blocks_.size()),
        options_(options) {}

  absl::StatusOr<CodecTrialResult> Run() {
    std::vector<Share> shares(options_.thread_count);
    {
      std::vector<std::jthread> threads;
      threads.reserve(shares.size());
      for (Share& share : shares) {
        threads.emplace_back([this, &share] { Work(share); });
      }
    }
    Share all;
    for (const Share& share : shares) {
      QUIRE_RETURN_IF_ERROR(share.status);
      all.blocks += share.blocks;
      all.raw += share.raw;
      all.x += share.x;
      all.y += share.y;
      all.xx += share.xx;
      all.xy += share.xy;
      all.yy += share.yy;
      all.encode_seconds += share.encode_seconds;
      all.decode_seconds += share.decode_seconds;
    }
    const auto count = static_cast<double>(all.blocks);
    const auto raw = static_cast<double>(all.raw);
    const double mean_x = all.x / count;
    const double mean_y = all.y / count;
    const double variance_x = std::max(0.0, all.xx / count - mean_x * mean_x);
    const double covariance = all.xy / count - mean_x * mean_y;
    const double slope = variance_x > 1e-9 ? covariance / variance_x : 0;
    const double variance =
        std::max(0.0, all.yy / count - mean_y * mean_y - slope * covariance);
    const double left_out = 1 - count / static_cast<double>(blocks_.size());
    return CodecTrialResult{
        .block_count = all.blocks,
        .raw_bytes = all.raw,
        .stored_share = std::clamp(
            mean_y + slope * (options_.incompressible_share - mean_x), 1e-6,
            1.0),
        .share_error = std::sqrt(variance / count * left_out),
        .encode_bytes_per_second = raw / std::max(all.encode_seconds, 1e-9),
        .decode_bytes_per_second = raw / std::max(all.decode_seconds, 1e-9)};
  }

 private:
  void Work(Share& share) {
    const std::unique_ptr<BlockCodec::Scratch> scratch = codec_.NewScratch();
    std::vector<uint8_t> stored(
        codec_.StoredSizeMax(options_.block_size_bytes));
    std::vector<uint8_t> raw(options_.block_size_bytes);
    IncompressibleShare incompressible;
    while (share.encode_seconds < options_.seconds ||
           next_ < options_.block_count_min) {
      const size_t i = next_.fetch_add(1);
      if (i >= blocks_.size()) {
        return;
      }
      share.status =
          TryBlock(blocks_[order_.At(i)], stored, raw, *scratch, share);
      incompressible.Add(blocks_[order_.At(i)]);
      const double x = incompressible.Take();
      share.x += x;
      share.xx += x * x;
      share.xy += x * share.last_y;
      if (!share.status.ok()) {
        return;
      }
    }
  }

  absl::Status TryBlock(ByteView block, MutableByteView stored,
                        MutableByteView raw, BlockCodec::Scratch& scratch,
                        Share& share) const {
    const double started = ThreadSeconds();
    QUIRE_ASSIGN_OR_RETURN(const size_t size,
                           codec_.Encode(block, stored, scratch));
    const double encoded = ThreadSeconds();
    const MutableByteView text = raw.first(block.size());
    QUIRE_RETURN_IF_ERROR(codec_.Decode(stored.first(size), text, scratch));
    const double decoded = ThreadSeconds();
    if (!std::ranges::equal(text, block)) {
      return absl::InternalError(
          absl::StrCat("codec ", codec_.info().name,
                       " gave another text back than it was given"));
    }
    const uint64_t kept = std::min<uint64_t>(size, block.size());
    const double share_kept =
        static_cast<double>(kept) / static_cast<double>(block.size());
    ++share.blocks;
    share.raw += block.size();
    share.y += share_kept;
    share.yy += share_kept * share_kept;
    share.last_y = share_kept;
    share.encode_seconds += encoded - started;
    share.decode_seconds += decoded - encoded;
    return absl::OkStatus();
  }

  const BlockCodec& codec_;
  const std::vector<ByteView> blocks_;
  const SpreadOrder order_;
  const TrialOptions options_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

absl::StatusOr<CodecTrialResult> TryCodec(
    const CodecSpec& spec, const std::shared_ptr<const CodecContext>& context,
    std::span<const std::string> pieces, const TrialOptions& options) {
  const double started = ThreadSeconds();
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BlockCodec> codec,
      MakeBlockCodec(spec, context, CodecUse::kEncodeAndDecode));
  const double prepare_seconds = ThreadSeconds() - started;
  QUIRE_ASSIGN_OR_RETURN(
      CodecTrialResult result,
      Trial(*codec, CutIntoBlocks(pieces, options.block_size_bytes), options)
          .Run());
  result.prepare_seconds = prepare_seconds;
  return result;
}

}  // namespace quire
