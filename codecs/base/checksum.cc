// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/checksum.h"

#include <xxhash.h>

#include <memory>

namespace quire {

uint64_t Checksum64(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Checksummer64::State {
  XXH3_state_t xxh3;
};

Checksummer64::Checksummer64() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh3);
}

Checksummer64::~Checksummer64() = default;

void Checksummer64::Add(ByteView bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksummer64::Get() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace quire
