// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/super_features.h"

#include <algorithm>
#include <functional>
#include <span>

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/reorder/gear_hash.h"

namespace quire {
namespace {

constexpr size_t kFeaturesEach = 2;
constexpr size_t kFeatureCount = kSuperFeatureCount * kFeaturesEach;
constexpr size_t kFeatureCountMax =
    size_t{kSketchCountMax} * kSketchFeaturesEachMax;
// One offset in 32 is selected: about 64 per chunk of 2 KiB.
constexpr uint64_t kSelectionMask = uint64_t{31} << 59;
constexpr uint64_t kEveryPlace = 0;

struct Transform {
  uint32_t factor = 0;
  uint32_t summand = 0;
};

constexpr std::array<Transform, kFeatureCountMax> MakeTransforms() {
  std::array<Transform, kFeatureCountMax> transforms;
  uint64_t state = 0x0DE55u;
  for (Transform& transform : transforms) {
    const uint64_t word = NextRandomWord(state);
    transform = {static_cast<uint32_t>(word) | 1,
                 static_cast<uint32_t>(word >> 32)};
  }
  return transforms;
}

constexpr std::array<Transform, kFeatureCountMax> kTransforms =
    MakeTransforms();

// The middle bits: the top ones select the offset.
uint32_t ValueOf(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 24);
}

// Finds the maximum of each transform at the selected offsets; returns false if
// there are none.
bool FindMaxima(ByteView chunk, uint64_t selection_mask,
                std::span<uint32_t> features) {
  bool is_selected = false;
  uint64_t hash = 0;
  for (const uint8_t byte : chunk) {
    hash = ExtendGearHash(hash, byte);
    if ((hash & selection_mask) != 0) {
      continue;
    }
    is_selected = true;
    const uint32_t value = ValueOf(hash);
    for (size_t i = 0; i < features.size(); ++i) {
      features[i] = std::max(
          features[i], value * kTransforms[i].factor + kTransforms[i].summand);
    }
  }
  return is_selected;
}

// Finds the maximum hash of each part, sorts each group of `count` parts, and
// puts hashes of one rank side by side.
bool FindRankedMaxima(ByteView chunk, size_t count,
                      std::span<uint32_t> features) {
  if (chunk.size() < features.size()) {
    return false;
  }
  std::array<uint32_t, kFeatureCountMax> maxima = {};
  uint64_t hash = 0;
  size_t begin = 0;
  for (size_t part = 0; part < features.size(); ++part) {
    const size_t end = chunk.size() * (part + 1) / features.size();
    for (const uint8_t byte : chunk.subspan(begin, end - begin)) {
      hash = ExtendGearHash(hash, byte);
      maxima[part] = std::max(maxima[part], ValueOf(hash));
    }
    begin = end;
  }
  const size_t group_count = features.size() / count;
  for (size_t group = 0; group < group_count; ++group) {
    const std::span<uint32_t> parts =
        std::span(maxima).subspan(group * count, count);
    std::ranges::sort(parts, std::greater());
    for (size_t rank = 0; rank < count; ++rank) {
      features[rank * group_count + group] = parts[rank];
    }
  }
  return true;
}

uint64_t HashFeatures(std::span<const uint32_t> features, size_t index) {
  std::array<uint8_t, kSketchFeaturesEachMax * sizeof(uint32_t)> bytes;
  for (size_t i = 0; i < features.size(); ++i) {
    StoreLittleEndian(features[i], bytes.data() + i * sizeof(uint32_t));
  }
  return std::max<uint64_t>(
      1, Checksum64(ByteView(bytes).first(features.size() * sizeof(uint32_t)),
                    index));
}

}  // namespace

SuperFeatures SuperFeaturesOf(ByteView chunk) {
  std::array<uint32_t, kFeatureCount> features = {};
  SuperFeatures found = {};
  if (FindMaxima(chunk, kSelectionMask, std::span(features))) {
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = HashFeatures(
          std::span(features).subspan(i * kFeaturesEach, kFeaturesEach), i);
    }
  }
  return found;
}

std::vector<uint64_t> SketchOf(ByteView chunk, const SketchOptions& options) {
  QUIRE_CHECK(options.count >= 1 && options.count <= kSketchCountMax &&
                  options.features_each >= 1 &&
                  options.features_each <= kSketchFeaturesEachMax,
              "options of a sketch outside their bounds");
  const auto count = static_cast<size_t>(options.count);
  const auto each = static_cast<size_t>(options.features_each);
  std::array<uint32_t, kFeatureCountMax> room = {};
  const std::span<uint32_t> features = std::span(room).first(count * each);
  bool has_features = false;
  switch (options.method) {
    case SketchMethod::kOdess:
      has_features = FindMaxima(chunk, kSelectionMask, features);
      break;
    case SketchMethod::kNTransform:
      has_features = FindMaxima(chunk, kEveryPlace, features);
      break;
    case SketchMethod::kFinesse:
      has_features = FindRankedMaxima(chunk, count, features);
      break;
  }
  std::vector<uint64_t> found(count, 0);
  for (size_t i = 0; has_features && i < count; ++i) {
    found[i] = HashFeatures(features.subspan(i * each, each), i);
  }
  return found;
}

}  // namespace quire
