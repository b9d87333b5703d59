// SPDX-License-Identifier: Apache-2.0
//
// What the requests of a load run ask for.
#ifndef QUIRE_LOADTEST_LOAD_TARGETS_H_
#define QUIRE_LOADTEST_LOAD_TARGETS_H_

#include <cstdint>

#include "loadtest/answer_checker.h"
#include "loadtest/load_run.h"
#include "loadtest/source_text.h"

namespace quire {

// Request number `request_index` of a run: a function of it, the seed and the
// other options alone. `read_size_bytes_max`: ranges are no larger.
// REQUIRES: the source has something to read of the options' kind.
ReadTarget TargetOfRequest(const SourceText& source, const LoadOptions& options,
                           uint64_t read_size_bytes_max,
                           uint64_t request_index);

// Decoded bytes that a whole run will read, in the mean.
// REQUIRES: as above.
uint64_t ExpectedSizeBytes(const SourceText& source,
                           const LoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_LOAD_TARGETS_H_
