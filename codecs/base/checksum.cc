// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/checksum.h"

#include <xxhash.h>

namespace quire {

uint64_t Checksum64(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace quire
