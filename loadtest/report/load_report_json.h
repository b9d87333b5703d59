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

// One JSON object. Members are only ever added as long as "format" is 3; the
// meaning of each is that of the field of LoadReport or LoadOptions where no
// other is given here. Times of latency are in milliseconds.
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
//   caveats                 [what makes the figures doubtful, in words]
//   address                 the server's
//   server                  uuid, codec, block_size_bytes, size_bytes,
//                           stored_size_bytes, documents: the archive's
//   compared                whether answers were compared with the source
//   ended_by                "requests", "duration", "interrupt" or "silence"
//   requests, right, wrong  of the run, warm-up not included
//   errors                  how many; requests = right + wrong + errors
//   errors_by_code          {"CODE REASON": how many}
//   faults                  the first few in words
//   retries, held, late, unstarted, unanswered, warmup_requests
//   keeps_up                false: the generator was too late for the load that
//                           was asked for, and the figures are its own
//   seconds                 of the run
//   requests_per_second     all of them, errors too
//   text_bytes, text_bytes_per_second      decoded, of right answers
//   wire_bytes, wire_bytes_per_second      data as it came, of right answers
//   message_bytes           messages whole
//   fetched_bytes           of tables before the run
//   answers                 {encoding: how many}; all 0 for identity
//   ended_at                what `auto` found best; else what was asked for
//   own_cpu_seconds         CPU time of the generator
//   latency_ms              {mean, p50, p90, p99, p999, p9999, max,
//                           lower_bounds, lower_bound_max}; lower_bounds says
//                           how many values are not more than that
//   latency_histogram       [{up_to_ms, count}], ascending
//   timeline_seconds        how long a part of the timeline is
//   timeline                [{second, requests, text_bytes, p50_ms, p99_ms}] of
//                           right answers; `second` is where the part begins
//
// Thread-safe.
std::string RenderReportJson(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server_address);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_JSON_H_
