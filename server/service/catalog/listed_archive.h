// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive that is opened on first use and closed when others need its
// memory: a line of `serve --archives-list`.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_LISTED_ARCHIVE_H_
#define QUIRE_SERVER_SERVICE_CATALOG_LISTED_ARCHIVE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"
#include "server/archive/files/file_io.h"
#include "server/service/catalog/catalog.h"

namespace quire {

// States: closed; wanted, from the first call for it to the end of its opening;
// open, while it is in the catalog. Thread-safe.
class ListedArchive {
 public:
  using Clock = std::chrono::steady_clock;
  using Description = std::shared_ptr<const v1::ArchiveDescription>;

  // Time from the end of an opening in which an unused archive stays open: its
  // callers retry within it (kOpeningRetryDelay).
  static constexpr std::chrono::seconds kUnusedTimeMin{2};
  // Times to the next attempt after the first failed opening, and after many.
  static constexpr std::chrono::seconds kRetryDelayMin{1};
  static constexpr std::chrono::seconds kRetryDelayMax{60};

  // `description` and `parts` are what is known before it is opened.
  ListedArchive(ArchiveArgument argument, v1::ArchiveDescription description,
                SharedParts parts = {});

  const ArchiveArgument& argument() const { return argument_; }

  // Returns the description for clients while it is closed or wanted.
  Description description() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that a call needs it. Returns true if the caller must queue it for
  // opening: it was closed, and no failure delays the next attempt.
  bool Want(Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the time to the next attempt; unset unless the last one failed.
  std::optional<Clock::duration> RetryDelay(Clock::time_point now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_failed() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True from the first call that needs it to the end of its opening.
  bool is_wanted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return is_wanted_;
  }

  // Records an opened archive. `served` is not published yet, and nothing else
  // refers to it: it gets the earlier opening_id if its files are the same.
  void Opened(const std::shared_ptr<ServedArchive>& served,
              Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);
  // End of a good opening: the archive was published.
  void Published() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the time to the next attempt.
  Clock::duration Failed(Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);
  // It was not opened, and that is no failure.
  void Cancelled() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends an opening in progress soon, and later ones: the archive has left the
  // list, or the server stops.
  void Cancel() { is_cancelled_ = true; }

  const std::atomic<bool>& is_cancelled() const { return is_cancelled_; }

  // Lets the next call open it, whatever failed before.
  void Forgive() ABSL_LOCKS_EXCLUDED(mutex_);

  // The archive served last; null once it was closed and no call reads it.
  std::shared_ptr<const ServedArchive> last() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Records a call of the open archive.
  void Touch(Clock::time_point now) {
    used_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Time of the last call, or of the opening.
  Clock::time_point used_at() const {
    return Clock::time_point(
        Clock::duration(used_at_.load(std::memory_order_relaxed)));
  }

  // False while callers that waited for its opening may still come.
  bool MayClose(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Parts of the contents that were or will be opened last.
  SharedParts parts() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetParts(SharedParts parts) ABSL_LOCKS_EXCLUDED(mutex_);

  // parts().Has().
  std::optional<bool> HasPart(SharedPart part, absl::string_view hash) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return parts_.Has(part, hash);
  }

  // True if rules of withdrawal apply to its name.
  void SetMayWithdraw(bool may_withdraw) { may_withdraw_ = may_withdraw; }

  bool may_withdraw() const { return may_withdraw_; }

 private:
  const ArchiveArgument argument_;
  std::atomic<Clock::rep> used_at_ = 0;
  std::atomic<bool> may_withdraw_ = false;
  std::atomic<bool> is_cancelled_ = false;
  mutable Mutex mutex_;
  // The description of the state closed.
  Description closed_ ABSL_GUARDED_BY(mutex_);
  SharedParts parts_ ABSL_GUARDED_BY(mutex_);
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  // Since the last good opening.
  uint32_t failure_count_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point retry_at_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point opened_at_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<const ServedArchive> last_ ABSL_GUARDED_BY(mutex_);
  // Files of the last opening, and its id.
  std::vector<FileIdentity> files_ ABSL_GUARDED_BY(mutex_);
  uint64_t opening_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns UNAVAILABLE (ARCHIVE_OPENING) for a listed archive that is not open,
// with the time to the next attempt.
absl::Status NotOpenYet(const ListedArchive& archive);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_LISTED_ARCHIVE_H_
