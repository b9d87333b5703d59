// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/auto_trial.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"

#include "codecs/auto/block_probe.h"
#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// As many are enough to say how fast a codec is.
constexpr size_t kNumericBlocksMax = 64;

// The first blocks of pieces, where these look like numbers; empty if none do.
std::vector<std::string> NumericBlocks(std::span<const std::string> pieces,
                                       size_t block_size) {
  std::vector<std::string> blocks;
  for (const std::string& piece : pieces) {
    if (piece.empty()) {
      continue;
    }
    const ByteView block =
        AsBytes(piece).first(std::min(block_size, piece.size()));
    if (LooksNumeric(MeasureEntropy(block))) {
      blocks.emplace_back(AsText(block));
    }
    if (blocks.size() == kNumericBlocksMax) {
      break;
    }
  }
  return blocks;
}

uint64_t Bounded(double speed) {
  return static_cast<uint64_t>(
      std::clamp(speed, static_cast<double>(AutoSpeed::kMin),
                 static_cast<double>(AutoSpeed::kMax)));
}

}  // namespace

AutoSpeeds SpeedsOf(const PlannedSpeeds& planned, AutoObjective objective) {
  AutoSpeeds speeds;
  std::ranges::transform(AutoMembers(objective), speeds.begin(),
                         [&](const AutoMember& member) {
                           return planned.at(FormatCodecSpec(member.spec));
                         });
  return speeds;
}

AutoSpeed SpeedOf(const CodecTrialResult& trial) {
  return {.encode = Bounded(trial.encode_bytes_per_second),
          .decode = Bounded(trial.decode_bytes_per_second)};
}

absl::Status TryAutoMembers(const std::shared_ptr<const CodecContext>& context,
                            std::span<const std::string> pieces,
                            const TrialOptions& options,
                            PlannedSpeeds& planned) {
  const std::vector<std::string> numeric =
      NumericBlocks(pieces, options.block_size_bytes);
  for (const AutoObjective objective : kAutoObjectives) {
    for (const AutoMember& member : AutoMembers(objective)) {
      const std::string codec = FormatCodecSpec(member.spec);
      if (planned.contains(codec)) {
        continue;
      }
      const bool takes_numbers =
          member.spec.id == CodecId::kNumeric && !numeric.empty();
      QUIRE_ASSIGN_OR_RETURN(
          const CodecTrialResult trial,
          TryCodec(member.spec, context, takes_numbers ? numeric : pieces,
                   options));
      planned[codec] = SpeedOf(trial);
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
