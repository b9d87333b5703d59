// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_html.h"

#include "absl/strings/str_replace.h"

namespace quire {

std::string RenderReportHtml(absl::string_view report_json) {
  // JSON has this character only in strings. Without it no text of a report can
  // end the element that contains it.
  const std::string json = absl::StrReplaceAll(report_json, {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kLoadPage, {{"@REPORT@", json}});
}

}  // namespace quire
