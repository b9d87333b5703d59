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

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"

#include "client/quire/wire_encoding.h"
#include "loadtest/latency_histogram.h"
#include "loadtest/source_text.h"

namespace quire {

enum class LoadKind {
  // Ranges of uniform offset; by Read.
  kRanges,
  // Documents by id, each equally likely; by Read, or by ReadStream where the
  // document is larger than the server grants to a Read.
  kDocuments,
};

struct LoadOptions {
  std::string archive;
  LoadKind kind = LoadKind::kRanges;

  // Affects what is read. Request i is a function of (seed, i) alone, whatever
  // the order in which answers come.
  uint64_t request_count = 10'000;
  uint64_t seed = 1;
  // Of ranges: uniform between these; cut to what the archive has.
  // REQUIRES: range_size_bytes_min <= range_size_bytes_max.
  uint64_t range_size_bytes_min = 16 << 10;
  uint64_t range_size_bytes_max = 16 << 10;

  // Affects performance: calls that wait for their answer at any moment.
  // REQUIRES: > 0.
  uint32_t in_flight = 64;
  // What the server is asked for. Tables are fetched before the time runs; with
  // `auto` the dictionary only if it is small against what will be read, else
  // `stored` is not tried.
  EncodingChoice encoding = EncodingChoice::kIdentity;

  // The run ends early, without fault, when it has lasted this long.
  std::chrono::seconds time_max{600};
  std::chrono::milliseconds deadline{30'000};
};

struct LoadReport {
  // Requests that were answered: right_count of them with the source's bytes,
  // wrong_count with others or with a false checksum or description, the rest
  // with an error.
  uint64_t request_count = 0;
  uint64_t right_count = 0;
  uint64_t wrong_count = 0;
  // Calls that were made again because the server was busy and said for how
  // long; not counted above.
  uint64_t retry_count = 0;
  // By gRPC code and reason, such as "NOT_FOUND DOCUMENT_NOT_FOUND".
  std::map<std::string, uint64_t> errors;
  // The first few faults in words.
  std::vector<std::string> faults;
  // Of right answers, decoded.
  uint64_t received_bytes = 0;
  // Of right answers: bytes of data as they came, and messages whole, without
  // what HTTP/2 adds.
  uint64_t wire_bytes = 0;
  uint64_t message_bytes = 0;
  // By IndexOf(AnswerEncoding); the messages of a stream count each.
  std::array<WireTraffic, kAnswerEncodingCount> traffic;
  // What `auto` found best; unset for other choices.
  std::optional<AnswerEncoding> ended_at;
  // What was received before, to be able to decode.
  uint64_t fetched_bytes = 0;
  double elapsed_seconds = 0;
  // From the start of a request's first call to the last byte of its answer,
  // waiting for a busy server included; comparing is not part of it.
  LatencyHistogram latency;
};

// Blocks until all requests are answered.
// Errors: FailedPrecondition  the archive is not of the source's size, or there
//                             is nothing to read in it.
//         else                why GetArchive failed.
absl::StatusOr<LoadReport> RunLoad(
    const std::shared_ptr<grpc::Channel>& channel, const SourceText& source,
    const LoadOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_LOAD_RUN_H_
