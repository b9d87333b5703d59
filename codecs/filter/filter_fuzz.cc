// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a filter: an accepted one can be evaluated over every
// combination of a few values, and its bounds never exclude a match. And as a
// short rule: an accepted one stands for a filter.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "codecs/filter/filter.h"
#include "codecs/filter/short_rule.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A digest may become four times as long.
  constexpr size_t kRuleSizeBytesMax = quire::kFilterSizeBytesMax / 8;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::string> rule = quire::FilterOfShortRule(text);
  QUIRE_CHECK(!rule.ok() || size > kRuleSizeBytesMax ||
                  quire::Filter::Parse(*rule).ok(),
              "a short rule stands for a filter");
  const absl::StatusOr<quire::Filter> filter = quire::Filter::Parse(text);
  if (!filter.ok()) {
    return 0;
  }
  const quire::FieldView values[] = {
      {},
      absl::string_view("a"),
      absl::string_view("urn:a:http://www.a.test:80/"),
      int64_t{1},
      1.5,
      true,
      quire::FieldTime{0}};
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
