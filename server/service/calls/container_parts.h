// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of containers that a call reads through the block store.
#ifndef QUIRE_SERVER_SERVICE_CALLS_CONTAINER_PARTS_H_
#define QUIRE_SERVER_SERVICE_CALLS_CONTAINER_PARTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive_part.h"
#include "server/archive/container/container_part.h"
#include "server/service/catalog/served_archive.h"
#include "server/service/limits/admission.h"
#include "server/storage/block_store.h"

namespace quire {

// Decoded parts that a call holds, and the page that it makes; one entry of its
// answer may need more.
inline constexpr uint64_t kHeldPartsBytesMax = uint64_t{8} << 20;
// Work of one page of an answer, in decoded parts. The page ends after the
// entry with which it is exceeded.
inline constexpr uint64_t kLoadedPartsBytesMax = uint64_t{64} << 20;

// Holds the decoded parts that a reader asked for, with their
// memory admitted, and collects those that must be fetched. Thread-compatible.
class ContainerParts {
 public:
  // `store` and `admission` must outlive it.
  ContainerParts(BlockStore& store, Admission& admission, std::string client,
                 std::shared_ptr<const ServedArchive> archive);

  // For ArchivePartLoader: returns a part that is held or cached; notes
  // others. Never blocks on I/O.
  // Errors: ResourceExhausted  SERVER_BUSY, LIMIT_EXCEEDED.
  absl::StatusOr<std::optional<PartBytes>> Load(const ArchivePart& part);

  // Decoded sizes of the parts that are held, that were noted, and that were
  // held in total.
  uint64_t held_bytes() const { return held_bytes_; }

  uint64_t missing_bytes() const { return missing_bytes_; }

  uint64_t loaded_bytes() const { return loaded_bytes_; }

  bool has_missing() const { return !missing_.empty(); }

  // Forgets the parts that were noted.
  void ForgetMissing();

  // Frees the parts that are held. REQUIRES: no reader uses them.
  void Free();

  // Fetches all parts that were noted, to be held. `done` is called once, on a
  // thread of the decode pool or on this one; until then nothing else may be
  // called. REQUIRES: has_missing().
  // Errors, through `done`: as answers state those of a block
  //                         (ExplainBlockError()), and as Load().
  using Done = std::function<void(absl::Status)>;
  void Fetch(Done done);

 private:
  // Segment, and index of the part in it.
  using Key = std::pair<uint32_t, uint64_t>;

  static Key KeyOf(const ArchivePart& part) {
    return {part.segment_index, part.block_index};
  }

  absl::Status AdmitBytes(uint64_t size_bytes);
  void Hold(const ArchivePart& part, BlockPtr block);
  void OnPart(const ArchivePart& part, absl::StatusOr<BlockPtr> block);
  // Ends one of the fetches, or the start of all.
  void OneEnded();

  BlockStore& store_;
  Admission& admission_;
  const std::string client_;
  const std::shared_ptr<const ServedArchive> archive_;
  std::map<Key, BlockPtr> held_;
  std::vector<Admission::Ticket> tickets_;
  std::map<Key, ArchivePart> missing_;
  uint64_t held_bytes_ = 0;
  uint64_t missing_bytes_ = 0;
  uint64_t loaded_bytes_ = 0;
  // Callback of Fetch().
  Done done_;
  std::atomic<uint64_t> pending_count_ = 0;
  Mutex mutex_;
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<ArchivePart, BlockPtr>> fetched_
      ABSL_GUARDED_BY(mutex_);
};

// Returns what reads parts through the store and waits for them, for threads
// that may block, as a scan of low priority. A store that is busy is asked
// again for a few seconds. `store` must outlive it. Thread-safe. Errors: those
// of BlockStore::Fetch().
ArchivePartLoader BlockingFieldLoad(
    BlockStore& store, std::shared_ptr<const ServedArchive> archive);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CONTAINER_PARTS_H_
