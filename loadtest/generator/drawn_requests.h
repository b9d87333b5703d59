// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_GENERATOR_DRAWN_REQUESTS_H_
#define QUIRE_LOADTEST_GENERATOR_DRAWN_REQUESTS_H_

#include <cstdint>
#include <ostream>

#include "absl/status/status.h"

#include "loadtest/generator/load_run.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// Writes the requests that a run made as a log (request_log.h) that makes the
// same run when it is replayed, with the times at which they were due if the
// loop was open. They are drawn anew, so the run itself is not burdened.
// REQUIRES: options.mode is not kFull; inputs, options and report are those of
// the run.
// Errors: InvalidArgument  an id has a line end.
//         Unavailable      `out` cannot be written to.
absl::Status WriteDrawnRequests(const LoadInputs& inputs,
                                const LoadOptions& options,
                                const LoadReport& report, std::ostream& out);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_DRAWN_REQUESTS_H_
