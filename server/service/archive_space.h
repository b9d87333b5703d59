// SPDX-License-Identifier: GPL-3.0-or-later
//
// The memory of archives while the server runs: what is held, and who may have
// more.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_SPACE_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_SPACE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/catalog/catalog.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/withdrawal_file.h"
#include "server/storage/block_store.h"

namespace quire {

// Archives that the catalog holds and openings in progress share the plan's
// space for archives. A listed archive here is one that is wanted on use. The
// block cache lends more, down to its minimum, and is resized by these calls.
// Thread-safe. The mutex is never held across I/O.
class ArchiveSpace {
 public:
  // All must outlive it; `withdrawals` may be null.
  ArchiveSpace(const MemoryPlan& plan, Catalog& catalog, BlockStore& store,
               const WithdrawalFile* withdrawals);

  // Memory of an opening, until the archive is published. Movable.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept
        : space_(std::exchange(other.space_, nullptr)),
          bytes_(other.bytes_),
          archive_(std::move(other.archive_)) {}

    Reservation& operator=(Reservation&&) = delete;

    ~Reservation() {
      if (space_ != nullptr) {
        space_->Release(*this);
      }
    }

   private:
    friend class ArchiveSpace;

    Reservation(ArchiveSpace* space, uint64_t bytes)
        : space_(space), bytes_(bytes) {}

    ArchiveSpace* space_;
    // Before the archive is open; then 0.
    uint64_t bytes_;
    std::shared_ptr<const Archive> archive_;
  };

  // Space for an archive that replaces another one or is added. Listed archives
  // that no call reads close if it does not fit otherwise.
  // Errors: as CheckReload().
  absl::StatusOr<Reservation> Reserve(uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Space for a listed archive. The least recently used of the others close
  // until all fit into the plan's space, and into half of the process's limit
  // of open files: first those that no call reads. If that is not enough, the
  // cache lends the rest; and if that is not enough, those that calls read
  // close, too. Their memory is free after these calls, so the result is unset:
  // try again soon.
  // Errors: FailedPrecondition  it would not fit alone.
  absl::StatusOr<std::optional<Reservation>> ReserveListed(
      const ArchiveOutline& outline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes a reservation that of the opened archive, which counts once from then
  // on, whether it is published or not.
  // Errors: as CheckReload(): it takes more than was reserved.
  absl::Status Resize(Reservation& reservation,
                      const std::shared_ptr<const Archive>& fresh)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the part of the plan's space that neither archives nor openings in
  // progress take, in bytes.
  uint64_t FreeBytes() ABSL_LOCKS_EXCLUDED(mutex_);

  // Lends connections this memory of the cache, in total. Returns false, and
  // changes nothing, if archives have it.
  bool LendToConnections(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives the cache the memory that archives leave.
  void Fit() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Closes archives that calls read. Their memory is free after these calls.
  absl::StatusOr<std::optional<Reservation>> CloseForLater(uint64_t new_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the open listed archives and those of `more_segments` segments have
  // no more files than they may.
  bool HasFiles(uint64_t more_segments) const;
  Reservation MakeReservation(uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const Reservation& reservation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the memory of served archives, with documents that rules withdraw
  // beyond the plan, of retired ones that calls keep, and of openings in
  // progress. Parts that several have count once.
  ReloadNeed HeldBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FitCache(const ReloadNeed& need) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MemoryPlan& plan_;
  Catalog& catalog_;
  BlockStore& store_;
  const WithdrawalFile* const withdrawals_;
  // Limit of open files of listed archives.
  const uint64_t files_max_;
  Mutex mutex_;
  // Reserved for archives that are not open yet.
  uint64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t connections_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Archives of reservations: open, and published or about to be.
  std::vector<const Archive*> fresh_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_SPACE_H_
