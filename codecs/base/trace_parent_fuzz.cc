// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a traceparent header: an accepted trace id is valid.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"

#include "codecs/base/trace_parent.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view header(reinterpret_cast<const char*>(data), size);
  const absl::string_view trace = quire::TraceIdOf(header);
  if (!trace.empty() &&
      (trace.size() != 32 ||
       trace.find_first_not_of("0123456789abcdef") != trace.npos)) {
    std::abort();
  }
  return 0;
}
