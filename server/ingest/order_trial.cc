// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/order_trial.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"
#include "server/ingest/blocks/parallel_encoder.h"
#include "server/ingest/dictionary/dictionary_choice.h"

namespace quire {
namespace {

// Neighbours are alike, so that a window says less than as many single blocks;
// but parts of a block at its ends are estimated.
constexpr uint64_t kWindowBlocks = 4;
constexpr uint64_t kFirstSampleBytes = uint64_t{16} << 20;
// From round to round, of all samples.
constexpr uint64_t kGrowth = 4;
// Standard errors by which a difference is clear, and the text after which one
// decides, for the plain order.
constexpr double kClearErrors = 2;
constexpr uint64_t kSampleBytesMax = uint64_t{64} << 20;

// Part [begin, end) of the encoded text.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A sampled window, and the size of its blocks in both orders.
struct Window {
  uint64_t number = 0;
  double plain_bytes = 0;
  double changed_bytes = 0;
};

uint64_t DocumentBytes(const ReorderedText& text) {
  uint64_t size_bytes = 0;
  for (const ReorderedText::Segment& segment : text.segments) {
    for (const StoredRun& run : segment.layout.runs) {
      size_bytes += run.size_bytes;
    }
  }
  return size_bytes;
}

// Reads the text of a candidate. In the order of documents, ranges are read
// front to back.
class CandidateText {
 public:
  explicit CandidateText(const OrderCandidate& candidate)
      : text_(*candidate.text), order_(candidate.order) {}

  uint64_t size_bytes() const {
    return order_ == OrderCandidate::Order::kDocuments ? DocumentBytes(text_)
                                                       : text_.size_bytes;
  }

  // Returns the range of this text for each range of the documents' text, of
  // `documents_size_bytes`. REQUIRES: `ranges` are in order.
  std::vector<Range> RangesOf(std::vector<Range> ranges,
                              uint64_t documents_size_bytes) const {
    switch (order_) {
      case OrderCandidate::Order::kDocuments:
        break;
      case OrderCandidate::Order::kDuplicatesOmitted:
        ToStored(ranges);
        break;
      case OrderCandidate::Order::kMoved:
        for (Range& range : ranges) {
          range.begin = Scaled(range.begin, documents_size_bytes);
          range.end = Scaled(range.end, documents_size_bytes);
        }
        break;
    }
    return ranges;
  }

  absl::Status Read(uint64_t offset, MutableByteView out) {
    if (order_ != OrderCandidate::Order::kDocuments) {
      return ReadStoredText(*text_.file, offset, out);
    }
    while (!out.empty()) {
      const std::vector<StoredRun>& runs = text_.segments[segment_].layout.runs;
      if (run_ == runs.size()) {
        stored_begin_ += text_.segments[segment_].layout.stored_text_size_bytes;
        ++segment_;
        run_ = 0;
        continue;
      }
      const StoredRun& run = runs[run_];
      if (run_begin_ + run.size_bytes <= offset) {
        run_begin_ += run.size_bytes;
        ++run_;
        continue;
      }
      const uint64_t skipped = offset - run_begin_;
      const MutableByteView part =
          out.first(std::min<uint64_t>(out.size(), run.size_bytes - skipped));
      QUIRE_RETURN_IF_ERROR(ReadStoredText(
          *text_.file, stored_begin_ + run.stored_offset + skipped, part));
      offset += part.size();
      out = out.subspan(part.size());
    }
    return absl::OkStatus();
  }

 private:
  uint64_t Scaled(uint64_t offset, uint64_t documents_size_bytes) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(offset) *
                                 text_.size_bytes / documents_size_bytes);
  }

