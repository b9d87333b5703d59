// SPDX-License-Identifier: Apache-2.0
//
// What a load run found.
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/wire_encoding.h"
#include "loadtest/report/latency_histogram.h"
#include "loadtest/report/load_timeline.h"

namespace quire {

// Why a run ended. kSilence: the server sent nothing to any call for as long as
// one call may take (LoadOptions::deadline).
enum class LoadEnd { kRequests, kDuration, kInterrupt, kSilence };

struct LoadReport {
  // As the server described it before the run.
  v1::ArchiveDescription archive;
  // Whether answers were compared with a source; else only their checksums,
  // ranges and descriptions were checked.
  bool is_compared = false;
  LoadEnd end = LoadEnd::kRequests;

  // Requests that were answered after the warm-up: right_count of them as they
  // must be, wrong_count with other bytes or with a false checksum or
  // description, the rest with an error.
  uint64_t request_count = 0;
  uint64_t right_count = 0;
  uint64_t wrong_count = 0;
  // Not in any other figure of answers.
  uint64_t warmup_count = 0;
  // Requests [0, started_count) were made, warm-up included.
  uint64_t started_count = 0;
  // Calls that were made again because the server was busy and said for how
  // long; not counted above.
  uint64_t retry_count = 0;
  // By gRPC code and reason, such as "NOT_FOUND DOCUMENT_NOT_FOUND".
  std::map<std::string, uint64_t> errors;
  // The first few faults in words.
  std::vector<std::string> faults;

  // Of an open loop, warm-up included. Arrivals that had to wait until one of
  // the outstanding calls ended; their latency counts from the time they were
  // due.
  uint64_t held_count = 0;
  // Arrivals that this program itself started more than a millisecond late.
  uint64_t late_count = 0;
  // Arrivals that were due when the run ended, and were never started.
  uint64_t unstarted_count = 0;
  // Requests whose calls were cancelled when the run ended; never answered.
  uint64_t unanswered_count = 0;

  // Of right answers, decoded.
  uint64_t text_bytes = 0;
  // Of right answers: bytes of data as they came, and messages whole, without
  // what HTTP/2 adds.
  uint64_t wire_bytes = 0;
  uint64_t message_bytes = 0;
  // By IndexOf(AnswerEncoding), warm-up included; the messages of a stream
  // count each. Empty for identity.
  std::array<WireTraffic, kAnswerEncodingCount> traffic;
  // What `auto` found best; unset for other choices.
  std::optional<AnswerEncoding> ended_at;
  // What was received before, to be able to decode.
  uint64_t fetched_bytes = 0;

  // From the end of the warm-up to the last answer.
  double elapsed_seconds = 0;
  // CPU time of this process in that time, checking of answers included.
  double own_cpu_seconds = 0;

  // Of right answers, decoding included, comparing not. From when a request was
  // due (open loop) or made (closed loop) to the last byte of its answer,
  // waiting for a busy server included; of a batch from when its stream began.
  // Also of requests that were given up: not answered when their deadline or
  // the run ended, or due then and never started. What they waited is a lower
  // bound, so percentiles are never too low because the slowest are missing.
  LatencyHistogram latency;
  // How many values of `latency` are lower bounds, and the largest of them.
  uint64_t lower_bound_count = 0;
  uint64_t lower_bound_max_us = 0;
  LoadTimeline timeline;

  uint64_t error_count() const {
    return request_count - right_count - wrong_count;
  }

  // `count` divided by the time; 0 if no time has passed.
  double PerSecond(uint64_t count) const {
    return elapsed_seconds > 0 ? static_cast<double>(count) / elapsed_seconds
                               : 0;
  }

  // Answers came, all of them right. A run without any shows nothing, which
  // must not look like a good one.
  bool is_good() const {
    return request_count > 0 && right_count == request_count &&
           end != LoadEnd::kSilence;
  }

  // The generator was so late that the load was not what was asked for.
  bool could_not_keep_up() const {
    return late_count > request_count / 100 && late_count > 0;
  }
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_
