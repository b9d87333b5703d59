// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/drawn_requests.h"

#include <memory>
#include <string>

#include "codecs/base/status_macros.h"
#include "loadtest/requests/arrival_schedule.h"
#include "loadtest/requests/load_targets.h"
#include "loadtest/requests/request_log.h"

namespace quire {
namespace {

LoggedRequest ToLogged(const LoadTarget& target) {
  if (target.id.has_value()) {
    return {.kind = LoggedRequest::Kind::kId, .id = *target.id};
  }
  if (target.ordinal.has_value()) {
    return {.kind = LoggedRequest::Kind::kOrdinal, .ordinal = *target.ordinal};
  }
  return {.offset = target.place->offset,
          .size_bytes = target.place->size_bytes};
}

}  // namespace

absl::Status WriteDrawnRequests(const LoadInputs& inputs,
                                const LoadOptions& options,
                                const LoadReport& report, std::ostream& out) {
  const LoadTargets targets(options, inputs.source, inputs.log,
                            report.archive.size_bytes(),
                            report.archive.document_count());
  const std::unique_ptr<ArrivalSchedule> schedule =
      ArrivalSchedule::Of(options, inputs.log);
  uint64_t due_ns = 0;
  for (uint64_t index = 0; index < report.started_count; ++index) {
    if (schedule != nullptr && index % options.requests_per_call() == 0) {
      due_ns = schedule->NextNs();
    }
    QUIRE_ASSIGN_OR_RETURN(
        const std::string line,
        FormatLoggedRequest(ToLogged(targets.At(index)),
                            schedule == nullptr ? nullptr : &due_ns));
    out << line << '\n';
  }
  out.flush();
  return out ? absl::OkStatus()
             : absl::UnavailableError("the log cannot be written");
}

}  // namespace quire