  // Replaces offsets in the documents by those of the text that is stored for
  // what is before them.
  void ToStored(std::vector<Range>& ranges) const {
    std::vector<uint64_t*> offsets;
    for (Range& range : ranges) {
      offsets.push_back(&range.begin);
      offsets.push_back(&range.end);
    }
    auto next = offsets.begin();
    uint64_t begin = 0;
    uint64_t stored_begin = 0;
    for (const ReorderedText::Segment& segment : text_.segments) {
      uint64_t stored = 0;
      for (const StoredRun& run : segment.layout.runs) {
        const uint64_t end = begin + run.size_bytes;
        for (; next != offsets.end() && **next < end; ++next) {
          **next = stored_begin +
                   std::max(stored, run.stored_offset + (**next - begin));
        }
        // A run repeats stored text, continues it, or both.
        stored = std::max(stored, run.stored_offset + run.size_bytes);
        begin = end;
      }
      stored_begin += segment.layout.stored_text_size_bytes;
    }
    for (; next != offsets.end(); ++next) {
      **next = stored_begin;
    }
  }

  const ReorderedText& text_;
  const OrderCandidate::Order order_;
  // --- In the order of documents: the run read last ---
  size_t segment_ = 0;
  size_t run_ = 0;
  // Its offset in the documents, and that of its segment in the stored text.
  uint64_t run_begin_ = 0;
  uint64_t stored_begin_ = 0;
};

// Makes the codecs of a trial, one at a time: each has an index.
class TrialCodecs {
 public:
  explicit TrialCodecs(const BuildOptions& options)
      : spec_(TrialCodec(options.archive.codec)) {}

  // Returns the codec with that context, valid until another is asked for.
  absl::StatusOr<const PayloadCodec*> For(
      const std::shared_ptr<const CodecContext>& context) {
    if (codec_ == nullptr || context != context_) {
      codec_.reset();
      context_ = context;
      QUIRE_ASSIGN_OR_RETURN(
          codec_, MakePayloadCodec(spec_, context, CodecUse::kTrial));
    }
    return codec_.get();
  }

 private:
  const CodecSpec spec_;
  std::shared_ptr<const CodecContext> context_;
  std::unique_ptr<PayloadCodec> codec_;
};

// Returns the size of the blocks of each range. A block that ends after its
// range counts by its part of it.
absl::StatusOr<std::vector<double>> EncodedSizes(
    const BuildOptions& options, const OrderCandidate& candidate,
    const PayloadCodec& codec, std::span<const Range> ranges) {
  struct Submitted {
    size_t range = 0;
    double share = 0;
  };

  const uint64_t block_size = options.archive.block_size_bytes;
  std::vector<double> sizes(ranges.size());
  std::deque<Submitted> submitted;
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ParallelEncoder> encoder,
      ParallelEncoder::Create(
          codec, options.threads, static_cast<size_t>(block_size),
          [&](ByteView /*raw*/, const Payload& payload) {
            const Submitted& oldest = submitted.front();
            sizes[oldest.range] +=
                oldest.share * static_cast<double>(payload.bytes.size());
            submitted.pop_front();
            return absl::OkStatus();
          }));
  CandidateText text(candidate);
  const uint64_t text_size = text.size_bytes();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (options.cancel != nullptr && options.cancel->load()) {
      return absl::CancelledError("the build was cancelled");
    }
    for (uint64_t at = ranges[i].begin; at < ranges[i].end; at += block_size) {
      const uint64_t size = std::min(block_size, text_size - at);
      QUIRE_ASSIGN_OR_RETURN(const MutableByteView buffer, encoder->Acquire());
      QUIRE_RETURN_IF_ERROR(
          text.Read(at, buffer.first(static_cast<size_t>(size))));
      submitted.push_back(
          {.range = i,
           .share = static_cast<double>(std::min(size, ranges[i].end - at)) /
                    static_cast<double>(size)});
      encoder->Submit(static_cast<size_t>(size));
    }
  }
  QUIRE_RETURN_IF_ERROR(encoder->Drain());
  return sizes;
}

// Estimates sums over all windows from some of them.
class Comparison {
 public:
  Comparison(const OrderCandidate& plain, const OrderCandidate& changed,
             double gain_min)
      : plain_other_bytes_(plain.other_bytes),
        changed_other_bytes_(changed.other_bytes),
        gain_min_(gain_min) {}

  void Add(std::span<const Window> windows) {
    windows_.insert(windows_.end(), windows.begin(), windows.end());
    std::ranges::sort(windows_, {}, &Window::number);
  }

