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

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace quire {

enum class RawMethod {
  // In a closed loop.
  kRead,
  // A stream on each channel, with a bounded number of items on their way.
  kBatchRead,
  // A stream on each channel, and another one when it has ended.
  kScan,
};

struct RawLoadOptions {
  RawMethod method = RawMethod::kRead;
  std::string archive;
  // Of the archive; ranges are at random places in it, unaligned.
  uint64_t text_size_bytes = 0;
  // Of an answer; of a scan, of all of its text, from the archive's start.
  // REQUIRES: <= text_size_bytes.
  uint64_t range_size_bytes = 16 << 10;
  // Calls, or items of batches, of all channels together.
  // REQUIRES: >= batch_items for each channel.
  size_t in_flight = 64;
  // In each message of BatchRead.
  size_t batch_items = 64;
  // Not counted.
  absl::Duration warm_up = absl::Milliseconds(50);
  // As often as it takes until an answer has come.
  absl::Duration duration = absl::Seconds(1);
  // Whose CPU time is asked for.
  int server_pid = 0;
};

struct RawLoadReport {
  // Of a scan: its messages.
  uint64_t answer_count = 0;
  // Of the messages that they came in, whole.
  uint64_t size_bytes = 0;
  double seconds = 0;
  // User and system time of the processes.
  double server_cpu_seconds = 0;
  double client_cpu_seconds = 0;
};

// Blocks until the run is over. REQUIRES: channels is not empty.
// Errors: Internal  a call failed or took a minute, or an answer is too short.
absl::StatusOr<RawLoadReport> RunRawLoad(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const RawLoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_API_LIMIT_RAW_LOAD_H_
