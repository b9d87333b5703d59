// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/wire_encoders.h"

#include <algorithm>

namespace quire {

std::shared_ptr<const FsstEncoder> WireEncoders::Get(const WireTable& table) {
  {
    MutexLock lock(&mutex_);
    const auto found = std::ranges::find(kept_, table.serialised, &Kept::table);
    if (found != kept_.end()) {
      std::rotate(found, found + 1, kept_.end());
      return kept_.back().encoder;
    }
  }
  // Two threads may make the same one.
  auto encoder = std::make_shared<const FsstEncoder>(table.table);
  MutexLock lock(&mutex_);
  kept_.push_back({table.serialised, encoder});
  size_t bytes = 0;
  auto first = kept_.end();
  do {
    --first;
    bytes += FsstEncoder::MemoryBytesMax(first->table.size());
  } while (first != kept_.begin() &&
           bytes + FsstEncoder::MemoryBytesMax((first - 1)->table.size()) <=
               kBytesMax);
  kept_.erase(kept_.begin(), first);
  return encoder;
}

}  // namespace quire