  // `scale` is that from the windows to the whole text.
  OrderComparison Estimate(double scale) const {
    OrderComparison result;
    for (const Window& window : windows_) {
      result.plain_bytes += scale * window.plain_bytes;
      result.changed_bytes += scale * window.changed_bytes;
    }
    result.plain_bytes += plain_other_bytes_;
    result.changed_bytes += changed_other_bytes_;
    result.is_smaller = Excess(result) + ErrorBytes(scale) <= 0;
    return result;
  }

  bool IsClear(const OrderComparison& estimate, double scale) const {
    return std::abs(Excess(estimate)) > kClearErrors * ErrorBytes(scale);
  }

 private:
  // Bytes by which the changed archive exceeds what it must be smaller than.
  double Excess(const OrderComparison& estimate) const {
    return estimate.changed_bytes - (1 - gain_min_) * estimate.plain_bytes;
  }

  // Standard error of Excess(). Neighbours are alike: their differences show
  // how well one window stands for those that follow.
  double ErrorBytes(double scale) const {
    double sum = 0;
    for (size_t i = 1; i < windows_.size(); ++i) {
      const double difference =
          ExcessOf(windows_[i]) - ExcessOf(windows_[i - 1]);
      sum += difference * difference;
    }
    const auto count = static_cast<double>(windows_.size());
    const double variance = sum / (2 * std::max(1.0, count - 1));
    // The population is finite: no error if all of it is encoded.
    return scale * std::sqrt(count * variance * (1 - 1 / scale));
  }

  double ExcessOf(const Window& window) const {
    return window.changed_bytes - (1 - gain_min_) * window.plain_bytes;
  }

  const double plain_other_bytes_;
  const double changed_other_bytes_;
  const double gain_min_;
  std::vector<Window> windows_;
};

}  // namespace

absl::StatusOr<OrderComparison> CompareOrders(const BuildOptions& options,
                                              const OrderCandidate& plain,
                                              const OrderCandidate& changed,
                                              double gain_min) {
  const uint64_t text_size = DocumentBytes(*plain.text);
  const uint64_t window_size = kWindowBlocks * options.archive.block_size_bytes;
  const uint64_t window_count = (text_size + window_size - 1) / window_size;
  uint64_t stride = 1;
  while (text_size / stride > kFirstSampleBytes) {
    stride *= kGrowth;
  }
  const CandidateText plain_text(plain);
  const CandidateText changed_text(changed);
  TrialCodecs codecs(options);
  Comparison comparison(plain, changed, gain_min);
  uint64_t sampled_bytes = 0;
  // The first round takes every stride-th window; later ones those between.
  for (int round = 0; true; ++round) {
    std::vector<Window> windows;
    std::vector<Range> ranges;
    for (uint64_t number = 0; number < window_count; number += stride) {
      if (round > 0 && number % (stride * kGrowth) == 0) {
        continue;
      }
      windows.push_back({.number = number});
      ranges.push_back(
          {.begin = number * window_size,
           .end = std::min(text_size, (number + 1) * window_size)});
      sampled_bytes += ranges.back().end - ranges.back().begin;
    }
    // Each round begins with the codec that the one before ended with.
    for (const bool is_plain : {round % 2 == 0, round % 2 != 0}) {
      const OrderCandidate& candidate = is_plain ? plain : changed;
      QUIRE_ASSIGN_OR_RETURN(const PayloadCodec* const codec,
                             codecs.For(candidate.context));
      QUIRE_ASSIGN_OR_RETURN(const std::vector<double> sizes,
                             EncodedSizes(options, candidate, *codec,
                                          (is_plain ? plain_text : changed_text)
                                              .RangesOf(ranges, text_size)));
      for (size_t i = 0; i < windows.size(); ++i) {
        (is_plain ? windows[i].plain_bytes : windows[i].changed_bytes) =
            sizes[i];
      }
    }
    comparison.Add(windows);
    const double scale =
        static_cast<double>(text_size) / static_cast<double>(sampled_bytes);
    OrderComparison result = comparison.Estimate(scale);
    result.sampled_bytes = sampled_bytes;
    if (sampled_bytes >= std::min(text_size, kSampleBytesMax) ||
        comparison.IsClear(result, scale)) {
      return result;
    }
    stride /= kGrowth;
  }
}

}  // namespace quire
