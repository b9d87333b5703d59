// SPDX-License-Identifier: Apache-2.0
//
// Results of a load run.
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/wire_encoding.h"
#include "loadtest/report/latency_histogram.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// Reason why a run ended. kSilence: the server sent nothing on any call for the
// limit of one call (LoadOptions::deadline).
enum class LoadEnd { kRequests, kDuration, kInterrupt, kSilence };

struct LoadReport {
  // The server's description before the run.
  v1::ArchiveDescription archive;
  // True if answers were compared with a source; otherwise only checksums,
  // ranges and descriptions were checked.
  bool is_compared = false;
  LoadEnd end = LoadEnd::kRequests;

  // Requests answered after the warm-up: right_count of them correctly,
  // wrong_count with other bytes or a wrong checksum or description, the rest
  // with an error.
  uint64_t request_count = 0;
  uint64_t right_count = 0;
  uint64_t wrong_count = 0;
  // Not in any other figure of answers.
  uint64_t warmup_count = 0;
  // Requests [0, started_count) were made, including the warm-up.
  uint64_t started_count = 0;
  // Retries because the server was busy and named a delay; not counted above.
  uint64_t retry_count = 0;
  // By gRPC code and reason, such as "NOT_FOUND DOCUMENT_NOT_FOUND".
  std::map<std::string, uint64_t> errors;
  // The first few faults in words.
  std::vector<std::string> faults;

  // For an open loop, including the warm-up: arrivals that waited for one of
  // the outstanding calls. Their latency counts from their due time.
  uint64_t held_count = 0;
  // Arrivals that this program itself started more than a millisecond late.
  uint64_t late_count = 0;
  // Arrivals due at the end of the run that were never started.
  uint64_t unstarted_count = 0;
  // Requests whose calls were cancelled at the end of the run; never answered.
  uint64_t unanswered_count = 0;

  // Decoded bytes of right answers.
  uint64_t text_bytes = 0;
  // Bytes of right answers: encoded data, and whole messages, without HTTP/2's
  // overhead.
  uint64_t wire_bytes = 0;
  uint64_t message_bytes = 0;

  // From the end of the warm-up to the last answer.
  double elapsed_seconds = 0;
  // CPU time of this process in that time, including checks of answers.
  double own_cpu_seconds = 0;

  // Latency of right answers, including decoding, without comparing. From a
  // request's due time (open loop) or start (closed loop) to the last byte of
  // its answer, including waits for a busy server; of a batch from the start of
  // its stream. Also counts abandoned requests: unanswered at their deadline or
  // at the end of the run, or due then and never started. Their waits are lower
  // bounds, so percentiles are never too low for lack of the slowest.
  LatencyHistogram latency;
  // Number of lower bounds in `latency`, and the largest of them.
  uint64_t lower_bound_count = 0;
  uint64_t lower_bound_max_us = 0;

  uint64_t error_count() const {
    return request_count - right_count - wrong_count;
  }

  // Returns `count` divided by the time; 0 if no time has passed.
  double PerSecond(uint64_t count) const {
    return elapsed_seconds > 0 ? static_cast<double>(count) / elapsed_seconds
                               : 0;
  }

  // True if there were answers, all of them right. A run without answers proves
  // nothing, and must not count as good.
  bool is_good() const {
    return request_count > 0 && right_count == request_count &&
           end != LoadEnd::kSilence;
  }

  // The generator was so late that the load was not the requested one.
  bool could_not_keep_up() const {
    return late_count > request_count / 100 && late_count > 0;
  }
};

// Returns one JSON object. Members are only added while "format" is 4. Each has
// the meaning of the field of LoadReport or LoadOptions, unless stated here.
// Latencies are in milliseconds.
//
//   format                  4
//   options                 archive, mode, what, seed, range_size_bytes,
//                           requests, duration_seconds, warmup_seconds, rate,
//                           in_flight, batch_size, encoding, deadline_seconds;
//                           null where there is no limit, or a closed loop has
//                           no rate
//   address                 of the server
//   server                  uuid, codec, block_size_bytes, size_bytes,
//                           stored_size_bytes, documents: of the archive
//   compared                true if answers were compared with the source
//   ended_by                "requests", "duration", "interrupt" or "silence"
//   requests, right, wrong  of the run, without the warm-up
//   errors                  their number; requests = right + wrong + errors
//   errors_by_code          {"CODE REASON": number}
//   faults                  the first few in words
//   retries, held, late, unstarted, unanswered, warmup_requests
//   keeps_up                false: the generator was too late for the requested
//                           load, and the figures show its own limits
//   seconds                 of the run
//   requests_per_second     all of them, including errors
//   text_bytes, text_bytes_per_second      decoded, of right answers
//   wire_bytes, message_bytes              of right answers
//   own_cpu_seconds         CPU time of the generator
//   latency_ms              {mean, p50, p90, p99, p999, p9999, max,
//                           lower_bounds, lower_bound_max}; lower_bounds is the
//                           number of lower bounds
//
// Thread-safe.
std::string RenderReportJson(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server_address);

// Returns the report in a few lines for people: counts, rates, latencies, and
// what makes them doubtful. Thread-safe.
std::string RenderReportText(const LoadOptions& options,
                             const LoadReport& report);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_H_
