// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_filter.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {

uint64_t IdFilter::Hash(absl::string_view id) {
  return Checksum64(AsBytes(id));
}

IdFilter::IdFilter(const IdIndex& ids)
    : id_count_(ids.size()), blocks_(BlockCount(ids.size())) {
  for (IdIndex::Cursor cursor(ids, 0); !cursor.at_end(); cursor.Next()) {
    const uint64_t hash = Hash(cursor.id());
    Block& block = blocks_[BlockOf(hash)];
    for (uint32_t i = 0; i < kProbeCount; ++i) {
      const uint64_t bit = BitOf(hash, i);
      block[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
}

}  // namespace quire
