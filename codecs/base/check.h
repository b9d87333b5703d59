// SPDX-License-Identifier: Apache-2.0
//
// For what only a mistake in this program can make false. Anything from a disk,
// a network, a configuration or a user is an absl::Status instead.
#ifndef QUIRE_CODECS_BASE_CHECK_H_
#define QUIRE_CODECS_BASE_CHECK_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace quire::internal {

// Writes "FILE:LINE: check failed: CONDITION: DETAIL" to standard error and
// aborts. Thread-safe.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const char* detail);

// The parts of a detail, put together only if it is needed.
template <typename... Parts>
std::string CheckDetail(const Parts&... parts) {
  return absl::StrCat(parts...);
}

}  // namespace quire::internal

// Ends the process if `condition` is false, in all builds, and says where and
// what was violated. What follows the condition says it in words and is put
// together as by absl::StrCat():
//   QUIRE_CHECK(entry != nullptr, "the ring has no entry for slot ", index);
// The rest is not evaluated where the condition holds.
#define QUIRE_CHECK(condition, ...)          \
  (static_cast<bool>(condition)              \
       ? static_cast<void>(0)                \
       : ::quire::internal::CheckFailed(     \
             __FILE__, __LINE__, #condition, \
             ::quire::internal::CheckDetail(__VA_ARGS__).c_str()))

// The same in builds without NDEBUG; else the condition is compiled but not
// evaluated. For inner loops, where the check would show in a profile.
#ifdef NDEBUG
#define QUIRE_DCHECK(condition, ...) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define QUIRE_DCHECK(...) QUIRE_CHECK(__VA_ARGS__)
#endif

#endif  // QUIRE_CODECS_BASE_CHECK_H_
