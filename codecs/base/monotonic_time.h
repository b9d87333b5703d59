// SPDX-License-Identifier: Apache-2.0
//
// Times for waits and limits, which must not change when the system's clock is
// set.
#ifndef QUIRE_CODECS_BASE_MONOTONIC_TIME_H_
#define QUIRE_CODECS_BASE_MONOTONIC_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace quire {

// Returns a time that never decreases. Its start is not defined: compare it
// only with other such times.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MONOTONIC_TIME_H_
