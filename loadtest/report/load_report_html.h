// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// load_page.html; "@REPORT@" is replaced by a report.
extern const char kLoadPage[];

// Returns a report (load_report_json.h) as a self-contained page. Its script
// draws latency by percentile, as a histogram and over time, and throughput
// over time, and tables of the figures, the server's counters and all options,
// in light or dark mode like the reader's system. Thread-safe.
std::string RenderReportHtml(absl::string_view report_json);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_HTML_H_
