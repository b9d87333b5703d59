// SPDX-License-Identifier: GPL-3.0-or-later
//
// When those who were refused for lack of memory should come back.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_
#define QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// Tells each refused call when its bytes should be free: the bytes that the
// same client was refused before it and has yet to come back for, over what is
// set free a second, of which every client that waits has an equal part. So the
// more is asked for in vain the longer are the waits, those of one client come
// back one after the other and not all at once, and one that does not wait as
// told lengthens its own line and no other thread's.
// What it says follows from the calls and the times given, nothing else.
// Thread-compatible.
class RetryPacer {
 public:
  // All waits are within these bounds: the first is long enough for a full
  // server to have sent something, the second short enough for people.
  static constexpr absl::Duration kWaitMin = absl::Milliseconds(100);
  static constexpr absl::Duration kWaitMax = absl::Seconds(5);

  // `total_bytes` is all there is to be had; as long as nothing is known, that
  // much is taken to be set free each second. REQUIRES: total_bytes > 0.
  explicit RetryPacer(uint64_t total_bytes) : total_bytes_(total_bytes) {}

  // For how long a call of `client`, refused `size_bytes` at `now`, should
  // wait. `freed_bytes` counts what was ever set free until `now`; it is looked
  // at here and not when it grows, so that callers that are served do not pay
  // for it.
  absl::Duration Refuse(absl::string_view client, uint64_t size_bytes,
                        uint64_t freed_bytes, absl::Time now);

 private:
  void Measure(uint64_t freed_bytes, absl::Time now);

  const uint64_t total_bytes_;
  // Clients that were told to come back, and when their last call is due. Those
  // whose time has come leave at the next measurement.
  absl::flat_hash_map<std::string, absl::Time> due_by_client_;
  absl::Time measured_at_ = absl::InfinitePast();
  uint64_t measured_freed_bytes_ = 0;
  double freed_bytes_per_second_ = 0;
  uint64_t refused_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_RETRY_PACER_H_
