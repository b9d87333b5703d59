// SPDX-License-Identifier: Apache-2.0
//
// The header that names the trace of a call between services.
#ifndef QUIRE_CODECS_BASE_TRACE_PARENT_H_
#define QUIRE_CODECS_BASE_TRACE_PARENT_H_

#include "absl/strings/string_view.h"

namespace quire {

// Returns the trace id, 32 lower-case hex digits, of a `traceparent` header
// (W3C Trace Context, section 3.2); empty if it is malformed, which counts as
// absent. In versions after 00 only the fields of 00 are read. The result
// points into `header`. Thread-safe.
absl::string_view TraceIdOf(absl::string_view header);

// Returns the id of the calling span, 16 lower-case hex digits, likewise.
// Thread-safe.
absl::string_view ParentIdOf(absl::string_view header);

// True if `header` has version 00 and may be forwarded unchanged.
// Thread-safe.
bool IsTraceParent(absl::string_view header);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_TRACE_PARENT_H_
