// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_
#define QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client/quire/wire_encoding.h"

namespace quire {

// Method of reading an archive.
enum class LoadMode {
  // One call per request: Read, or ReadStream if a document is larger than the
  // server's limit on a Read.
  kRandom,
  // BatchRead, batch_size requests per stream. Too large documents follow by
  // ReadStream.
  kBatch,
  // Scan of the whole archive, in in_flight parts. A message counts as a
  // request; its latency is the time since the previous one, or since the call.
  kFull,
};

// Kind of requests.
enum class LoadKind { kRanges, kDocuments };

struct LoadOptions {
  std::string archive;
  LoadMode mode = LoadMode::kRandom;

  // Affects the requests. Request i depends only on (seed, i), whatever the
  // order of answers: a range or a document, all of them equally likely.
  LoadKind what = LoadKind::kRanges;
  uint64_t seed = 1;
  // A shorter archive is refused, as the run would not measure the requested
  // load. REQUIRES: > 0.
  uint64_t range_size_bytes = 16 << 10;

  // End of the run: the requests were started and answered, or the duration is
  // over, whichever comes first. Unset: no limit. Neither includes the warm-up,
  // whose requests come first and are not part of the report. Mode kFull has no
  // warm-up and no count: without a duration it reads the archive once,
  // otherwise repeatedly.
  std::optional<uint64_t> request_count = 10'000;
  std::optional<std::chrono::milliseconds> duration =
      std::chrono::milliseconds(600'000);
  std::chrono::milliseconds warmup{0};

  // Unset: a closed loop, which always has the maximum number of calls in
  // flight. Set: an open loop, which starts this many requests per second
  // whatever the server does, like many independent clients; of mode kRandom.
  // REQUIRES: > 0.
  std::optional<double> requests_per_second = {};
  // Limit on calls in flight. REQUIRES: > 0.
  uint32_t in_flight = 64;
  // Requests of one call of mode kBatch. REQUIRES: > 0.
  uint64_t batch_size = 10'000;

  // Requested encoding. Tables are fetched before the time starts.
  AnswerEncoding encoding = AnswerEncoding::kIdentity;

  // Time limit of one Read, and of the wait for each message of a stream. Also
  // the time for which a server may be busy. A server that sends nothing at all
  // for this time ends the run.
  std::chrono::milliseconds deadline{30'000};

  // Requests of one call; undefined for a scan.
  uint64_t requests_per_call() const {
    return mode == LoadMode::kBatch ? batch_size : 1;
  }
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_
