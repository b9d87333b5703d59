// SPDX-License-Identifier: Apache-2.0
//
// Finds misspelt environment variables of a program.
#ifndef QUIRE_CODECS_BASE_VARIABLE_NAMES_H_
#define QUIRE_CODECS_BASE_VARIABLE_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace quire {

enum class UnknownVariables {
  // All with the prefix.
  kAll,
  // Those whose names resemble a known one, for a prefix that other programs
  // use, too.
  kSimilar,
};

// Returns a message for each variable of `environment`, which is like environ,
// whose name begins with `prefix` and is not in `known`. Leaves out empty
// variables, and those that Kubernetes sets for services, such as
// QUIRED_SERVICE_HOST and QUIRED_PORT_7420_TCP.
std::vector<std::string> DescribeUnknownVariables(
    absl::string_view prefix, const std::vector<std::string>& known,
    UnknownVariables reported, const char* const* environment);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_VARIABLE_NAMES_H_
