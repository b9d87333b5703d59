// SPDX-License-Identifier: Apache-2.0
//
// For conditions that only a mistake in this program can violate. Errors of a
// disk, a network, a configuration or a user are an absl::Status instead.
#ifndef QUIRE_CODECS_BASE_CHECK_H_
#define QUIRE_CODECS_BASE_CHECK_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace quire::internal {

// Writes "FILE:LINE: check failed: CONDITION: DETAIL" to standard error and
// aborts. Thread-safe.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const char* detail);

// Joins the parts of a detail when it is needed.
template <typename... Parts>
std::string CheckDetail(const Parts&... parts) {
  return absl::StrCat(parts...);
}

}  // namespace quire::internal

// Aborts if `condition` is false, in all builds, and prints location and
// condition. The other arguments describe the violation and are joined as by
// absl::StrCat():
//   QUIRE_CHECK(entry != nullptr, "the ring has no entry for slot ", index);
// They are evaluated only if the condition is false.
#define QUIRE_CHECK(condition, ...)          \
  (static_cast<bool>(condition)              \
       ? static_cast<void>(0)                \
       : ::quire::internal::CheckFailed(     \
             __FILE__, __LINE__, #condition, \
             ::quire::internal::CheckDetail(__VA_ARGS__).c_str()))

// The same in builds without NDEBUG; otherwise the condition is compiled but
// not evaluated. For inner loops, where the check would show in a profile.
#ifdef NDEBUG
#define QUIRE_DCHECK(condition, ...) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define QUIRE_DCHECK(...) QUIRE_CHECK(__VA_ARGS__)
#endif

#endif  // QUIRE_CODECS_BASE_CHECK_H_
