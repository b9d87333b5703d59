// SPDX-License-Identifier: GPL-3.0-or-later
//
// A column of integers as index sections store it: one byte that says how many
// bytes each integer has (0 to 8), then the lowest byte of all of them, then
// the next byte of all of them, and so on. Bytes of one significance are alike,
// which is what the compression of the section lives on.
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

// A column in place. Borrows the bytes it was made from. Thread-safe.
class ColumnView {
 public:
  // `bytes` is untrusted. Errors: DataLoss  not a column of `count` integers.
  static absl::StatusOr<ColumnView> Parse(ByteView bytes, uint64_t count);

  // The same for a column at the start of `section`, which then begins after
  // it. REQUIRES: count <= the size of the section that holds it.
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
