// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the section of ids on disk to the buckets of an IdTable.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_LOADER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_LOADER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/id_bucket.h"

namespace quire {

// As IdTable::Parse(). Trains a symbol table on a sample of the ids, where
// there are enough of them, and keeps each bucket as codes that are smaller so.
// Deterministic. REQUIRES: 0 < count.
// Errors: DataLoss  not `count` sorted ids of `id_size_bytes` in all.
absl::StatusOr<IdBuckets> LoadIdBuckets(ByteView section, uint64_t count,
                                        uint64_t id_size_bytes,
                                        std::vector<bool>* repeats);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_TABLE_LOADER_H_
