// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/checksum.h"

#include <xxhash.h>
// Selects the widest vectors of the machine at run time; the plain header
// selects at compile time.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include <new>

namespace quire {

uint64_t Checksum64(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void Checksummer64::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

Checksummer64::Checksummer64() : state_(XXH3_createState()) {
  if (state_ == nullptr) {
    throw std::bad_alloc();
  }
  XXH3_64bits_reset(state_.get());
}

void Checksummer64::Add(ByteView bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

uint64_t Checksummer64::Get() const {
  return XXH3_64bits_digest(state_.get());
}

}  // namespace quire
