// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/number_range.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// `parse` is absl's function for Number; it returns false for other text.
template <typename Number, typename Parse>
CLI::Validator InRange(Number min, Number max, Parse parse) {
  return CLI::Validator(
      [min, max, parse](std::string& text) {
        Number number{};
        return parse(text, &number) && number >= min && number <= max
                   ? std::string()
                   : absl::StrCat("must be ", min, " to ", max, ", got ",
                                  QuotedText(text));
      },
      // Not in the help: the name of the type suffices.
      "");
}

}  // namespace

CLI::Validator CountInRange(uint64_t min, uint64_t max) {
  return InRange(min, max, [](const std::string& text, uint64_t* count) {
    return absl::SimpleAtoi(text, count);
  });
}

CLI::Validator NumberInRange(double min, double max) {
  return InRange(min, max, [](const std::string& text, double* number) {
    return absl::SimpleAtod(text, number);
  });
}

}  // namespace quire
