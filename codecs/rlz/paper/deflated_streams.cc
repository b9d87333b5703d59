// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/deflated_streams.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Number of token bytes decoded at a time if not all are needed.
constexpr size_t kTokenChunk = 512;

}  // namespace

void DeflatedStream::Start(ByteView stored, size_t size_max) {
  static_assert(DeflateDecoder::kFastLoopMargin >= kReadableBehind);
  const size_t memory_size = size_max + DeflateDecoder::kFastLoopMargin;
  if (memory_size > memory_size_) {
    memory_ = std::make_unique<uint8_t[]>(memory_size);
    memory_size_ = memory_size;
  }
  size_max_ = size_max;
  size_ = 0;
  decoder_.Start(stored, {memory_.get(), memory_size});
}

absl::Status DeflatedStream::DecodeTo(size_t wanted) {
  QUIRE_CHECK(wanted <= size_max_);
  const absl::StatusOr<size_t> size = decoder_.DecodeTo(wanted);
  if (!size.ok()) {
    return Named(size.status());
  }
  size_ = std::min(*size, size_max_);
  return absl::OkStatus();
}

absl::Status DeflatedStream::Finish() {
  return Named(decoder_.Finish(size_));
}

absl::Status DeflatedStream::Named(const absl::Status& status) const {
  return status.ok()
             ? status
             : absl::Status(status.code(),
                            absl::StrCat(name_, " stream: ", status.message()));
}

absl::StatusOr<TokenRange> FindTokens(TokenKind kind, size_t begin, size_t end,
                                      size_t raw_size, DeflatedStream& tokens) {
  const bool all = end == raw_size;
  TokenRange range;
  bool at_begin = false;
  bool at_end = false;
  size_t wanted = 0;
  while (!at_end) {
    if (wanted > tokens.bytes().size() || wanted == tokens.size_max()) {
      return WrongTextSize(range.end.text_size, raw_size);
    }
    wanted =
        all ? tokens.size_max()
            : std::min(tokens.size_max(), tokens.bytes().size() + kTokenChunk);
    QUIRE_RETURN_IF_ERROR(tokens.DecodeTo(wanted));
    if (!at_begin) {
      QUIRE_ASSIGN_OR_RETURN(
          at_begin, SkipTokens(kind, tokens.bytes(), begin, range.begin));
      range.end = range.begin;
    }
    if (at_begin) {
      QUIRE_ASSIGN_OR_RETURN(at_end,
                             SkipTokens(kind, tokens.bytes(), end, range.end));
    }
  }
  if (all) {
    if (range.end.text_size != raw_size) {
      return absl::DataLossError("the last factor has text past the block's");
    }
    if (range.end.token_bytes != tokens.bytes().size()) {
      return absl::DataLossError("more factors follow the text's last");
    }
    QUIRE_RETURN_IF_ERROR(tokens.Finish());
  }
  return range;
}

}  // namespace quire
