// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/decode_chooser.h"

#include <algorithm>
#include <limits>

namespace quire {

uint32_t PartsBeforeWhole(uint64_t block_size_bytes, const PartCosts& costs) {
  constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  if (costs.read_time.count() <= 0 || costs.decode_time_per_mib.count() <= 0) {
    return kNever;
  }
  const double decode_ns =
      static_cast<double>(costs.decode_time_per_mib.count()) *
      static_cast<double>(block_size_bytes) / (1 << 20);
  const double count = decode_ns / static_cast<double>(costs.read_time.count());
  // At least one: a read of a block of which nothing is cached goes on nowhere.
  return count >= kNever ? kNever : static_cast<uint32_t>(count) + 1;
}

}  // namespace quire
