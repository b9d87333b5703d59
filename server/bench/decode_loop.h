// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive's blocks out of memory: what decoding can do at all.
#ifndef QUIRE_SERVER_BENCH_DECODE_LOOP_H_
#define QUIRE_SERVER_BENCH_DECODE_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/archive.h"
#include "server/bench/bench_requests.h"

namespace quire {

// All blocks of an archive as they are stored, in memory.
class StoredBlocks {
 public:
  // Errors: InvalidArgument  the archive is larger than the 4 GiB that are
  // held;
  //         those of reading.
  static absl::StatusOr<StoredBlocks> Load(const Archive& archive);

  ByteView Get(BlockAddress block, const Extent& extent) const;

 private:
  struct Segment {
    uint64_t start = 0;
    std::vector<uint8_t> bytes;
  };

  std::vector<Segment> segments_;
};

// Decodes on all cores until `end`, on each one request at least.
// Errors: DataLoss  a block is damaged.
absl::StatusOr<BenchCounts> DecodeFromMemory(const Archive& archive,
                                             const StoredBlocks& stored,
                                             BenchRequests& requests,
                                             BenchClock::time_point end);

}  // namespace quire

#endif  // QUIRE_SERVER_BENCH_DECODE_LOOP_H_
