// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/utf16_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kWidePieceSizeBytes = size_t{64} << 10;

bool IsHighSurrogate(uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}

bool IsLowSurrogate(uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

}  // namespace

void AppendUtf8(uint32_t code, std::string& out) {
  const auto tail = [&out, code](int shift) {
    out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::optional<WideEncoding> WideEncodingOf(absl::string_view start) {
  constexpr absl::string_view kUtf32Little("\xFF\xFE\0\0", 4);
  constexpr absl::string_view kUtf32Big("\0\0\xFE\xFF", 4);
  if (absl::StartsWith(start, kUtf32Little) ||
      absl::StartsWith(start, kUtf32Big)) {
    return WideEncoding::kUtf32;
  }
  return absl::StartsWith(start, "\xFF\xFE")
             ? std::optional(WideEncoding::kUtf16Little)
         : absl::StartsWith(start, "\xFE\xFF")
             ? std::optional(WideEncoding::kUtf16Big)
             : std::nullopt;
}

Utf16Stream::Utf16Stream(std::unique_ptr<ByteStream> stream, bool is_big_endian,
                         std::string name)
    : stream_(std::move(stream)),
      is_big_endian_(is_big_endian),
      name_(std::move(name)) {}

absl::StatusOr<size_t> Utf16Stream::Read(MutableByteView out) {
  while (position_ == text_.size()) {
    QUIRE_ASSIGN_OR_RETURN(const bool has_more, Convert());
    if (!has_more) {
      return 0;
    }
  }
  const size_t size = std::min(out.size(), text_.size() - position_);
  std::memcpy(out.data(), text_.data() + position_, size);
  position_ += size;
  return size;
}

absl::StatusOr<bool> Utf16Stream::Convert() {
  text_.clear();
  position_ = 0;
  std::vector<uint8_t> piece(kWidePieceSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(const size_t size, stream_->Read(piece));
  if (size == 0) {
    if (odd_byte_.has_value() || high_.has_value()) {
      return Malformed("ends inside a character");
    }
    return false;
  }
  for (size_t i = 0; i < size; ++i) {
    if (!odd_byte_.has_value()) {
      odd_byte_ = piece[i];
      continue;
    }
    const uint32_t first = *std::exchange(odd_byte_, std::nullopt);
    const uint32_t second = piece[i];
    QUIRE_RETURN_IF_ERROR(
        AddUnit(is_big_endian_ ? first << 8 | second : second << 8 | first));
    offset_ += 2;
  }
  return true;
}

absl::Status Utf16Stream::AddUnit(uint32_t unit) {
  if (high_.has_value() != IsLowSurrogate(unit)) {
    return Malformed("has half of a surrogate pair");
  }
  if (IsHighSurrogate(unit)) {
    high_ = unit;
  } else if (high_.has_value()) {
    const uint32_t high = *std::exchange(high_, std::nullopt);
    AppendUtf8(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00), text_);
  } else {
    AppendUtf8(unit, text_);
  }
  return absl::OkStatus();
}

absl::Status Utf16Stream::Malformed(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(name_, ": is UTF-16 by its byte order mark, and ", what,
                   " at byte ", offset_, "; convert it to UTF-8"));
}

}  // namespace quire
