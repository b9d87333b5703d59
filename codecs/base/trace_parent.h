// SPDX-License-Identifier: Apache-2.0
//
// The header by which services tell each other which trace a call belongs to.
#ifndef QUIRE_CODECS_BASE_TRACE_PARENT_H_
#define QUIRE_CODECS_BASE_TRACE_PARENT_H_

#include "absl/strings/string_view.h"

namespace quire {

// The trace id, 32 lower-case hex digits, in the value of a `traceparent`
// header (W3C Trace Context, section 3.2); empty if it is none: a header that
// is malformed is as good as absent. Of versions after 00 only the fields that
// 00 has are looked at. The result points into `header`. Thread-safe.
absl::string_view TraceIdOf(absl::string_view header);

// Whether `header` is one of version 00, which is what may be sent on as it is.
// Thread-safe.
bool IsTraceParent(absl::string_view header);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_TRACE_PARENT_H_
