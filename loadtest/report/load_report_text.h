// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// Returns the requested load in one line: "random ranges of 16,384 bytes,
// uniform, closed loop of 64 in flight, seed 1". Thread-safe.
std::string DescribeLoad(const LoadOptions& options);

// Returns warnings about the figures, in sentences: contents not compared, a
// late generator, arrivals that were never started. Empty if there are none.
// Thread-safe.
std::vector<std::string> CaveatsOf(const LoadOptions& options,
                                   const LoadReport& report);

// Returns the report of a load run for people, some twenty lines. Thread-safe.
std::string RenderReportText(const LoadOptions& options,
                             const LoadReport& report);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_
