// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_encoder.h"

#include "codecs/deflate/deflate_state.h"

namespace quire {

DeflateEncoder::DeflateEncoder() = default;
DeflateEncoder::~DeflateEncoder() = default;
DeflateEncoder::DeflateEncoder(DeflateEncoder&&) noexcept = default;
DeflateEncoder& DeflateEncoder::operator=(DeflateEncoder&&) noexcept = default;

DeflateState& DeflateEncoder::state() {
  if (state_ == nullptr) {
    state_ = std::make_unique<DeflateState>();
  }
  return *state_;
}

absl::Status DeflateEncoder::Encode(const DeflateParameters& parameters,
                                    ByteView text, Sink sink,
                                    const DeflateLimits& limits) {
  return state().Encode(parameters, text, sink, limits);
}

absl::Status DeflateEncoder::EncodePieces(const DeflateParameters& parameters,
                                          uint64_t text_size, Source source,
                                          Sink sink,
                                          const DeflateLimits& limits) {
  return state().EncodePieces(parameters, text_size, source, sink, limits);
}

uint64_t DeflateEncoder::work() const {
  return state_ == nullptr ? 0 : state_->work();
}

}  // namespace quire
