// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the block store makes of the blocks of one archive.
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

// Told of a block whose stored bytes are damaged: the message names archive,
// file, block and what is wrong. Called on any thread, once for each block
// (of the first thousand blocks; later ones are not reported).
using DamageReporter = std::function<void(const std::string& message)>;

// The reports of one archive. Thread-safe.
class DamageLog {
 public:
  // `report` may be empty.
  DamageLog(std::string archive_name, DamageReporter report)
      : archive_name_(std::move(archive_name)), report_(std::move(report)) {}

  // Reports a block of `file` unless that was done before.
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

// Decodes blocks to their text, in `workspaces`. Adds the CPU time of decoding
// 1 MiB of text in parts to `part_time_per_mib`.
std::shared_ptr<const BlockDecoder> MakeTextDecoder(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<MovingAverage> part_time_per_mib);

// Checks blocks and leaves them as they are stored: the result is the frame
// without its checksum (FORMAT.md, "Block frame"), StoredBlockSizeBytes() long.
std::shared_ptr<const BlockDecoder> MakeStoredReader(
    std::shared_ptr<const Archive> archive, std::shared_ptr<DamageLog> log);

// REQUIRES: the block exists.
uint32_t StoredBlockSizeBytes(const Archive& archive, BlockAddress block);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_BLOCK_DECODER_H_
