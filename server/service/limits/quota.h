// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits on the rate of one client.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_QUOTA_H_
#define QUIRE_SERVER_SERVICE_LIMITS_QUOTA_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"

namespace quire {

// Limit that is none: it lifts the default of its key. Above any other limit
// that SetQuota() accepts.
inline constexpr uint64_t kUnlimited = ~uint64_t{0};

// Unset fields have the default limit, or none without a default.
struct Quota {
  std::optional<uint64_t> calls_per_second;
  // Decoded bytes of answers, and messages of lists and descriptions.
  std::optional<uint64_t> bytes_per_second;
  // Concurrent streaming calls.
  std::optional<uint64_t> streams;

  bool is_set() const {
    return calls_per_second.has_value() || bytes_per_second.has_value() ||
           streams.has_value();
  }

  // Returns this with the limits of `defaults` for unset fields, and without
  // fields that are kUnlimited.
  Quota WithDefaults(const Quota& defaults) const;
};

// A quota that may change while calls read it. A reader during a change may see
// a mix of old and new fields. Thread-safe; never blocks.
class ChangingQuota {
 public:
  explicit ChangingQuota(const Quota& quota = {}) { Set(quota); }

  void Set(const Quota& quota) {
    calls_per_second_ = quota.calls_per_second.value_or(kUnlimited);
    bytes_per_second_ = quota.bytes_per_second.value_or(kUnlimited);
    streams_ = quota.streams.value_or(kUnlimited);
  }

  Quota Get() const {
    return {.calls_per_second = Bound(calls_per_second_),
            .bytes_per_second = Bound(bytes_per_second_),
            .streams = Bound(streams_)};
  }

 private:
  static std::optional<uint64_t> Bound(const std::atomic<uint64_t>& value) {
    const uint64_t bound = value.load(std::memory_order_relaxed);
    return bound == kUnlimited ? std::nullopt : std::optional(bound);
  }

  std::atomic<uint64_t> calls_per_second_;
  std::atomic<uint64_t> bytes_per_second_;
  std::atomic<uint64_t> streams_;
};

// Sets one of "calls", "bytes" and "streams"; bytes may be a size, as 16MiB;
// "none" is kUnlimited. Returns false if `key` is not one of them.
// Errors: InvalidArgument  `value` is neither a number from 1 to 10^15 nor
//                          "none".
absl::StatusOr<bool> SetQuota(absl::string_view key, absl::string_view value,
                              Quota& quota);

// Parses "calls=100,bytes=16MiB,streams=8", each at most once.
// Errors: InvalidArgument.
absl::StatusOr<Quota> ParseQuota(absl::string_view text);

// Remaining quota of each client: token buckets that hold one second's worth.
// The size of a call's answers is not known when it begins, so it is paid for
// as it is sent, and a client in debt waits.
// Thread-safe; never blocks.
class QuotaBook {
 public:
  explicit QuotaBook(std::function<absl::Time()> clock = MonotonicNow)
      : clock_(std::move(clock)) {}

  // The use of one call. Must not outlive the book. Thread-safe except for
  // moves.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&& other) noexcept;

    ~Use() { End(); }

    // Pays for bytes being sent; the client may be in debt afterwards.
    void Sent(uint64_t size_bytes);

    // Checks whether a stream may continue: not if its client owes a second's
    // worth.
    // Errors: as QuotaBook::Begin().
    absl::Status Check() const;

   private:
    friend class QuotaBook;
    struct Account;

    void End();

    const QuotaBook* book_ = nullptr;
    std::shared_ptr<Account> account_;
    bool is_stream_ = false;
  };

  // Begins a call. Costs nothing without a quota.
  // Errors: ResourceExhausted (QUOTA_EXCEEDED), with a RetryInfo of at least
  //         10 ms.
  absl::StatusOr<Use> Begin(const std::string& client, const Quota& quota,
                            bool is_stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of known clients: those with a call or with less than
  // their full quota, and some more.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void ForgetIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<absl::Time()> clock_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Use::Account>> accounts_
      ABSL_GUARDED_BY(mutex_);
  // Number of clients above which idle ones are removed.
  size_t looked_for_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_QUOTA_H_
