// SPDX-License-Identifier: Apache-2.0
//
// Effort of tests by level: deploy/test.sh sets these environment variables for
// `nightly`.
#ifndef QUIRE_TESTING_BASE_TEST_LEVEL_H_
#define QUIRE_TESTING_BASE_TEST_LEVEL_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/string_view.h"

#include "testing/base/sanitized.h"

namespace quire {

// True if QUIRE_TEST_LEVEL is `nightly`.
inline bool IsNightly() {
  const char* const level = std::getenv("QUIRE_TEST_LEVEL");
  return level != nullptr && absl::string_view(level) == "nightly";
}

// Returns the number of rounds of a test: fewer in the default level.
inline int TestRounds(int by_default, int nightly) {
  return IsNightly() ? nightly : by_default;
}

// Returns each `step`th of the parameters of a suite under sanitizers in the
// default level, else all. For suites that also run without sanitizers, or that
// try one mechanism with many values.
template <typename T>
std::vector<T> SomeOf(const std::vector<T>& all, size_t step) {
  if (!kIsSanitized || IsNightly()) {
    return all;
  }
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); i += step) {
    some.push_back(all[i]);
  }
  return some;
}

// Returns QUIRE_TEST_SEED, a decimal number, or a constant if it is unset: the
// default level always runs the same trials, and each nightly run others.
inline uint32_t TestSeed() {
  constexpr uint32_t kDefault = 20261128;
  const char* const text = std::getenv("QUIRE_TEST_SEED");
  return text == nullptr
             ? kDefault
             : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_TEST_LEVEL_H_
