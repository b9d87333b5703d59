// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads all blocks of the served archives periodically, and checks them, so
// that damage is found while a good copy exists.
#ifndef QUIRE_SERVER_SERVICE_SCRUBBER_H_
#define QUIRE_SERVER_SERVICE_SCRUBBER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "codecs/base/positions.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/metrics/server_collector.h"
#include "server/service/scrub/scrub_pace.h"
#include "server/service/scrub/scrub_state.h"
#include "server/storage/block_store.h"

namespace quire {

// Use of the local copy of an object in a store.
enum class LocalCopy : bool { kUse, kReplace };

// One archive at a time: first its indexes, dictionary, symbol table and data
// of containers, on its own thread in pieces of a quarter MiB; then block by
// block in file order, in reads of that size, in the store's class below scans,
// past the block cache. Past the page cache, whose pages of these files it
// drops. Damaged blocks are reported as those of reads are, other damage in the
// log. If the device fails, other archives have their turn; then the blocks are
// read one at a time, and what fails again counts as damaged. An object store
// that fails is asked again until it answers. Thread-safe.
class Scrubber {
 public:
  // Reads the state. `catalog` and `store` must outlive it.
  // REQUIRES: options.interval and the rate are above 0.
  // Errors: those of ReadScrubState() and WriteScrubState(): the directory must
  //         be writable. ResourceExhausted  no more threads.
  static absl::StatusOr<std::unique_ptr<Scrubber>> Start(
      const ScrubOptions& options, const Catalog& catalog, BlockStore& store,
      LogSink log);

  // Waits for the read in flight, saves the state, and joins the thread.
  ~Scrubber();
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  // Returns the figures of the archives served now, by name.
  std::vector<ScrubFigures> Figures() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Blocks that are read together.
  struct Step {
    std::vector<BlockAddress> blocks;
    uint64_t size_bytes = 0;
  };

  // Progress of CheckIndexes() in the current pass over an opening.
  struct IndexCheck {
    uint64_t opening_id = 0;
    uint64_t damaged_count = 0;
    bool has_indexes = false;
    // Segments whose container was checked.
    uint32_t container_count = 0;
  };

  Scrubber(const ScrubOptions& options, const Catalog& catalog,
           BlockStore& store, LogSink log, ScrubState state);

  void Run();
  // Returns an archive that is due, and its progress; null if none is.
  std::shared_ptr<const ServedArchive> ChooseArchive(ScrubProgress& progress)
      ABSL_LOCKS_EXCLUDED(mutex_);
  static Step NextStep(const Archive& archive, uint64_t next_block);
  // Checks everything except blocks at the start of a pass; returns the number
  // of damages. Errors: not DataLoss; retry later.
  absl::StatusOr<uint64_t> CheckIndexes(const ServedArchive& archive)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks the data of a segment's container. In an object store, they are read
  // through the block store. `last` is as in AwaitTurn(). Errors: not
  // DataLoss.
  absl::Status CheckContainer(const ServedArchive& archive,
                              uint32_t segment_index, Extent& last,
                              IndexCheck& check) ABSL_LOCKS_EXCLUDED(mutex_);
  // Logs damages, which have this `effect` on reads, and counts them. Counts
  // `failure` as damage if the archive's last step failed, too; otherwise
  // returns it.
  absl::Status NoteDamages(const ServedArchive& archive,
                           const absl::Status& failure,
                           std::vector<absl::Status> damages,
                           absl::string_view effect, IndexCheck& check);
  // Waits until this thread may read `next` after `last`, which it sets, and
  // drops the pages of both. Errors: Cancelled  the scrubber ends.
  absl::Status AwaitTurn(const Extent& next, Extent& last)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CountBytes(const ServedArchive& archive, uint64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads an extent of a segment in an object store. kReplace drops its local
  // copy first. Errors: DataLoss  it is not in the object; as FetchAll().
  absl::Status ReadThroughStore(const ServedArchive& archive,
                                uint32_t segment_index, const Extent& extent,
                                LocalCopy local_copy, MutableByteView stored)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for all fetches; returns the number of those that found damage.
  // Errors: not DataLoss; retry later.
  absl::StatusOr<uint64_t> FetchAll(std::vector<BlockFetch> fetches)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes a read that has ended; returns the time until the next.
  std::chrono::nanoseconds PauseAfter(uint64_t size_bytes);
  // Returns the number of damaged ones. Errors: not DataLoss; retry later.
  absl::StatusOr<uint64_t> Read(const ServedArchive& archive, const Step& step)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads a step again whose Read() failed. Blocks that cannot be read count as
  // damaged, and are named in the log. Shortens the step to what was read, if
  // the device takes long.
  // Errors: ResourceExhausted, Cancelled  retry later.
  absl::StatusOr<uint64_t> ReadSingly(const ServedArchive& archive, Step& step)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a step; `progress` is the state after it.
  void Finish(const ServedArchive& archive, const Step& step,
              ScrubProgress progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns false if the scrubber ends.
  bool Sleep(std::chrono::nanoseconds time) ABSL_LOCKS_EXCLUDED(mutex_);
  void SaveIfDue(bool is_last) ABSL_LOCKS_EXCLUDED(mutex_);

  const ScrubOptions options_;
  const Catalog& catalog_;
  BlockStore& store_;
  const LogSink log_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // Blocks of the step in flight.
  uint64_t pending_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t damaged_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status step_error_ ABSL_GUARDED_BY(mutex_);
  ScrubState state_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t, std::less<>> scrubbed_bytes_
      ABSL_GUARDED_BY(mutex_);
  // Archives without a complete pass since their contents were first seen: due
  // at once.
  std::set<std::string, std::less<>> fresh_ ABSL_GUARDED_BY(mutex_);
  // Last opening of each archive: other files are read from their start.
  std::map<std::string, uint64_t, std::less<>> opening_ids_
      ABSL_GUARDED_BY(mutex_);
  // Used by the thread only.
  ScrubPace pace_;
  // Archives whose last step failed, and when to read it again.
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>>
      retry_at_;
  // Blocks of the pass that the log names as unreadable.
  std::map<std::string, uint64_t, std::less<>> named_counts_;

  std::map<std::string, IndexCheck, std::less<>> index_checks_;
  std::chrono::steady_clock::time_point save_at_;
  bool said_unsaved_ = false;
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SCRUBBER_H_
