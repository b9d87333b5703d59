// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_
#define QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "client/quire/wire_encoding.h"

namespace quire {

// How an archive is read.
enum class LoadMode {
  // One call a request: Read, or ReadStream where a document is larger than the
  // server grants to a Read.
  kRandom,
  // BatchRead, batch_size requests a stream. Documents too large for that
  // follow by ReadStream.
  kBatch,
  // Scan of the whole archive. A message counts as a request; its latency is
  // the time since the one before, or since the call.
  kFull,
};

// What a request asks for.
enum class LoadKind { kRanges, kDocuments };

enum class LoadDistribution {
  kUniform,
  // The item of rank k has a probability in proportion to 1 / k^exponent. Which
  // item has which rank is a permutation of the seed's.
  kZipf,
};

enum class LoadArrivals {
  // Times between arrivals are exponential, as those of many independent
  // clients are.
  kPoisson,
  // Equal times between arrivals.
  kConstant,
};

// Names as on the command line: "random", "ranges", "zipf", "poisson".
absl::string_view NameOf(LoadMode mode);
absl::string_view NameOf(LoadKind kind);
absl::string_view NameOf(LoadDistribution distribution);
absl::string_view NameOf(LoadArrivals arrivals);

struct LoadOptions {
  std::string archive;
  LoadMode mode = LoadMode::kRandom;

  // Affects what is read. Request i is a function of (seed, i) alone, whatever
  // the order in which answers come.
  LoadKind what = LoadKind::kRanges;
  LoadDistribution distribution = LoadDistribution::kUniform;
  double zipf_exponent = 0.99;
  uint64_t seed = 1;
  // Of ranges: uniform between these. An archive of less text than the larger
  // one is refused: what is measured would not be what was asked for.
  // REQUIRES: range_size_bytes_min <= range_size_bytes_max, and not 0.
  uint64_t range_size_bytes_min = 16 << 10;
  uint64_t range_size_bytes_max = 16 << 10;

  // When the run ends: so many requests were started and answered, or the
  // duration is over, whichever comes first. Unset: no limit. Neither counts
  // the warm-up, whose requests come first and are not part of the report; it
  // ends when both of its limits are reached. Mode kFull has no warm-up and no
  // count: without a duration it reads the archive once, else over and over.
  std::optional<uint64_t> request_count = 10'000;
  std::optional<std::chrono::milliseconds> duration =
      std::chrono::milliseconds(600'000);
  uint64_t warmup_request_count = 0;
  std::chrono::milliseconds warmup_duration{0};

  // Unset: a closed loop, which always has as many calls waiting as it may.
  // Set: an open loop, which starts so many requests a second whatever the
  // server does. REQUIRES: > 0.
  std::optional<double> requests_per_second = {};
  LoadArrivals arrivals = LoadArrivals::kPoisson;
  // Calls that wait for their answer at any moment, at most; of mode kRandom.
  // REQUIRES: > 0.
  uint32_t in_flight = 64;
  // The same for modes kBatch and kFull. REQUIRES: > 0.
  uint32_t stream_count = 1;
  // REQUIRES: > 0.
  uint64_t batch_size = 10'000;

  // What the server is asked for. Tables are fetched before the time runs; with
  // `auto` the dictionary only if it is small against what will be read, else
  // `stored` is not tried.
  EncodingChoice encoding = EncodingChoice::kIdentity;

  // Of one Read, and of the wait for each message of a stream. Also how long a
  // server may say that it is busy. One that sends nothing at all for so long
  // ends the run.
  std::chrono::milliseconds deadline{30'000};

  // Requests that one call makes; of a scan it cannot be said.
  uint64_t requests_per_call() const {
    return mode == LoadMode::kBatch ? batch_size : 1;
  }

  bool is_open_loop() const { return requests_per_second.has_value(); }
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_LOAD_OPTIONS_H_
