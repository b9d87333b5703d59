// SPDX-License-Identifier: GPL-3.0-or-later
//
// GETs of objects with the rules of stores: signatures, checks, retries,
// hedges.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_OBJECT_READER_H_
#define QUIRE_SERVER_STORAGE_REMOTE_OBJECT_READER_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/storage/base/duration_histogram.h"
#include "server/storage/remote/answer_head.h"
#include "server/storage/remote/credential_keeper.h"
#include "server/storage/remote/store_address.h"
#include "server/storage/remote/transfer_loop.h"

namespace quire {

// Outcomes of requests, for metrics.
enum class StoreOutcome : uint8_t {
  kGood,
  // 304.
  kNotModified,
  // 404, and 412: the object is another one now.
  kMissing,
  kChanged,
  // 401 and 403.
  kDenied,
  // 429 and 503.
  kThrottled,
  // Other statuses, above all 5xx.
  kFailed,
  // An answer that does not fit the request.
  kRefused,
  kNotConnected,
  kTimeout,
  kBroken,
  // Hedges that lost, and transfers ended by a shutdown.
  kCancelled,
};
inline constexpr size_t kStoreOutcomeCount = 12;
// "good", "not_modified", ...
const char* StoreOutcomeName(StoreOutcome outcome);

struct ObjectReaderStats {
  std::array<uint64_t, kStoreOutcomeCount> requests{};
  uint64_t received_bytes = 0;
  // Requests after the first of their GET.
  uint64_t retries = 0;
  uint64_t hedges = 0;
  // Durations of successful requests.
  DurationHistogram durations;
};

// What an error of a GET tells of its object.
enum class StoreWord : uint8_t {
  // Nothing: it is an error of this machine, or of an answer that is not the
  // store's.
  kNone,
  // The store did not answer, or with 429 or 5xx: it cannot say anything now.
  kSilent,
  // 401, 403, 404 or 412: it is not to be read, is gone, or is another one.
  kRefused,
};
StoreWord StoreWordOf(const absl::Status& error);

// One GET, on the loop's thread.
struct ObjectGet {
  std::shared_ptr<const StoreAddress> address;
  std::string object;
  // The range; unset: the whole object, of at most wanted.size_bytes_max. Its
  // etag, if not empty, is a condition.
  WantedAnswer wanted;
  // Unless empty, an object with this ETag is not sent.
  std::string none_match;
  // Begin a second request if the first is slow.
  bool may_hedge = false;

  // Called with parts of the body, at an offset within the range. Requests may
  // be repeated, from any offset that was received before, always with the same
  // bytes.
  std::function<void(uint64_t offset, ByteView bytes)> on_body;

  struct End {
    // OK: the whole range was received, or the object has not changed.
    // Errors: Unavailable       no good answer: after all retries, or at a
    // stop.
    //         NotFound          404.
    //         Aborted           412: the object has changed.
    //         PermissionDenied  401 or 403; or the source of credentials is
    //                           not configured properly, or refuses them.
    //         ResourceExhausted  a whole object is larger than wanted.
    // StoreWordOf() tells more.
    absl::Status status;
    bool is_not_modified = false;
    std::string etag = {};
  };

  // Called once.
  std::function<void(const End&)> on_end;
};

// All public functions but GetStats() and SetStopTime() are called on the
// loop's thread.
class ObjectReader {
 public:
  struct Options {
    uint32_t requests_max = 64;
    std::string region;
    int tries_max = 4;
    std::chrono::milliseconds retry_delay{50};
    std::chrono::milliseconds time_max{30'000};
  };

  // GETs from S3 wait until the keeper knows credentials, and for others if the
  // store refuses them. `loop` and `credentials` must outlive it.
  ObjectReader(const Options& options, CredentialKeeper& credentials,
               TransferLoop& loop);
  // REQUIRES: all GETs have ended, and the keeper is stopped.
  ~ObjectReader();
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  void Start(ObjectGet get);

  // Ends all GETs at this time, and later ones at once. Thread-safe.
  void SetStopTime(LoopTime time);

  // The same, now. On the loop's thread.
  void StopNow();

  ObjectReaderStats GetStats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class ActiveGet;
  class Request;

  // Durations of the last good GETs of one size.
  struct Window {
    std::array<uint32_t, 64> durations_us{};
    uint32_t count = 0;
  };

  Window& WindowOf(const ObjectGet& get);
  // Unset without enough GETs.
  std::optional<std::chrono::microseconds> HedgeDelay(const ObjectGet& get);
  bool MayHedge();
  void Count(StoreOutcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountGood(const ObjectGet& get, LoopDuration duration)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins requests of waiting GETs while there is room.
  void StartWaiting();

  const Options options_;
  CredentialKeeper& credentials_;
  TransferLoop& loop_;
  absl::flat_hash_set<ActiveGet*> active_;
  // Their next request waits for its turn.
  std::deque<ActiveGet*> waiting_;
  uint32_t request_count_ = 0;
  bool stopped_ = false;
  uint64_t get_count_ = 0;
  uint64_t hedge_count_ = 0;
  std::array<Window, 8> windows_;
  // For jitter only.
  std::minstd_rand random_{std::random_device()()};
  mutable Mutex mutex_;
  ObjectReaderStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_OBJECT_READER_H_
