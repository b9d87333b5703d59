// SPDX-License-Identifier: Apache-2.0
#include "client/quire/process_settings.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"

namespace quire {

void PrepareReadingProcess() {
  constexpr int kKeptSizeBytesMax = 32 << 20;
  // NOLINTBEGIN(concurrency-mt-unsafe): the caller has no other thread.
  mallopt(M_MMAP_THRESHOLD, kKeptSizeBytesMax);
  mallopt(M_TRIM_THRESHOLD, kKeptSizeBytesMax);
  // NOLINTEND(concurrency-mt-unsafe)
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace quire
