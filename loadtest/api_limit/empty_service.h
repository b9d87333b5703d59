// SPDX-License-Identifier: Apache-2.0
//
// The Archive service without an archive: what gRPC alone can do.
#ifndef QUIRE_LOADTEST_API_LIMIT_EMPTY_SERVICE_H_
#define QUIRE_LOADTEST_API_LIMIT_EMPTY_SERVICE_H_

#include <cstdint>
#include <memory>

#include "grpcpp/impl/codegen/service_type.h"

namespace quire {

struct EmptyAnswers {
  // Of each answer.
  uint32_t size_bytes = 16 << 10;
  // A message of BatchRead is taken to hold so many items, and is answered in
  // messages of so many; both positive, the first a multiple of the second.
  uint32_t batch_items = 64;
  uint32_t batch_results = 32;
};

// Read and BatchRead by the same API as the server's (callbacks, raw byte
// buffers), each answered with bytes that were made beforehand: requests are
// not even parsed. Scan sends one message over and over until it is cancelled;
// its request's size_bytes says how long the data of that is. Thread-safe.
std::unique_ptr<grpc::Service> MakeEmptyService(const EmptyAnswers& answers);

}  // namespace quire

#endif  // QUIRE_LOADTEST_API_LIMIT_EMPTY_SERVICE_H_
