// SPDX-License-Identifier: Apache-2.0
//
// A run of random reads against a server, each answer compared with the source.
//
// Written on the generated stubs, not on the calls of client/quire: a fault of
// the client library must not be able to hide a fault of the server. What the
// library is used for is to decode answers and to choose an encoding; the bytes
// that it gives are compared with the source like all others.
#ifndef QUIRE_LOADTEST_LOAD_RUN_H_
#define QUIRE_LOADTEST_LOAD_RUN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"

#include "loadtest/load_options.h"
#include "loadtest/load_report.h"
#include "loadtest/source_text.h"

namespace quire {

// Blocks until all requests are answered.
// Errors: FailedPrecondition  the archive is not of the source's size, or there
//                             is nothing to read in it.
//         else                why GetArchive failed.
absl::StatusOr<LoadReport> RunLoad(
    const std::shared_ptr<grpc::Channel>& channel, const SourceText& source,
    const LoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_LOAD_RUN_H_
