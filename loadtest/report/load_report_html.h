// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// load_page.html; a report goes in where it has "@REPORT@".
extern const char kLoadPage[];

// A report (load_report_json.h) as one page that needs nothing else, from no
// network. The page's own script draws latency by percentile, as a histogram
// and over time, and throughput over time, and makes tables of the figures, the
// server's counters and all options; in light or dark, as the reader's system
// asks. Thread-safe.
std::string RenderReportHtml(absl::string_view report_json);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
