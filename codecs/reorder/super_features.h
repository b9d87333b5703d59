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

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr int kSuperFeatureCount = 4;

// 0: none. Those of different index never equal each other but by accident.
using SuperFeatures = std::array<uint64_t, kSuperFeatureCount>;

// Pure; the same for equal text, for ever: archives depend on it. A text in
// which no place is selected, as short ones may be, has none.
SuperFeatures SuperFeaturesOf(ByteView chunk);

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_SUPER_FEATURES_H_
