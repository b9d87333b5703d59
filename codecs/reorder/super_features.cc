// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/super_features.h"

#include <algorithm>

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/reorder/gear_hash.h"

namespace quire {
namespace {

constexpr int kFeaturesEach = 2;
constexpr int kFeatureCount = kSuperFeatureCount * kFeaturesEach;
// One place in 32 is selected: some 64 of a chunk of 2 KiB.
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

}  // namespace

SuperFeatures SuperFeaturesOf(ByteView chunk) {
  std::array<uint32_t, kFeatureCount> features = {};
  bool is_selected = false;
  uint64_t hash = 0;
  for (const uint8_t byte : chunk) {
    hash = ExtendGearHash(hash, byte);
    if ((hash & kSelectionMask) != 0) {
      continue;
    }
    is_selected = true;
    // The middle bits: the top ones are those that selected it.
    const auto value = static_cast<uint32_t>(hash >> 24);
    for (size_t i = 0; i < kFeatureCount; ++i) {
      features[i] = std::max(
          features[i], value * kTransforms[i].factor + kTransforms[i].summand);
    }
  }
  SuperFeatures super_features = {};
  for (size_t i = 0; is_selected && i < kSuperFeatureCount; ++i) {
    std::array<uint8_t, kFeaturesEach * sizeof(uint32_t)> group;
    for (size_t k = 0; k < kFeaturesEach; ++k) {
      StoreLittleEndian(features[i * kFeaturesEach + k],
                        group.data() + k * sizeof(uint32_t));
    }
    super_features[i] = std::max<uint64_t>(1, Checksum64(group, i));
  }
  return super_features;
}

}  // namespace quire
