// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/capture_keys.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

absl::StatusOr<std::vector<uint32_t>> TakeSizes(ByteView& in, uint32_t count) {
  std::vector<uint32_t> sizes;
  // No size takes less than a byte.
  sizes.reserve(std::min<size_t>(count, in.size()));
  for (uint32_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, TakeVarint(in));
    if (size > kCaptureKeySizeBytesMax) {
      return Damaged(absl::StrCat("a key of a capture has ", size,
                                  " bytes, expected at most ",
                                  kCaptureKeySizeBytesMax));
    }
    sizes.push_back(static_cast<uint32_t>(size));
  }
  return sizes;
}

}  // namespace

absl::StatusOr<CaptureKeys> CaptureKeys::Take(ByteView& in, uint32_t count) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> shared,
                         TakeSizes(in, count));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> own, TakeSizes(in, count));
  uint64_t size_bytes = 0;
  uint64_t own_size_bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    size_bytes += uint64_t{shared[i]} + own[i];
    own_size_bytes += own[i];
  }
  if (own_size_bytes > in.size() ||
      (size_bytes > kCaptureKeysSizeBytesMax && count > 1) ||
      size_bytes > kCaptureKeysSizeBytesMax + kCaptureKeySizeBytesMax) {
    return Damaged(absl::StrCat("keys of captures have ", size_bytes,
                                " bytes, and ", own_size_bytes, " of ",
                                in.size(), " bytes"));
  }
  CaptureKeys keys;
  keys.text_.reserve(size_bytes);
  keys.ends_.reserve(count);
  size_t previous_size = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (shared[i] > previous_size ||
        uint64_t{shared[i]} + own[i] > kCaptureKeySizeBytesMax) {
      return Damaged(absl::StrCat("a key of a capture shares ", shared[i],
                                  " bytes of ", previous_size, " and has ",
                                  own[i], " more"));
    }
    const size_t previous = keys.text_.size() - previous_size;
    keys.text_.append(keys.text_, previous, shared[i]);
    absl::StrAppend(&keys.text_, AsText(in.first(own[i])));
    in = in.subspan(own[i]);
    previous_size = size_t{shared[i]} + own[i];
    keys.ends_.push_back(static_cast<uint32_t>(keys.text_.size()));
    if (i == 0) {
      continue;
    }
    const absl::string_view last = keys[i - 1];
    const bool ascends =
        shared[i] == last.size() ||
        (own[i] > 0 && static_cast<uint8_t>(keys[i][shared[i]]) >
                           static_cast<uint8_t>(last[shared[i]]));
    if (!ascends) {
      return Damaged("keys of captures do not ascend");
    }
  }
  return keys;
}

void AppendCaptureKeys(const std::vector<absl::string_view>& keys,
                       std::string& out) {
  std::string own_sizes;
  std::string text;
  absl::string_view previous;
  for (const absl::string_view key : keys) {
    const size_t shared = SharedPrefixSize(previous, key);
    AppendVarint(shared, out);
    AppendVarint(key.size() - shared, own_sizes);
    absl::StrAppend(&text, key.substr(shared));
    previous = key;
  }
  out.append(own_sizes).append(text);
}

size_t SharedPrefixSize(absl::string_view a, absl::string_view b) {
  const size_t size_max = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(size_max),
                    b.begin())
          .first -
      a.begin());
}

}  // namespace quire
