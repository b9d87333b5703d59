// SPDX-License-Identifier: Apache-2.0
//
// Streams that are read as fast as they come, by a client that only counts
// their bytes.
#ifndef QUIRE_LOADTEST_API_LIMIT_RAW_STREAM_H_
#define QUIRE_LOADTEST_API_LIMIT_RAW_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

#include "loadtest/api_limit/raw_tally.h"

namespace quire {

enum class RawStreamMethod { kScan, kReadStream };

// What each stream asks for: `size_bytes` from the start of the archive. What
// an empty handler makes of it, MakeEmptyService() says.
struct RawStreamRequest {
  RawStreamMethod method = RawStreamMethod::kScan;
  std::string archive;
  uint64_t size_bytes = 0;
};

// One stream on each channel, followed by another when it has ended; those that
// run at the end are cancelled. Answers are messages. Blocks until the run is
// over.
RawLoadReport RunRawStreams(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawStreamRequest& request, const RawLoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_API_LIMIT_RAW_STREAM_H_
