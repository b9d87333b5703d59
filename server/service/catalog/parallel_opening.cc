// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/parallel_opening.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"
#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

// Each opening alternates between reading and decompressing: two per core keep
// both the drive and the cores busy.
size_t ThreadsMax() {
  return 2 * size_t{UsableCores()};
}

// Selects the next opening once there is memory for it. Thread-safe.
class OpeningQueue final : public OpeningHelpers {
 public:
  OpeningQueue(const std::vector<OpeningNeed>& needs, uint64_t memory_bytes,
               const std::atomic<bool>& cancel)
      : needs_(needs),
        memory_bytes_(memory_bytes),
        cancel_(cancel),
        order_(needs.size()),
        thread_count_(archive_thread_count()),
        outcomes_(needs.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return needs[a].kept_bytes > needs[b].kept_bytes;
    });
  }

  // Threads that open archives, including the caller's.
  size_t archive_thread_count() const {
    return std::min(needs_.size(), ThreadsMax());
  }

  // Waits until there is memory; returns nullopt if no other opening should
  // begin, and the thread ends.
  std::optional<size_t> Next() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (true) {
      if (next_ == order_.size() || failed_count_ > 0 || cancel_) {
        --thread_count_;
        return std::nullopt;
      }
      const OpeningNeed& need = needs_[order_[next_]];
      const uint64_t more_bytes = need.kept_bytes + need.working_bytes;
      if (running_count_ == 0 || held_bytes_ + more_bytes <= memory_bytes_) {
        held_bytes_ += more_bytes;
        ++running_count_;
        return order_[next_++];
      }
      // Every wait ends with an End().
      ++waiting_count_;
      ended_.Wait(&mutex_);
      --waiting_count_;
    }
  }

  // Archives that wait for memory come first.
  bool Begin(uint64_t working_bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (thread_count_ >= ThreadsMax() || waiting_count_ > 0 ||
        held_bytes_ > memory_bytes_ ||
        working_bytes > memory_bytes_ - held_bytes_) {
      return false;
    }
    held_bytes_ += working_bytes;
    ++thread_count_;
    return true;
  }

  void End(uint64_t working_bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    held_bytes_ -= working_bytes;
    --thread_count_;
    ended_.NotifyAll();
  }

  void EndArchive(size_t index, absl::Status outcome)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    held_bytes_ -= needs_[index].working_bytes;
    --running_count_;
    failed_count_ += outcome.ok() ? 0 : 1;
    outcomes_[index] = std::move(outcome);
    ended_.NotifyAll();
  }

  // REQUIRES: all openings that have begun have ended.
  absl::Status Result() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    // A cancelled opening says nothing about its archive.
    const auto is_failure = [](const absl::Status& outcome) {
      return !outcome.ok() && !absl::IsCancelled(outcome);
    };
    const auto first =
        std::find_if(outcomes_.begin(), outcomes_.end(), is_failure);
    if (first == outcomes_.end()) {
      return next_ == order_.size() && failed_count_ == 0
                 ? absl::OkStatus()
                 : absl::CancelledError("opening the archives was cancelled");
    }
    const auto others = std::count_if(first + 1, outcomes_.end(), is_failure);
    return others == 0
               ? *first
               : absl::Status(first->code(),
                              absl::StrCat(first->message(), " (and ", others,
                                           " more could not be opened)"));
  }

 private:
  const std::vector<OpeningNeed>& needs_;
  const uint64_t memory_bytes_;
  const std::atomic<bool>& cancel_;
  std::vector<size_t> order_;
  Mutex mutex_;
  CondVar ended_;
  // Index in order_.
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t running_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t failed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Threads that wait for memory for an archive.
  size_t waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Threads that open archives or help.
  size_t thread_count_ ABSL_GUARDED_BY(mutex_);
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<absl::Status> outcomes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status OpenInParallel(const std::vector<OpeningNeed>& needs,
                            uint64_t memory_bytes,
                            const std::atomic<bool>& cancel,
                            const OpenWithHelpers& open) {
  OpeningQueue queue(needs, memory_bytes, cancel);
  const auto work = [&] {
    while (const std::optional<size_t> index = queue.Next()) {
      queue.EndArchive(*index, open(*index, &queue));
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      while (helpers.size() + 1 < queue.archive_thread_count()) {
        helpers.emplace_back(work);
      }
    } catch (const std::system_error&) {
      // No more threads available: the existing ones do the work.
    }
    work();
  }
  return queue.Result();
}

}  // namespace quire
