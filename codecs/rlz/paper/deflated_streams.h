// SPDX-License-Identifier: Apache-2.0
//
// Sequences of factors as DEFLATE streams, decoded only as far as a range of
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

// Decoded bytes of a stream, in its own memory, which the next stream reuses.
// Thread-compatible.
class DeflatedStream {
 public:
  // `name` is for messages; it must outlive the stream.
  explicit DeflatedStream(absl::string_view name) : name_(name) {}

  // Starts decoding a stream of at most `size_max` bytes. `stored` must outlive
  // the later calls.
  void Start(ByteView stored, size_t size_max);

  // Decodes at least the first `wanted` bytes, up to size_max or the stream's
  // end. Errors: DataLoss  malformed.
  absl::Status DecodeTo(size_t wanted);

  // OK if the whole stream was decoded.
  // Errors: DataLoss  otherwise.
  absl::Status Finish();

  // Bytes decoded so far, at most size_max.
  ByteView bytes() const { return {memory_.get(), size_}; }

  // Same, and some bytes more whose values are undefined, but which may be
  // read.
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

// Positions in the tokens around a range of the text.
struct TokenRange {
  // Before the token in which the range begins.
  TokenPlace begin;
  // After the token in which the range ends, or before it if the range ends
  // inside it.
  TokenPlace end;
};

// Decodes the tokens up to byte `end` of the text, and finds those of the text
// from `begin` on. If end == raw_size, the tokens must stand for exactly that
// much text, and be all of the stream.
// REQUIRES: tokens.Start() was called; begin <= end <= raw_size.
// Errors: DataLoss  malformed, or less text.
absl::StatusOr<TokenRange> FindTokens(TokenKind kind, size_t begin, size_t end,
                                      size_t raw_size, DeflatedStream& tokens);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_DEFLATED_STREAMS_H_
