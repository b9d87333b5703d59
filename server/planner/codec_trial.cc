// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/codec_trial.h"

#include <algorithm>
#include <array>
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
#include "server/planner/control_mean.h"

namespace quire {
namespace {

// A figure from a sample is never better than that, as a share of itself.
constexpr double kShareErrorMin = 0.01;

struct TriedBlock {
  ByteView text;
  // Every other piece of the sample is of the second half.
  size_t half = 0;
};

std::vector<TriedBlock> CutIntoBlocks(std::span<const std::string> pieces,
                                      size_t block_size) {
  std::vector<TriedBlock> blocks;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ByteView piece = AsBytes(pieces[i]);
    for (size_t at = 0; at < piece.size(); at += block_size) {
      blocks.push_back(
          {.text = piece.subspan(at, std::min(block_size, piece.size() - at)),
           .half = i % 2});
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

ControlMean::Controls ToControls(const Compressibility& compressibility) {
  return {compressibility.incompressible_share, compressibility.lz4_share};
}

// What one thread has done.
struct Share {
  absl::Status status = absl::OkStatus();
  uint64_t blocks = 0;
  uint64_t raw = 0;
  // The shares of blocks that are stored, of each half of the sample.
  std::array<ControlMean, 2> stored_shares;
  double encode_seconds = 0;
  double decode_seconds = 0;
};

class Trial {
 public:
  Trial(const BlockCodec& codec, std::span<const std::string> pieces,
        const TrialOptions& options)
      : codec_(codec),
        piece_count_(pieces.size()),
        blocks_(CutIntoBlocks(pieces, options.block_size_bytes)),
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
      for (size_t i = 0; i < all.stored_shares.size(); ++i) {
        all.stored_shares[i].Add(share.stored_shares[i]);
      }
      all.encode_seconds += share.encode_seconds;
      all.decode_seconds += share.decode_seconds;
    }
    const auto count = static_cast<double>(all.blocks);
    const auto raw = static_cast<double>(all.raw);
    ControlMean both = all.stored_shares[0];
    both.Add(all.stored_shares[1]);
    const ControlMean::Controls controls = ToControls(options_.compressibility);
    const ControlMean::Estimate share = both.EstimateFor(controls);
    const double left_out =
        1 - raw / std::max(raw, static_cast<double>(options_.text_size_bytes));
    const double independent =
        std::min(count, static_cast<double>(piece_count_));
    // Half of the difference of two halves is the error of their mean.
    double error = std::sqrt(share.variance / independent);
    if (all.stored_shares[0].count() > 0 && all.stored_shares[1].count() > 0) {
      error = std::max(
          error, std::abs(all.stored_shares[0].EstimateFor(controls).mean -
                          all.stored_shares[1].EstimateFor(controls).mean) /
                     2);
    }
    const double mean = std::clamp(share.mean, 1e-6, 1.0);
    return CodecTrialResult{
        .block_count = all.blocks,
        .raw_bytes = all.raw,
        .stored_share = mean,
        .share_error =
            std::max(error * std::sqrt(left_out), kShareErrorMin * mean),
        .encode_bytes_per_second = raw / std::max(all.encode_seconds, 1e-9),
        .decode_bytes_per_second = raw / std::max(all.decode_seconds, 1e-9)};
  }

 private:
  void Work(Share& share) {
    const std::unique_ptr<BlockCodec::Scratch> scratch = codec_.NewScratch();
    std::vector<uint8_t> stored(
        codec_.StoredSizeMax(options_.block_size_bytes));
    std::vector<uint8_t> raw(options_.block_size_bytes);
    CompressibilityMeter meter;
    while (share.encode_seconds < options_.seconds ||
           next_ < options_.block_count_min) {
      const size_t i = next_.fetch_add(1);
      if (i >= blocks_.size()) {
        return;
      }
      const TriedBlock& block = blocks_[order_.At(i)];
      meter.Add(block.text);
      share.status =
          TryBlock(block, meter.Take(), stored, raw, *scratch, share);
      if (!share.status.ok()) {
        return;
      }
    }
  }

  absl::Status TryBlock(const TriedBlock& tried,
                        const Compressibility& compressibility,
                        MutableByteView stored, MutableByteView raw,
                        BlockCodec::Scratch& scratch, Share& share) const {
    const ByteView block = tried.text;
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
    share.stored_shares[tried.half].Add(share_kept,
                                        ToControls(compressibility));
    share.encode_seconds += encoded - started;
    share.decode_seconds += decoded - encoded;
    return absl::OkStatus();
  }

  const BlockCodec& codec_;
  const size_t piece_count_;
  const std::vector<TriedBlock> blocks_;
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
  QUIRE_ASSIGN_OR_RETURN(CodecTrialResult result,
                         Trial(*codec, pieces, options).Run());
  result.prepare_seconds = prepare_seconds;
  return result;
}

}  // namespace quire
