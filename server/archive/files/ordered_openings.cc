// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/ordered_openings.h"

#include <atomic>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "codecs/base/mutex.h"

namespace quire {
namespace {

class OrderedOpenings {
 public:
  OrderedOpenings(std::span<const uint64_t> working_bytes,
                  OpeningHelpers* helpers,
                  absl::FunctionRef<absl::Status(size_t)> open)
      : working_bytes_(working_bytes), helpers_(helpers), open_(open) {}

  // Called once.
  absl::Status Run() {
    while (const std::optional<size_t> index = Claim()) {
      StartHelpers();
      Open(*index);
    }
    threads_.clear();
    MutexLock lock(&mutex_);
    return failure_;
  }

 private:
  struct Helper {
    std::atomic<bool> has_ended = false;
    // Destroyed first, which waits for its end.
    std::jthread thread;
  };

  bool has_next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next_ < working_bytes_.size() && failure_.ok();
  }

  std::optional<size_t> Claim() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return has_next() ? std::optional(next_++) : std::nullopt;
  }

  std::optional<size_t> ClaimForHelper() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return has_next() && helpers_->Begin(working_bytes_[next_])
               ? std::optional(next_++)
               : std::nullopt;
  }

  void Open(size_t index) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status outcome = open_(index);
    if (outcome.ok()) {
      return;
    }
    MutexLock lock(&mutex_);
    // All lower indices have started, and may yet fail.
    if (failure_.ok() || index < failed_index_) {
      failed_index_ = index;
      failure_ = std::move(outcome);
    }
  }

  void OpenAsHelper(size_t index) {
    Open(index);
    helpers_->End(working_bytes_[index]);
  }

  void StartHelpers() {
    if (helpers_ == nullptr) {
      return;
    }
    threads_.remove_if(
        [](const Helper& helper) { return helper.has_ended.load(); });
    while (const std::optional<size_t> first = ClaimForHelper()) {
      Helper& helper = threads_.emplace_back();
      try {
        helper.thread = std::jthread([this, first, &helper] {
          OpenAsHelper(*first);
          while (const std::optional<size_t> index = ClaimForHelper()) {
            OpenAsHelper(*index);
          }
          helper.has_ended = true;
        });
      } catch (const std::system_error&) {
        // No more threads available.
        threads_.pop_back();
        OpenAsHelper(*first);
        return;
      }
    }
  }

  const std::span<const uint64_t> working_bytes_;
  OpeningHelpers* const helpers_;
  const absl::FunctionRef<absl::Status(size_t)> open_;
  // Only for the thread of Run().
  std::list<Helper> threads_;
  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  size_t failed_index_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status OpenInOrder(std::span<const uint64_t> working_bytes,
                         OpeningHelpers* helpers,
                         absl::FunctionRef<absl::Status(size_t)> open) {
  return OrderedOpenings(working_bytes, helpers, open).Run();
}

}  // namespace quire
