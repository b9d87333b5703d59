// SPDX-License-Identifier: Apache-2.0
//
// A run of load against a server: what it is asked for is checked, counted and
// timed. Start here.
//
// Written on the generated stubs, not on the calls of client/quire: a fault of
// the client library must not be able to hide a fault of the server. What the
// library is used for is to decode answers and to choose an encoding; the bytes
// that it gives are compared with the source like all others.
#ifndef QUIRE_LOADTEST_GENERATOR_LOAD_RUN_H_
#define QUIRE_LOADTEST_GENERATOR_LOAD_RUN_H_

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"

#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_options.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// What a run uses besides its options. All that is pointed to must outlive the
// run.
struct LoadInputs {
  // Calls take turns on these. REQUIRES: not empty.
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  // What the archive was built from; null: contents are not compared.
  const SourceText* source = nullptr;
  // Ends the run soon after it becomes true; may be null.
  const std::atomic<bool>* interrupt = nullptr;
  // Called once when the warm-up has ended, on any thread; must not block. May
  // be empty.
  std::function<void()> on_window = {};
};

// Blocks until all requests are answered, or the run has ended otherwise, which
// it does against any server: at the latest when nothing came for the deadline,
// on one call or on all, or where there is a duration, a deadline after that.
// Errors: FailedPrecondition  the archive is not of the source's size, has
//                             nothing to read, or less than the largest range.
//         else                why GetArchive failed, or a table could not be
//                             had.
absl::StatusOr<LoadReport> RunLoad(const LoadInputs& inputs,
                                   const LoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_RUN_H_
