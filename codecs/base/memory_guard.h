// SPDX-License-Identifier: Apache-2.0
//
// Failed allocations as a status. std::bad_alloc ends the process if it leaves
// a thread. gRPC swallows it if it leaves a reaction, and then that call never
// ends.
#ifndef QUIRE_CODECS_BASE_MEMORY_GUARD_H_
#define QUIRE_CODECS_BASE_MEMORY_GUARD_H_

#include <new>
#include <stdexcept>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace quire {

// Returns ResourceExhausted; `what` continues "not enough memory to ". Without
// memory for the message it is empty.
inline absl::Status NoMemoryTo(absl::string_view what) {
  try {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory to ", what));
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

// Returns the result of `work`, a Status or a StatusOr. `what` as for
// NoMemoryTo().
// Errors: ResourceExhausted  an allocation failed, or was too large for any
//                            machine; changes made by `work` until then stay.
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
