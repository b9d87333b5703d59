// SPDX-License-Identifier: Apache-2.0
//
// Calls as fast as they come back, by a client that does next to nothing with
// the answers: what is measured is the server.
#ifndef QUIRE_LOADTEST_API_LIMIT_RAW_LOAD_H_
#define QUIRE_LOADTEST_API_LIMIT_RAW_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"

#include "loadtest/api_limit/raw_tally.h"

namespace quire {

struct RawRequests {
  // Serialised, one Read each.
  std::vector<grpc::ByteBuffer> reads;
  // Serialised, one message of BatchRead each, all with as many items.
  std::vector<grpc::ByteBuffer> batches;
  size_t batch_items = 0;
};

// Ranges at random places, unaligned.
// REQUIRES: range_size_bytes <= text_size_bytes; the counts are positive.
RawRequests MakeRawRequests(const std::string& archive,
                            uint64_t text_size_bytes, uint64_t range_size_bytes,
                            size_t count, size_t batch_items);

// Both block until the run is over.
// Unary Reads in a closed loop, spread over `channels`.
RawLoadReport RunRawReads(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawRequests& requests, const RawLoadOptions& options);

// One stream of BatchRead on each channel.
RawLoadReport RunRawBatches(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawRequests& requests, const RawLoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_API_LIMIT_RAW_LOAD_H_
