// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/variable_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Upper bound on the edits of a misspelt name.
constexpr size_t kEditsMax = 3;

// Number of characters to insert, remove, replace, or swap with the next.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

// Returns the known name that `name` resembles most; empty: none.
absl::string_view MostSimilar(absl::string_view prefix, absl::string_view name,
                              const std::vector<std::string>& known) {
  absl::string_view found;
  size_t least = kEditsMax + 1;
  for (const std::string& candidate : known) {
    if (!absl::StartsWith(candidate, prefix)) {
      continue;
    }
    const size_t edits_max =
        std::min(kEditsMax, (candidate.size() - prefix.size()) / 3);
    // A name may have any length.
    if (std::max(name.size(), candidate.size()) -
            std::min(name.size(), candidate.size()) >
        edits_max) {
      continue;
    }
    const size_t edits = EditDistance(name, candidate);
    if (edits <= edits_max && edits < least) {
      least = edits;
      found = candidate;
    }
  }
  return found;
}

// True for `port` such as "7420_TCP" and "7420_TCP_ADDR".
bool IsServicePort(absl::string_view port) {
  const size_t digits = static_cast<size_t>(
      std::find_if_not(port.begin(), port.end(), absl::ascii_isdigit) -
      port.begin());
  port.remove_prefix(digits);
  return digits > 0 &&
         (absl::ConsumePrefix(&port, "_TCP") ||
          absl::ConsumePrefix(&port, "_UDP") ||
          absl::ConsumePrefix(&port, "_SCTP")) &&
         (port.empty() || port == "_PROTO" || port == "_PORT" ||
          port == "_ADDR");
}

// `name` begins with the _ of the prefix.
bool IsOfService(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kPort = "_PORT";
  const size_t service_port = name.find("_SERVICE_PORT");
  if (absl::EndsWith(name, "_SERVICE_HOST") ||
      (service_port != absl::string_view::npos &&
       (absl::EndsWith(name, "_SERVICE_PORT") ||
        absl::StrContains(name, "_SERVICE_PORT_")))) {
    return true;
  }
  if (absl::EndsWith(name, kPort) && absl::StrContains(value, "://")) {
    return true;
  }
  for (size_t at = name.find(kPort); at != absl::string_view::npos;
       at = name.find(kPort, at + 1)) {
    absl::string_view port = name.substr(at + kPort.size());
    if (absl::ConsumePrefix(&port, "_") && IsServicePort(port)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> DescribeUnknownVariables(
    absl::string_view prefix, const std::vector<std::string>& known,
    UnknownVariables reported, const char* const* environment) {
  std::vector<std::string> messages;
  for (; *environment != nullptr; ++environment) {
    const absl::string_view variable = *environment;
    const size_t equals = variable.find('=');
    if (!absl::StartsWith(variable, prefix) ||
        equals == absl::string_view::npos || equals + 1 == variable.size()) {
      continue;
    }
    const absl::string_view name = variable.substr(0, equals);
    if (std::find(known.begin(), known.end(), name) != known.end() ||
        IsOfService(name.substr(prefix.size() - 1),
                    variable.substr(equals + 1))) {
      continue;
    }
    const absl::string_view similar = MostSimilar(prefix, name, known);
    if (!similar.empty() || reported == UnknownVariables::kAll) {
      messages.push_back(absl::StrCat(
          "environment variable ", PrintableText(name.substr(0, 100)),
          " is ignored: no option has this name",
          similar.empty() ? ""
                          : absl::StrCat("; did you mean ", similar, "?")));
    }
  }
  std::sort(messages.begin(), messages.end());
  return messages;
}

}  // namespace quire
