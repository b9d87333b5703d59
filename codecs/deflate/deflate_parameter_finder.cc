// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_parameter_finder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codecs/deflate/deflate_block_writer.h"
#include "codecs/deflate/deflate_state.h"

namespace quire {
namespace {

// Size of the front of a text that is examined before any trial, in bytes.
constexpr size_t kFrontSizeMax = size_t{256} << 10;
constexpr size_t kFilteredLengthMin = 6;
constexpr uint8_t kGzipXflBest = 2;
constexpr uint8_t kGzipXflFast = 4;

// All levels, in the order of likelihood for a header.
using Levels = std::array<uint8_t, 9>;
constexpr Levels kLevelsBest = {9, 8, 7, 6, 5, 4, 3, 2, 1};
constexpr Levels kLevelsUsual = {6, 9, 5, 4, 3, 2, 7, 8, 1};
constexpr Levels kLevelsLow = {5, 4, 3, 2, 6, 1, 9, 7, 8};
constexpr Levels kLevelsFast = {1, 2, 3, 4, 5, 6, 9, 7, 8};

const Levels& LevelsFor(const DeflateHint& hint) {
  if (hint.container == DeflateContainer::kZlib) {
    constexpr std::array<const Levels*, 4> kByEffort = {
        &kLevelsFast, &kLevelsLow, &kLevelsUsual, &kLevelsBest};
    return *kByEffort[hint.effort & 3];
  }
  if (hint.container == DeflateContainer::kGzip) {
    return hint.effort == kGzipXflBest   ? kLevelsBest
           : hint.effort == kGzipXflFast ? kLevelsFast
                                         : kLevelsUsual;
  }
  return kLevelsUsual;
}

}  // namespace

DeflateParameterFinder::FirstBlock DeflateParameterFinder::ReadFirstBlock(
    ByteView stream, ByteView text) {
  FirstBlock block;
  symbols_.clear();
  const uint8_t header = stream.empty() ? uint8_t{0} : stream.front();
  block.is_last = (header & 1) != 0;
  block.is_stored = (header >> 1 & 3) == 0;
  block.is_fixed = (header >> 1 & 3) == 1;
  if (block.is_stored) {
    return block;
  }
  matches_.clear();
  front_.resize(std::min(text.size(), kFrontSizeMax));
  decoder_.Start(stream, front_);
  decoder_.RecordMatches(matches_);
  if (!decoder_.DecodeTo(front_.size()).ok()) {
    return block;
  }
  size_t end = decoder_.first_block_end();
  const bool is_whole = block.is_last ? front_.size() == text.size() : end != 0;
  if (!is_whole || block.is_last) {
    // The end of the front may truncate the last match.
    end = is_whole           ? text.size()
          : matches_.empty() ? front_.size()
                             : matches_.back().offset;
  }
  size_t at = 0;
  for (const TextMatch& match : matches_) {
    if (match.offset >= end ||
        symbols_.size() > DeflateBlockWriter::kSymbolsMax) {
      break;
    }
    symbols_.insert(symbols_.end(), text.begin() + static_cast<ptrdiff_t>(at),
                    text.begin() + match.offset);
    symbols_.push_back(match.distance << 8 |
                       (match.size - uint32_t{kDeflateMatchMin}));
    at = size_t{match.offset} + match.size;
    block.has_matches = true;
    block.has_far_matches |= match.distance != 1;
    block.has_short_matches |= match.size < kFilteredLengthMin;
  }
  if (at < end) {
    symbols_.insert(symbols_.end(), text.begin() + static_cast<ptrdiff_t>(at),
                    text.begin() + static_cast<ptrdiff_t>(end));
  }
  block.symbol_count = is_whole ? symbols_.size() : 0;
  return block;
}

void DeflateParameterFinder::AddTrial(const DeflateParameters& parameters) {
  if (AreValid(parameters) &&
      std::ranges::find(trials_, parameters) == trials_.end()) {
    trials_.push_back(parameters);
  }
}

void DeflateParameterFinder::ListTrials(const FirstBlock& block,
                                        const DeflateHint& hint) {
  trials_.clear();
  // The symbol count of a block that is not the last reveals zlib's memory
  // level, or gzip.
  bool may_be_gzip = hint.container != DeflateContainer::kZlib;
  std::vector<uint8_t> memory_levels = {8, 9};
  if (!block.is_last && block.symbol_count != 0) {
    const size_t count = block.symbol_count;
    may_be_gzip &= count % kGzipPeriod == 0 || count == kGzipBlockSymbols;
    memory_levels.clear();
    const auto bits = static_cast<unsigned>(std::bit_width(count));
    if (std::has_single_bit(count + 1) && bits >= 7 && bits <= 15) {
      memory_levels.push_back(static_cast<uint8_t>(bits - 6));
    }
  }
  std::vector<DeflateStrategy> strategies = {DeflateStrategy::kDefault};
  if (block.is_stored || !block.has_short_matches) {
    strategies.push_back(DeflateStrategy::kFiltered);
  }
  if (!block.is_stored && !block.has_far_matches) {
    strategies.push_back(DeflateStrategy::kRle);
  }
  if (!block.is_stored && !block.has_matches) {
    strategies.push_back(DeflateStrategy::kHuffmanOnly);
  }
  if (block.is_fixed) {
    strategies.push_back(DeflateStrategy::kFixed);
  }
  // zlib makes a window of 9 bits if asked for 8.
  const std::array<uint8_t, 2> windows = {
      std::max<uint8_t>(hint.window_bits, 9), 15};
  for (const DeflateStrategy strategy : strategies) {
    for (const uint8_t level : LevelsFor(hint)) {
      if (may_be_gzip) {
        AddTrial({.encoder = DeflateEncoderId::kGzip,
                  .level = level,
                  .strategy = strategy});
      }
      for (const uint8_t memory_level : memory_levels) {
        for (const uint8_t window_bits : windows) {
          AddTrial({.level = level,
                    .memory_level = memory_level,
                    .window_bits = window_bits,
                    .strategy = strategy});
        }
      }
    }
  }
}

absl::StatusOr<DeflateParameters> DeflateParameterFinder::Find(
    ByteView stream, ByteView text, const DeflateHint& hint,
    absl::FunctionRef<bool()> cancelled) {
  work_ = 0;
  const DeflateLimits limits = {.work_max = DeflateWorkMax(text.size()),
                                .cancelled = cancelled};
  const FirstBlock block = ReadFirstBlock(stream, text);
  if (symbols_.size() > DeflateBlockWriter::kSymbolsMax) {
    return absl::NotFoundError(
        "the first block has more symbols than any of a "
        "known encoder");
  }
  ListTrials(block, hint);
  absl::Status status = absl::NotFoundError("no known encoder made the stream");
  for (const DeflateParameters& parameters : trials_) {
    if (cancelled()) {
      return absl::CancelledError("the search was cancelled");
    }
    ByteView left = stream;
    const absl::Status trial = encoder_.state().Encode(
        parameters, text,
        [&](ByteView bytes) {
          if (bytes.size() > left.size() ||
              std::memcmp(bytes.data(), left.data(), bytes.size()) != 0) {
            return false;
          }
          left = left.subspan(bytes.size());
          return true;
        },
        limits, symbols_);
    work_ += encoder_.work() - encoder_.state().unread_size();
    if (trial.ok() && left.empty()) {
      return parameters;
    }
    if (absl::IsResourceExhausted(trial)) {
      status = trial;
    }
  }
  return status;
}

}  // namespace quire
