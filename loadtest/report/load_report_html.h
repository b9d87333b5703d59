// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// The report of a load run as one page that needs nothing else, from no
// network: figures, plots of latency by percentile, as a histogram and over
// time, and of throughput over time, the server's counters, and all options.
// `server`: its address. In light or dark, as the reader's system asks.
// Thread-safe.
std::string RenderReportHtml(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
