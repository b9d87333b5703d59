// SPDX-License-Identifier: GPL-3.0-or-later
//
// Formats a plan for people and programs.
#ifndef QUIRE_SERVER_PLANNER_PLAN_REPORT_H_
#define QUIRE_SERVER_PLANNER_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "server/planner/plan.h"

namespace quire {

// The user's request, repeated in every format.
struct PlanRequest {
  std::vector<std::string> inputs;
  PlanOptions options;
  // Options of `quired build` that decide how it reads the inputs.
  std::vector<std::string> input_options = {};
};

// Returns a table with the Pareto-optimal rows first, their meaning, and the
// commands for the recommended one. Suitable for terminals.
std::string FormatPlan(const PlanRequest& request, const Plan& plan);

// Returns the plan as JSON, for programs. "version" is 1; it rises when a field
// changes its meaning or is removed, but not when one is added. Sizes are in
// bytes, times in seconds.
std::string FormatPlanJson(const PlanRequest& request, const Plan& plan);

// Returns the plan as a self-contained HTML page, with a plot of size and
// random reads.
std::string FormatPlanHtml(const PlanRequest& request, const Plan& plan);

// Returns the command lines that build and serve the cell.
std::vector<std::string> CommandsFor(const PlanRequest& request,
                                     const PlanCell& cell);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_PLAN_REPORT_H_
