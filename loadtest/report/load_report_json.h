// SPDX-License-Identifier: Apache-2.0
//
// The report of a load run for programs.
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_JSON_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_JSON_H_

#include <string>

#include "absl/strings/string_view.h"

#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// Returns one JSON object. Members are only added while "format" is 3. Each has
// the meaning of the field of LoadReport or LoadOptions, unless stated here.
// Latencies are in milliseconds.
//
//   format                  3
//   options                 archive, mode, what, distribution, zipf_exponent,
//   seed,
//                           range_size_min_bytes, range_size_bytes,
//                           requests, duration_seconds, warmup_requests,
//                           warmup_seconds, rate, arrivals, in_flight, streams,
//                           batch_size, encoding, deadline_seconds; null where
//                           there is no limit, or a closed loop has no rate
//   load                    the options in words
//   caveats                 [warnings about the figures, in words]
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
//   wire_bytes, wire_bytes_per_second      encoded data, of right answers
//   message_bytes           whole messages
//   fetched_bytes           of tables before the run
//   answers                 {encoding: number}; all 0 for identity
//   ended_at                final choice of `auto`; else the requested encoding
//   own_cpu_seconds         CPU time of the generator
//   latency_ms              {mean, p50, p90, p99, p999, p9999, max,
//                           lower_bounds, lower_bound_max}; lower_bounds is the
//                           number of lower bounds
//   latency_histogram       [{up_to_ms, count}], ascending
//   timeline_seconds        length of a part of the timeline
//   timeline                [{second, requests, text_bytes, p50_ms, p99_ms}] of
//                           right answers; `second` is the start of the part
//
// Thread-safe.
std::string RenderReportJson(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server_address);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_JSON_H_
