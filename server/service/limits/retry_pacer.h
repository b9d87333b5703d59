// SPDX-License-Identifier: GPL-3.0-or-later
//
// Computes when calls refused for lack of memory should retry.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_
#define QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// Estimates for each refused call when its bytes will be free: the bytes
// refused to the same client that it has yet to retry, divided by an equal part
// for each waiting client of the bytes released per second. Higher excess
// demand thus means longer waits. Calls of one client return one after the
// other, and a client that returns early lengthens only its own line.
// The result depends only on the calls and the times given.
// Thread-compatible.
class RetryPacer {
 public:
  // Bounds on all waits: the minimum is long enough for a full server to have
  // sent something, the maximum short enough for people.
  static constexpr absl::Duration kWaitMin = absl::Milliseconds(100);
  static constexpr absl::Duration kWaitMax = absl::Seconds(5);

  // `total_bytes` is the size of the resource, and the bytes released per
  // second until that is measured. REQUIRES: total_bytes > 0.
  explicit RetryPacer(uint64_t total_bytes) : total_bytes_(total_bytes) {}

  // Returns the wait of a call of `client` that was refused `size_bytes` at
  // `now`. `freed_bytes` counts all bytes released until `now`. It is read
  // here, not when it grows, so that served callers do not pay for it.
  absl::Duration Refuse(absl::string_view client, uint64_t size_bytes,
                        uint64_t freed_bytes, absl::Time now);

 private:
  void Measure(uint64_t freed_bytes, absl::Time now);

  const uint64_t total_bytes_;
  // Time at which the last call of each waiting client is due. Entries in the
  // past are removed at the next measurement.
  absl::flat_hash_map<std::string, absl::Time> due_by_client_;
  absl::Time measured_at_ = absl::InfinitePast();
  uint64_t measured_freed_bytes_ = 0;
  double freed_bytes_per_second_ = 0;
  uint64_t refused_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_
