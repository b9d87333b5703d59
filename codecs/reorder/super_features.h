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

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr int kSuperFeatureCount = 4;

// 0 means none. Super-features of different index are equal only by accident.
using SuperFeatures = std::array<uint64_t, kSuperFeatureCount>;

// Pure; equal text always gives equal super-features: archives depend on it. A
// text without selected offsets, such as a short one, has none.
SuperFeatures SuperFeaturesOf(ByteView chunk);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
