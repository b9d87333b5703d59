// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/window_chooser.h"

#include <algorithm>
#include <bit>

#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kStringSize = sizeof(uint64_t);
// One in this many strings is sampled.
constexpr uint64_t kSampling = 8;
// Windows begin at multiples of this.
constexpr size_t kBinSize = 4096;
constexpr size_t kBinsPerWindow = WindowChooser::kWindowSize / kBinSize;

uint64_t HashOf(uint64_t string) {
  return string * 0x9E3779B97F4A7C15;
}

bool Counts(uint64_t hash) {
  return (hash >> 32) % kSampling == 0;
}

}  // namespace

WindowChooser::WindowChooser(ByteView dictionary) : dictionary_(dictionary) {
  // The table has about a quarter as many hashes as there are sampled strings.
  const size_t hash_count =
      std::bit_ceil(dictionary.size() / kSampling / kPlaces + 16);
  table_bits_ = static_cast<unsigned>(std::countr_zero(hash_count));
  places_.assign(hash_count * kPlaces, 0);
  for (size_t i = 0; i + kStringSize <= dictionary.size(); ++i) {
    const uint64_t hash =
        HashOf(LoadLittleEndian<uint64_t>(dictionary.data() + i));
    if (Counts(hash)) {
      uint32_t* const places = &places_[(hash >> (64 - table_bits_)) * kPlaces];
      std::move_backward(places, places + kPlaces - 1, places + kPlaces);
      places[0] = static_cast<uint32_t>(i) + 1;
    }
  }
}

size_t WindowChooser::Choose(ByteView block, Memory& memory) const {
  if (dictionary_.size() <= kWindowSize) {
    return 0;
  }
  // Each string once: deflate finds the block's own repetitions in the block.
  memory.strings.clear();
  for (size_t i = 0; i + kStringSize <= block.size(); ++i) {
    const auto string = LoadLittleEndian<uint64_t>(block.data() + i);
    if (Counts(HashOf(string))) {
      memory.strings.push_back(string);
    }
  }
  std::ranges::sort(memory.strings);
  memory.strings.erase(
      std::unique(memory.strings.begin(), memory.strings.end()),
      memory.strings.end());

  memory.votes.assign(dictionary_.size() / kBinSize + 1, 0);
  for (const uint64_t string : memory.strings) {
    const uint32_t* const places =
        &places_[(HashOf(string) >> (64 - table_bits_)) * kPlaces];
    size_t last_bin = SIZE_MAX;
    for (size_t i = 0; i < kPlaces && places[i] != 0; ++i) {
      const size_t place = places[i] - size_t{1};
      if (LoadLittleEndian<uint64_t>(dictionary_.data() + place) == string &&
          place / kBinSize != last_bin) {
        last_bin = place / kBinSize;
        ++memory.votes[last_bin];
      }
    }
  }
  size_t best = 0;
  uint32_t best_votes = 0;
  uint32_t votes = 0;
  for (size_t bin = 0; bin < memory.votes.size(); ++bin) {
    votes += memory.votes[bin];
    if (bin >= kBinsPerWindow) {
      votes -= memory.votes[bin - kBinsPerWindow];
    }
    if (votes > best_votes) {
      best_votes = votes;
      best = bin < kBinsPerWindow ? 0 : bin - kBinsPerWindow + 1;
    }
  }
  return std::min(best * kBinSize, dictionary_.size() - kWindowSize);
}

}  // namespace quire
