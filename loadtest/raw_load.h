// SPDX-License-Identifier: Apache-2.0
//
// Calls as fast as they come back, by a client that does next to nothing with
// the answers: what is measured is the server.
#ifndef QUIRE_LOADTEST_RAW_LOAD_H_
#define QUIRE_LOADTEST_RAW_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"

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

struct RawLoadOptions {
  // Thrown away before it counts.
  absl::Duration warm_up = absl::Milliseconds(200);
  // As often as it takes until an answer has come.
  absl::Duration duration = absl::Seconds(1);
  // Calls, or items of batches, that wait for an answer; of all channels
  // together.
  size_t in_flight = 64;
  // Least size of an answer's data: what is smaller is a fault.
  uint64_t range_size_bytes = 0;
  // Whose CPU time is asked for; 0: nobody's.
  int server_pid = 0;
};

struct RawLoadReport {
  uint64_t answer_count = 0;
  // Calls that failed, answers that were too short.
  uint64_t fault_count = 0;
  double seconds = 0;
  // Of the server's process, user and system.
  double server_cpu_seconds = 0;
  // What the first fault was.
  std::string fault;
};

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

#endif  // QUIRE_LOADTEST_RAW_LOAD_H_
