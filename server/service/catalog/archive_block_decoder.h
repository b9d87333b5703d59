// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decodes the blocks of one archive for the block store.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_BLOCK_DECODER_H_
#define QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_BLOCK_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/catalog/decode_workspaces.h"
#include "server/storage/base/moving_average.h"
#include "server/storage/block_store.h"

namespace quire {

// Receives reports of damaged stored blocks: the message names archive, file,
// block and the error. Called on any thread, once for each block; only the
// first thousand damaged blocks are reported.
using DamageReporter = std::function<void(const std::string& message)>;

// Damage reports of one archive. Thread-safe.
class DamageLog {
 public:
  // `report` may be empty.
  DamageLog(std::string archive_name, DamageReporter report)
      : archive_name_(std::move(archive_name)), report_(std::move(report)) {}

  // Reports a block or part of `file`, unless it was reported before.
  void Note(BlockAddress block, const std::string& file,
            const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsFirst(BlockAddress block) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string archive_name_;
  const DamageReporter report_;
  Mutex mutex_;
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> noted_
      ABSL_GUARDED_BY(mutex_);
};

// Returns a decoder of blocks to text, in `workspaces`. It adds the CPU time
// per 1 MiB of text decoded in parts to `part_time_per_mib`.
std::shared_ptr<const BlockDecoder> MakeTextDecoder(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<MovingAverage> part_time_per_mib);

// Returns a decoder that checks blocks and leaves them as stored. Its result is
// the frame without its checksum (FORMAT.md, "Block frame"),
// StoredBlockSizeBytes() long.
std::shared_ptr<const BlockDecoder> MakeStoredReader(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log);

// REQUIRES: the block exists.
uint32_t StoredBlockSizeBytes(const Archive& archive, BlockAddress block);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_BLOCK_DECODER_H_
