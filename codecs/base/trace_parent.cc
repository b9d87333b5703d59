// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/trace_parent.h"

#include <cstddef>

namespace quire {
namespace {

// VERSION-TRACE-PARENT-FLAGS
constexpr size_t kVersionSize = 2;
constexpr size_t kTraceBegin = 3;
constexpr size_t kTraceSize = 32;
constexpr size_t kParentBegin = 36;
constexpr size_t kParentSize = 16;
constexpr size_t kFlagsBegin = 53;
constexpr size_t kFlagsSize = 2;
constexpr size_t kHeaderSize = 55;

bool IsHex(absl::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

}  // namespace

absl::string_view TraceIdOf(absl::string_view header) {
  if (header.size() < kHeaderSize || header[kTraceBegin - 1] != '-' ||
      header[kParentBegin - 1] != '-' || header[kFlagsBegin - 1] != '-') {
    return {};
  }
  const absl::string_view version = header.substr(0, kVersionSize);
  const absl::string_view trace = header.substr(kTraceBegin, kTraceSize);
  const absl::string_view parent = header.substr(kParentBegin, kParentSize);
  const bool ends_well = header.size() == kHeaderSize ||
                         (version != "00" && header[kHeaderSize] == '-');
  if (!ends_well || version == "ff" || !IsHex(version) || !IsHex(trace) ||
      !IsHex(parent) || !IsHex(header.substr(kFlagsBegin, kFlagsSize)) ||
      IsZero(trace) || IsZero(parent)) {
    return {};
  }
  return trace;
}

absl::string_view ParentIdOf(absl::string_view header) {
  return TraceIdOf(header).empty() ? absl::string_view()
                                   : header.substr(kParentBegin, kParentSize);
}

bool IsTraceParent(absl::string_view header) {
  return header.substr(0, kVersionSize) == "00" && !TraceIdOf(header).empty();
}

}  // namespace quire
