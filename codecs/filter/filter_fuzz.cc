// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a filter: an accepted one can be evaluated over every
// combination of a few values, and its bounds never exclude a match.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/filter/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<quire::Filter> filter = quire::Filter::Parse(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!filter.ok()) {
    return 0;
  }
  const quire::FieldView values[] = {
      {}, absl::string_view("a"), int64_t{1}, 1.5, true, quire::FieldTime{0}};
  for (const quire::FieldView& value : values) {
    const std::vector<quire::FieldView> row(filter->names().size(), value);
    quire::FieldRange range = {.least = value, .greatest = value};
    range.may_have_values = value.index() != 0;
    range.may_have_nulls = !range.may_have_values;
    const std::vector<quire::FieldRange> ranges(row.size(), range);
    if (filter->Matches(row) && !filter->CouldMatch(ranges)) {
      std::abort();
    }
  }
  filter->Check({}).IgnoreError();
  return 0;
}
