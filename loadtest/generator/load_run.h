// SPDX-License-Identifier: Apache-2.0
//
// A run of load against a server: its requests are checked, counted and timed.
// Start here.
//
// Uses the generated stubs instead of client/quire: a fault of the client
// library must not hide a fault of the server. The library only decodes answers
// and chooses an encoding; decoded bytes are compared with the source like all
// others.
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

// Inputs of a run besides its options. All pointees must outlive the run.
struct LoadInputs {
  // Calls use these in turn. REQUIRES: not empty.
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  // Source of the archive; null: contents are not compared.
  const SourceText* source = nullptr;
  // Ends the run soon after it becomes true; may be null.
  const std::atomic<bool>* interrupt = nullptr;
  // Called once when the warm-up has ended, on any thread; must not block. May
  // be empty.
  std::function<void()> on_window = {};
};

// Blocks until all requests are answered, or the run has ended otherwise. It
// ends against any server: at the latest when one call or all of them received
// nothing for the deadline; with a duration, one deadline after that.
// Errors: FailedPrecondition  the archive is not of the source's size, is
//                             empty, or is shorter than the largest range.
//         else                the error of GetArchive, or of fetching a table.
absl::StatusOr<LoadReport> RunLoad(const LoadInputs& inputs,
                                   const LoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_RUN_H_
