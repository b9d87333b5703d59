// SPDX-License-Identifier: GPL-3.0-or-later
//
// The last answers of object stores about local copies of their archives.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_COPY_CONFIRMATIONS_H_
#define QUIRE_SERVER_SERVICE_CATALOG_COPY_CONFIRMATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"

namespace quire {

// File in the directory of a copy: seconds since 1970 at which the store last
// confirmed the copy's MANIFEST, and the checksum of that MANIFEST.
inline constexpr char kConfirmedFileName[] = "CONFIRMED";

std::string FormatConfirmation(absl::Time time, uint64_t manifest_checksum);

// Unset if it is malformed or of another MANIFEST.
std::optional<absl::Time> ParseConfirmation(absl::string_view text,
                                            uint64_t manifest_checksum);

// A copy is stale while an archive is served from it although its store does
// not answer: the store confirmed it at most `stale_max` ago. Any other word of
// the store ends that at once, also for later processes.
//
// Ages within a process do not depend on the system's clock. An age from an
// earlier process does; a confirmation in the future counts as none.
//
// Copies are named by their directories. Thread-safe, but no two calls at a
// time about one copy, except FindStale(). The mutex is never held across I/O.
class CopyConfirmations {
 public:
  // Zero: no copy is ever stale, and no times are written.
  explicit CopyConfirmations(absl::Duration stale_max)
      : stale_max_(stale_max) {}

  bool are_wanted() const { return stale_max_ > absl::ZeroDuration(); }

  // The store said that the copy's MANIFEST, which has this checksum, is the
  // archive's. Blocks on I/O, at most once a minute for each copy.
  void Confirm(const std::string& path, uint64_t manifest_checksum)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The store said anything else. Durable when it returns. Blocks on I/O.
  void Deny(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);

  // OK if the copy may be stale. Blocks on I/O.
  // Errors: Unavailable  the reason, as the end of "its local copy ...".
  absl::Status Check(const std::string& path, uint64_t manifest_checksum)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // REQUIRES: Check() has succeeded.
  void SetStale(const std::string& path, absl::string_view reason)
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct StaleCopy {
    // Time since the store last confirmed it.
    absl::Duration age;
    // Why it is used.
    std::string reason;
  };

  // Unset unless the copy is stale.
  std::optional<StaleCopy> FindStale(const std::string& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // OK if the copy is stale and still young enough.
  // Errors: Unavailable  the reason.
  absl::Status CheckStale(const std::string& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  size_t stale_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The copy is removed.
  void Forget(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records whether a store answered: `error` says how it was silent, or is OK.
  void NoteSilence(const std::string& store, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The error of a store that was silent a moment ago: there is no use in
  // asking it for the next archive. Unset if it answered since.
  std::optional<absl::Status> RecentSilence(const std::string& store) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    // Times of the last confirmation, and of the last that was written, by
    // MonotonicNow().
    absl::Time confirmed_at = absl::InfinitePast();
    absl::Time written_at = absl::InfinitePast();
    // Unset unless the copy is stale.
    std::optional<std::string> stale_reason = {};
  };

  absl::Status CheckAge(absl::Duration age) const;

  const absl::Duration stale_max_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t stale_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::pair<absl::Time, absl::Status>> silences_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_COPY_CONFIRMATIONS_H_
