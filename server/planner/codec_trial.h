// SPDX-License-Identifier: GPL-3.0-or-later
//
// A codec tried on a sample with all cores busy.
#ifndef QUIRE_SERVER_PLANNER_CODEC_TRIAL_H_
#define QUIRE_SERVER_PLANNER_CODEC_TRIAL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/planner/collection_sample.h"

namespace quire {

inline constexpr size_t kTrialBlocksMin = 48;

struct TrialOptions {
  uint32_t block_size_bytes = 64 << 10;
  uint32_t thread_count = 1;
  // Blocks are encoded, evenly spread, until so much CPU time is spent, but at
  // least so many of them where there are as many.
  double seconds = 1;
  size_t block_count_min = kTrialBlocksMin;
  // Of the text that the pieces stand for; the result is corrected for blocks
  // that are harder or easier to compress than that.
  Compressibility compressibility = {};
  // The size of that text; 0: that of the pieces.
  uint64_t text_size_bytes = 0;
};

struct CodecTrialResult {
  uint64_t block_count = 0;
  uint64_t raw_bytes = 0;
  // Stored over raw, by linear regression on Compressibility; blocks that do
  // not shrink count as their text. And its standard error, as if each piece
  // were like a single block: what is close together is much alike.
  double stored_share = 1;
  double share_error = 0;
  // What the codec takes before its first block: to index a dictionary.
  double prepare_seconds = 0;
  // Of one core while the others do the same, in bytes of text.
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
};

// CPU time of the calling thread.
double ThreadSeconds();

// Cuts each piece into blocks and encodes and decodes some of them.
// REQUIRES: pieces hold text; block_size_bytes, thread_count > 0.
// Errors: those of the codec; Internal if it does not give the text back.
absl::StatusOr<CodecTrialResult> TryCodec(
    const CodecSpec& spec, const std::shared_ptr<const CodecContext>& context,
    std::span<const std::string> pieces, const TrialOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_CODEC_TRIAL_H_
