// SPDX-License-Identifier: Apache-2.0
//
// Sketches by which similar chunks are found: two that share most of their text
// share a super-feature more often than not. After Zou et al., "Odess: Speeding
// up Resemblance Detection for Redundancy Elimination by Fast Content-Defined
// Sampling" (ICDE 2021): features are maxima over linear transforms of a gear
// hash, taken at the places that the hash itself selects.
#ifndef QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
#define QUIRE_CODECS_REORDER_SUPER_FEATURES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr int kSuperFeatureCount = 4;

// 0: none. Those of different index never equal each other but by accident.
using SuperFeatures = std::array<uint64_t, kSuperFeatureCount>;

// Pure; the same for equal text, for ever: archives depend on it. A text in
// which no place is selected, as short ones may be, has none.
SuperFeatures SuperFeaturesOf(ByteView chunk);

// --- What the above is measured against ---

enum class SketchMethod {
  // As SuperFeaturesOf().
  kOdess,
  // The same at every place: Broder's features, by Shilane et al. ("WAN
  // Optimized Replication of Backup Datasets Using Stream-Informed Delta
  // Compression", FAST 2012), with a gear hash for Rabin's.
  kNTransform,
  // Zhang et al., "Finesse: Fine-Grained Feature Locality based Fast
  // Resemblance Detection" (FAST 2019): the greatest hash of each of as many
  // equal parts of the chunk; a super-feature is of those of one rank.
  kFinesse,
};

inline constexpr int kSketchCountMax = 16;
inline constexpr int kSketchFeaturesEachMax = 4;

struct SketchOptions {
  SketchMethod method = SketchMethod::kOdess;
  // Super-features, 1 to kSketchCountMax.
  int count = kSuperFeatureCount;
  // Features that a super-feature is made of, 1 to kSketchFeaturesEachMax: with
  // more of them, chunks that share one are more alike, and fewer do.
  int features_each = 2;
};

// Pure. options.count super-features, as of SuperFeaturesOf(), which is this
// with the default options. REQUIRES: the options are within their bounds.
std::vector<uint64_t> SketchOf(ByteView chunk, const SketchOptions& options);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
