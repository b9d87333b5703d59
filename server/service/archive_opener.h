// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens the archives of a list that calls have asked for.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_OPENER_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_OPENER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "codecs/base/mutex.h"
#include "server/service/archive_loader.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"

namespace quire {

// A queue, and threads that open its archives in its order. Archives whose
// memory is not free yet wait beside the queue. Archives in object stores take
// at most half of the threads: a store that does not answer never keeps local
// archives from being opened. Thread-safe.
class ArchiveOpener {
 public:
  // `loader` must outlive it.
  ArchiveOpener(ArchiveLoader& loader, LogSink log)
      : loader_(loader), log_(std::move(log)) {}

  // Stops.
  ~ArchiveOpener();

  // Queues an archive (Catalog::Demand). Does not block.
  void Open(const ArchiveArgument& archive) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts the threads; archives wait until then. No effect if it has started.
  // Errors: ResourceExhausted  no threads.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the threads, for good. Blocks until openings have ended: call
  // ArchiveLoader::Stop() before.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Figures {
    uint64_t opened_count = 0;
    uint64_t failed_count = 0;
  };

  Figures figures() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clock = Catalog::Clock;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the next archive; unset at the end.
  std::optional<ArchiveArgument> Next() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<ArchiveArgument> TakeReady()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenNow(const ArchiveArgument& archive) ABSL_LOCKS_EXCLUDED(mutex_);

  ArchiveLoader& loader_;
  const LogSink log_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<ArchiveArgument> queue_ ABSL_GUARDED_BY(mutex_);
  // By the time at which they are tried again.
  std::multimap<Clock::time_point, ArchiveArgument> later_
      ABSL_GUARDED_BY(mutex_);
  size_t remote_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Figures figures_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_OPENER_H_
