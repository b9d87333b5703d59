// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "loadtest/report/load_report.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// The load that was asked for in one line: "random ranges of 16,384 bytes,
// uniform, closed loop of 64 in flight, seed 1". Thread-safe.
std::string DescribeLoad(const LoadOptions& options);

// What a reader of the report must know to trust it, in sentences; empty if
// there is nothing: contents not compared, a generator that was too late,
// arrivals that were never started. Thread-safe.
std::vector<std::string> CaveatsOf(const LoadOptions& options,
                                   const LoadReport& report);

// The report of a load run for people, some twenty lines. Thread-safe.
std::string RenderReportText(const LoadOptions& options,
                             const LoadReport& report);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_TEXT_H_
