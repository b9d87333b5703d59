// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sorted keys in a part of the index of captures, front-coded.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_KEYS_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Keys of one part in full length together, unless there is only one.
inline constexpr size_t kCaptureKeysSizeBytesMax = size_t{1} << 20;

// Immutable.
class CaptureKeys {
 public:
  CaptureKeys() = default;

  // Takes `count` keys off the front of `in`, which is untrusted.
  // Errors: DataLoss  not as many keys, a key is too long, all are together, or
  //                   they descend.
  static absl::StatusOr<CaptureKeys> Take(ByteView& in, uint32_t count);

  uint32_t count() const { return static_cast<uint32_t>(ends_.size()); }

  // Valid as long as this. REQUIRES: index < count().
  absl::string_view operator[](uint32_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return absl::string_view(text_).substr(begin, ends_[index] - begin);
  }

  uint64_t MemoryBytes() const {
    return text_.capacity() + ends_.capacity() * sizeof(uint32_t);
  }

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
};

// Appends the keys. REQUIRES: they ascend, and have at most
// kCaptureKeysSizeBytesMax unless there is one.
void AppendCaptureKeys(const std::vector<absl::string_view>& keys,
                       std::string& out);

// Number of bytes that both begin with.
size_t SharedPrefixSize(absl::string_view a, absl::string_view b);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_KEYS_H_
