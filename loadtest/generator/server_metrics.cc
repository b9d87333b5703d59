// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/server_metrics.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

// Where the name and labels of a sample end; the line's size if they do not.
size_t EndOfSeries(absl::string_view line) {
  bool is_quoted = false;
  bool is_escaped = false;
  bool in_labels = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (is_quoted) {
      is_quoted = is_escaped || c != '"';
      is_escaped = !is_escaped && c == '\\';
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == '{' || c == '}') {
      in_labels = c == '{';
    } else if (c == ' ' && !in_labels) {
      return i;
    }
  }
  return line.size();
}

}  // namespace

ServerCounters ParseCounters(absl::string_view page) {
  // Names of the samples that count.
  std::set<std::string> names;
  ServerCounters counters;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::ConsumePrefix(&line, "# TYPE ")) {
      const std::vector<std::string> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() == 2 && words[1] == "counter") {
        names.insert(words[0]);
      } else if (words.size() == 2 &&
                 (words[1] == "histogram" || words[1] == "summary")) {
        names.insert(absl::StrCat(words[0], "_sum"));
        names.insert(absl::StrCat(words[0], "_count"));
      }
      continue;
    }
    const std::string name(line.substr(0, line.find_first_of("{ ")));
    const size_t end = EndOfSeries(line);
    if (names.count(name) == 0 || end == line.size()) {
      continue;
    }
    // A time may follow the value.
    const absl::string_view rest = line.substr(end + 1);
    double value = 0;
    if (absl::SimpleAtod(rest.substr(0, rest.find(' ')), &value)) {
      counters[std::string(line.substr(0, end))] = value;
    }
  }
  return counters;
}

ServerCounters RiseOf(const ServerCounters& before,
                      const ServerCounters& after) {
  ServerCounters rise = after;
  for (auto& [name, value] : rise) {
    const auto found = before.find(name);
    value -= found == before.end() ? 0 : found->second;
  }
  return rise;
}

}  // namespace quire
