// SPDX-License-Identifier: GPL-3.0-or-later
//
// A column of integers in an index section: one byte with the number of bytes
// per integer (0 to 8), then the lowest byte of each integer, then the next
// byte of each, and so on. Bytes of equal significance are similar, which helps
// compression.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_COLUMN_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_COLUMN_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

void AppendColumn(std::span<const uint64_t> values, std::string& out);

// A column in place. Borrows its bytes. Thread-safe.
class ColumnView {
 public:
  // `bytes` is untrusted. Errors: DataLoss  not a column of `count` integers.
  static absl::StatusOr<ColumnView> Parse(ByteView bytes, uint64_t count);

  // Takes a column off the front of `section`. REQUIRES: count <= the size of
  // the section that holds it.
  static absl::StatusOr<ColumnView> Take(ByteView& section, uint64_t count);

  uint64_t count() const { return count_; }

  // REQUIRES: index < count().
  uint64_t operator[](uint64_t index) const {
    uint64_t value = 0;
    for (uint64_t plane = 0; plane < width_bytes_; ++plane) {
      value |= uint64_t{planes_[plane * count_ + index]} << (8 * plane);
    }
    return value;
  }

 private:
  ColumnView(ByteView planes, uint64_t count, uint64_t width_bytes)
      : planes_(planes), count_(count), width_bytes_(width_bytes) {}

  ByteView planes_;
  uint64_t count_;
  uint64_t width_bytes_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_COLUMN_H_
