// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/super_features.h"

#include <algorithm>
#include <span>

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/reorder/gear_hash.h"

namespace quire {
namespace {

constexpr size_t kFeaturesEach = 2;
constexpr size_t kFeatureCount = kSuperFeatureCount * kFeaturesEach;
// One offset in 32 is selected: about 64 per chunk of 2 KiB.
constexpr uint64_t kSelectionMask = uint64_t{31} << 59;

struct Transform {
  uint32_t factor = 0;
  uint32_t summand = 0;
};

constexpr std::array<Transform, kFeatureCount> MakeTransforms() {
  std::array<Transform, kFeatureCount> transforms;
  uint64_t state = 0x0DE55u;
  for (Transform& transform : transforms) {
    const uint64_t word = NextRandomWord(state);
    transform = {static_cast<uint32_t>(word) | 1,
                 static_cast<uint32_t>(word >> 32)};
  }
  return transforms;
}

constexpr std::array<Transform, kFeatureCount> kTransforms = MakeTransforms();

// Finds the maximum of each transform at the selected offsets; returns false if
// there are none.
bool FindMaxima(ByteView chunk, std::array<uint32_t, kFeatureCount>& features) {
  bool is_selected = false;
  uint64_t hash = 0;
  for (const uint8_t byte : chunk) {
    hash = ExtendGearHash(hash, byte);
    if ((hash & kSelectionMask) != 0) {
      continue;
    }
    is_selected = true;
    // The middle bits: the top ones select the offset.
    const auto value = static_cast<uint32_t>(hash >> 24);
    for (size_t i = 0; i < features.size(); ++i) {
      features[i] = std::max(
          features[i], value * kTransforms[i].factor + kTransforms[i].summand);
    }
  }
  return is_selected;
}

uint64_t HashFeatures(std::span<const uint32_t> features, size_t index) {
  std::array<uint8_t, kFeaturesEach * sizeof(uint32_t)> bytes;
  for (size_t i = 0; i < features.size(); ++i) {
    StoreLittleEndian(features[i], bytes.data() + i * sizeof(uint32_t));
  }
  return std::max<uint64_t>(1, Checksum64(bytes, index));
}

}  // namespace

SuperFeatures SuperFeaturesOf(ByteView chunk) {
  std::array<uint32_t, kFeatureCount> features = {};
  SuperFeatures found = {};
  if (FindMaxima(chunk, features)) {
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = HashFeatures(
          std::span(features).subspan(i * kFeaturesEach, kFeaturesEach), i);
    }
  }
  return found;
}

}  // namespace quire
