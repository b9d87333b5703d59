// SPDX-License-Identifier: Apache-2.0
//
// Sketches for finding similar chunks: two that share most of their text
// usually share a super-feature. After Zou et al., "Odess: Speeding up
// Resemblance Detection for Redundancy Elimination by Fast Content-Defined
// Sampling" (ICDE 2021): features are maxima over linear transforms of a gear
// hash, at the offsets that the hash itself selects.
#ifndef QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
#define QUIRE_CODECS_REORDER_SUPER_FEATURES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr int kSuperFeatureCount = 4;

// 0 means none. Super-features of different index are equal only by accident.
using SuperFeatures = std::array<uint64_t, kSuperFeatureCount>;

// Pure; equal text always gives equal super-features: archives depend on it. A
// text without selected offsets, such as a short one, has none.
SuperFeatures SuperFeaturesOf(ByteView chunk);

// --- References to compare with ---

enum class SketchMethod {
  // Like SuperFeaturesOf().
  kOdess,
  // The same at every offset: Broder's features, by Shilane et al. ("WAN
  // Optimized Replication of Backup Datasets Using Stream-Informed Delta
  // Compression", FAST 2012), with a gear hash instead of Rabin's.
  kNTransform,
  // Zhang et al., "Finesse: Fine-Grained Feature Locality based Fast
  // Resemblance Detection" (FAST 2019): the maximum hash of each of several
  // equal parts of the chunk; a super-feature combines those of one rank.
  kFinesse,
};

inline constexpr int kSketchCountMax = 16;
inline constexpr int kSketchFeaturesEachMax = 4;

struct SketchOptions {
  SketchMethod method = SketchMethod::kOdess;
  // Super-features, 1 to kSketchCountMax.
  int count = kSuperFeatureCount;
  // Features per super-feature, 1 to kSketchFeaturesEachMax: with more, chunks
  // that share one are more alike, and fewer do.
  int features_each = 2;
};

// Pure. Returns options.count super-features; with the default options those of
// SuperFeaturesOf(). REQUIRES: the options are within their bounds.
std::vector<uint64_t> SketchOf(ByteView chunk, const SketchOptions& options);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
