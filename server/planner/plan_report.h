// SPDX-License-Identifier: GPL-3.0-or-later
//
// A plan as people and programs read it.
#ifndef QUIRE_SERVER_PLANNER_PLAN_REPORT_H_
#define QUIRE_SERVER_PLANNER_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "server/planner/plan.h"

namespace quire {

// What the user asked for, repeated in every form.
struct PlanRequest {
  std::vector<std::string> inputs;
  PlanOptions options;
};

// A table with the rows that no other beats first, what they mean, and the
// commands for the recommended one. Fit for terminals.
std::string FormatPlan(const PlanRequest& request, const Plan& plan);

// The same as JSON, for programs. "version" is 1; it rises when a field changes
// its meaning or goes, not when one is added. Sizes are bytes, times seconds.
std::string FormatPlanJson(const PlanRequest& request, const Plan& plan);

// The same as a page without references to others, with a plot of size and
// random reads.
std::string FormatPlanHtml(const PlanRequest& request, const Plan& plan);

// The command lines that build and serve the cell.
std::vector<std::string> CommandsFor(const PlanRequest& request,
                                     const PlanCell& cell);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_PLAN_REPORT_H_
