// SPDX-License-Identifier: GPL-3.0-or-later
//
// Credentials in force, and the thread that asks for new ones.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_KEEPER_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_KEEPER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/storage/remote/credential_chain.h"
#include "server/storage/remote/store_credentials.h"

namespace quire {

// Asks for credentials when the first request needs them: a server without
// archives in S3 never does. From then on it asks again
//   - from 15 minutes before their expiry, as botocore;
//   - when a store has refused them, and at a reload.
// Credentials stay in force until there are new ones, also after their expiry:
// the store decides. Thread-safe, except for the destructor.
class CredentialKeeper {
 public:
  using Find =
      std::function<CredentialFinding(const std::atomic<bool>& cancel)>;
  // Called on the keeper's thread with a line that has no secrets. Of failures
  // in a row only the first is reported.
  using Notice = std::function<void(bool is_failure, const std::string& line)>;

  struct Options {
    Find find;
    // May be null.
    Notice notice = {};
    // Least time from one failure, or one refusal, to the next question. Files
    // and the environment are read at each refusal.
    std::chrono::milliseconds pause{5'000};
  };

  // Starts a thread.
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CredentialKeeper>> Start(
      Options options);

  // As Stop().
  ~CredentialKeeper();
  CredentialKeeper(const CredentialKeeper&) = delete;
  CredentialKeeper& operator=(const CredentialKeeper&) = delete;

  // Credentials in force; null until they are known for the first time, and
  // never again.
  std::shared_ptr<const StoreCredentials> Current() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Why the last question failed; OK if it did not.
  absl::Status last_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `done` once, on the keeper's thread, as soon as there are credentials
  // other than those that a store has `refused`, which may be null, or a
  // question has been answered without a change. After Stop() `done` is
  // dropped.
  void Ask(std::shared_ptr<const StoreCredentials> refused,
           std::function<void()> done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks again if there was a call of Ask(), and waits for the answer for at
  // most `time_max`.
  // Errors: those of FindCredentials(); DeadlineExceeded  no answer yet: it is
  //         taken when it comes.
  absl::Status Reload(std::chrono::milliseconds time_max)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a question that is asked, and the thread. May be called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Number of questions that failed.
  uint64_t failure_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // When to ask again about credentials that were found now. Public for tests.
  static absl::Time NextTime(absl::Time now, absl::Time expiry);

 private:
  struct Waiter {
    std::shared_ptr<const StoreCredentials> refused;
    std::function<void()> done;
  };

  explicit CredentialKeeper(Options options) : options_(std::move(options)) {}

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if a question is due by its time.
  bool IsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the waiters that need no question to `answered`.
  void TakeAnswered(std::vector<Waiter>& answered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a waiter, a reload, the time of a question or a stop.
  void WaitForWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the line to report, or an empty one.
  std::string Take(CredentialFinding finding)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<const StoreCredentials> current_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  // Of the last question, and of the credentials in force.
  bool was_local_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_current_local_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  bool is_reload_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  // Questions that were begun, and answered.
  uint64_t begun_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t answer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failure_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // By the clock of the machine, as expiries are.
  absl::Time next_time_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::chrono::steady_clock::time_point last_answer_time_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_KEEPER_H_
