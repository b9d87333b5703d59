// SPDX-License-Identifier: GPL-3.0-or-later
//
// Consecutive numbers in the order of their digits, computed.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_DECIMAL_RANGE_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_DECIMAL_RANGE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace quire {

// Upper bound on the numbers, exclusive.
inline constexpr uint64_t kDecimalEnd = 1'000'000'000'000'000'000;

// Returns the number that `digits` is, without leading zeros; nullopt for any
// other text and from kDecimalEnd on. Thread-safe.
std::optional<uint64_t> ParseDecimal(absl::string_view digits);

// The numbers from `first` to below `first + count`, as decimal texts without
// leading zeros, sorted bytewise: 1, 10, 11, 2. Each call takes time in
// proportion to the number of digits. REQUIRES: first + count <= kDecimalEnd.
// Thread-safe.
struct DecimalRange {
  uint64_t first = 0;
  uint64_t count = 0;

  bool Contains(uint64_t number) const { return number - first < count; }

  // Number of texts below `key`, which may be any bytes.
  uint64_t CountBelow(absl::string_view key) const;

  // Returns the number whose text has this index. REQUIRES: index < count.
  uint64_t NumberAt(uint64_t index) const;

 private:
  // Number of texts that begin with the digits of `prefix`.
  uint64_t CountWithPrefix(uint64_t prefix) const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_DECIMAL_RANGE_H_
