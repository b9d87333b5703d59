// SPDX-License-Identifier: Apache-2.0
//
// Sequences of factors as DEFLATE streams, decoded no further than a range of
// the text needs.
#ifndef QUIRE_CODECS_RLZ_PAPER_DEFLATED_STREAMS_H_
#define QUIRE_CODECS_RLZ_PAPER_DEFLATED_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/paper/factor_tokens.h"
#include "codecs/zlib/deflate_decoder.h"

namespace quire {

// A stream's bytes, in memory of its own, which is kept for the next.
// Thread-compatible.
class DeflatedStream {
 public:
  // `name` is for messages; it must outlive the stream.
  explicit DeflatedStream(absl::string_view name) : name_(name) {}

  // Starts on a stream of at most `size_max` bytes. `stored` must outlive what
  // follows.
  void Start(ByteView stored, size_t size_max);

  // Decodes at least the first `wanted` bytes, size_max at most, or all there
  // are. Errors: DataLoss  malformed.
  absl::Status DecodeTo(size_t wanted);

  // OK if all that was decoded is all there is.
  // Errors: DataLoss  otherwise.
  absl::Status Finish();

  // What was decoded so far, at most size_max bytes.
  ByteView bytes() const { return {memory_.get(), size_}; }

  // The same, and some bytes more which are of no meaning, but may be read.
  ByteView bytes_and_more() const {
    return {memory_.get(), size_ + kReadableBehind};
  }

  size_t size_max() const { return size_max_; }

 private:
  static constexpr size_t kReadableBehind = 32;

  absl::Status Named(const absl::Status& status) const;

  const absl::string_view name_;
  DeflateDecoder decoder_;
  std::unique_ptr<uint8_t[]> memory_;
  size_t memory_size_ = 0;
  size_t size_max_ = 0;
  size_t size_ = 0;
};

// The places between which a range of the text lies.
struct TokenRange {
  // Before the token in which it begins.
  TokenPlace begin;
  // Behind the token in which it ends, or before that if it ends inside it.
  TokenPlace end;
};

// Decodes as many tokens as it takes to reach byte `end` of the text, and finds
// those for the text from `begin` on. If end == raw_size, the tokens must stand
// for exactly that much text, and be all of the stream.
// REQUIRES: tokens.Start() was called; begin <= end <= raw_size.
// Errors: DataLoss  malformed, or not as much text.
absl::StatusOr<TokenRange> FindTokens(TokenKind kind, size_t begin, size_t end,
                                      size_t raw_size, DeflatedStream& tokens);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_DEFLATED_STREAMS_H_
