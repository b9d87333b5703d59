// SPDX-License-Identifier: Apache-2.0
//
// Ranges and conditions of a request by RFC 9110, sections 13 and 14.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_REQUEST_CONDITIONS_H_
#define QUIRE_CLIENT_HTTP_REQUEST_REQUEST_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// A Range header. Numbers over 2^64 - 1 count as this.
struct RangeHeader {
  enum class Kind {
    kNone,     // absent, malformed or in another unit: as if absent
    kSpan,     // first-, or first-last
    kSuffix,   // -suffix_size_bytes
    kSeveral,  // several well-formed ranges
  };

  Kind kind = Kind::kNone;
  uint64_t first = 0;
  // Offset of the last byte; unset: to the end. At least `first`.
  std::optional<uint64_t> last = {};
  uint64_t suffix_size_bytes = 0;
};

// Parses the value of a Range header. Thread-safe.
RangeHeader ParseRangeHeader(absl::string_view value);

// Part of a representation that a request selects.
struct SelectedPart {
  enum class Kind {
    kWhole,          // 200
    kPart,           // 206; size_bytes is at least 1
    kUnsatisfiable,  // 416
  };

  Kind kind = Kind::kWhole;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;

  bool operator==(const SelectedPart&) const = default;
};

// Applies a range to a representation of `size_bytes`. Several ranges select
// all of it, or nothing (416) if `refuses_several`. Thread-safe.
SelectedPart SelectPart(const RangeHeader& range, uint64_t size_bytes,
                        bool refuses_several);

// Conditions of a request: the values of its headers.
struct RequestConditions {
  std::optional<std::string> if_match = {};
  std::optional<std::string> if_none_match = {};
  std::optional<std::string> if_range = {};

  bool empty() const {
    return !if_match.has_value() && !if_none_match.has_value() &&
           !if_range.has_value();
  }
};

enum class ConditionResult {
  kProceed,
  kNotModified,         // 304
  kPreconditionFailed,  // 412
};

// Evaluates If-Match and If-None-Match for a representation with the strong
// entity tag `etag`, quotes included. A malformed list matches nothing after
// its first error. Thread-safe.
ConditionResult EvaluateConditions(const RequestConditions& conditions,
                                   absl::string_view etag);

// True if the request's Range applies: If-Range is absent or is `etag`. Dates
// never match, since representations have no Last-Modified. Thread-safe.
bool RangeApplies(const RequestConditions& conditions, absl::string_view etag);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_REQUEST_CONDITIONS_H_
