// SPDX-License-Identifier: Apache-2.0
//
// Memory that the system does not give, as a status. What std::bad_alloc would
// unwind ends the process where it leaves a thread, and is swallowed by gRPC
// where it leaves a reaction, whose call then never ends.
#ifndef QUIRE_CODECS_BASE_MEMORY_GUARD_H_
#define QUIRE_CODECS_BASE_MEMORY_GUARD_H_

#include <new>
#include <stdexcept>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quire {

// ResourceExhausted; `what` goes on from "not enough memory to ". Has no
// message where there is no memory for one either.
inline absl::Status NoMemoryTo(absl::string_view what) {
  try {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory to ", what));
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// What `work` returns, a Status or a StatusOr. `what` as for NoMemoryTo().
// Errors: ResourceExhausted  an allocation failed, or was for more than could
//                            ever be had; what `work` had done by then stays.
template <typename Work>
std::invoke_result_t<Work&> OrNoMemory(absl::string_view what, Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return NoMemoryTo(what);
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MEMORY_GUARD_H_
