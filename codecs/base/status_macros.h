// SPDX-License-Identifier: Apache-2.0
//
// Early return on a failed absl::Status. Debian's abseil has no such macros.
#ifndef QUIRE_CODECS_BASE_STATUS_MACROS_H_
#define QUIRE_CODECS_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expression`, an absl::Status, is not
// OK.
#define QUIRE_RETURN_IF_ERROR(expression)     \
  do {                                        \
    absl::Status quire_status = (expression); \
    if (!quire_status.ok()) {                 \
      return quire_status;                    \
    }                                         \
  } while (false)

// Evaluates `expression`, an absl::StatusOr<T>; on failure returns its status
// from the enclosing function, otherwise assigns the value to `target`, which
// may be a declaration.
#define QUIRE_ASSIGN_OR_RETURN(target, expression) \
  QUIRE_ASSIGN_OR_RETURN_IMPL_(                    \
      QUIRE_STATUS_CONCAT_(quire_status_or_, __LINE__), target, expression)

#define QUIRE_ASSIGN_OR_RETURN_IMPL_(status_or, target, expression) \
  auto status_or = (expression);                                    \
  if (!status_or.ok()) {                                            \
    return std::move(status_or).status();                           \
  }                                                                 \
  target = std::move(status_or).value()

#define QUIRE_STATUS_CONCAT_INNER_(a, b) a##b
#define QUIRE_STATUS_CONCAT_(a, b) QUIRE_STATUS_CONCAT_INNER_(a, b)

#endif  // QUIRE_CODECS_BASE_STATUS_MACROS_H_
