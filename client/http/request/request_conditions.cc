// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_conditions.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

// Removes spaces and tabs at both ends, as OWS of RFC 9110.
absl::string_view StripSpace(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

// Nothing if `text` is not one or more digits.
std::optional<uint64_t> ParseNumber(absl::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c));
      })) {
    return std::nullopt;
  }
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number
                                         : std::numeric_limits<uint64_t>::max();
}

// One element of the header; kNone if malformed.
RangeHeader ParseElement(absl::string_view text) {
  const size_t dash = text.find('-');
  if (dash == absl::string_view::npos) {
    return {};
  }
  const absl::string_view after = text.substr(dash + 1);
  const std::optional<uint64_t> last = ParseNumber(after);
  if (dash == 0) {
    return last.has_value() ? RangeHeader{.kind = RangeHeader::Kind::kSuffix,
                                          .suffix_size_bytes = *last}
                            : RangeHeader{};
  }
  const std::optional<uint64_t> first = ParseNumber(text.substr(0, dash));
  if (!first.has_value() || (!after.empty() && !last.has_value()) ||
      (last.has_value() && *last < *first)) {
    return {};
  }
  return {.kind = RangeHeader::Kind::kSpan, .first = *first, .last = last};
}

struct EntityTag {
  bool is_weak = false;
  // With its quotes.
  absl::string_view opaque;
};

// Removes an entity tag from the start of `rest`; nullopt if there is none.
std::optional<EntityTag> TakeEntityTag(absl::string_view& rest) {
  EntityTag tag;
  tag.is_weak = absl::ConsumePrefix(&rest, "W/");
  const size_t end = rest.empty() || rest.front() != '"'
                         ? absl::string_view::npos
                         : rest.find('"', 1);
  if (end == absl::string_view::npos) {
    return std::nullopt;
  }
  tag.opaque = rest.substr(0, end + 1);
  rest.remove_prefix(end + 1);
  return tag;
}

bool Matches(absl::string_view list, absl::string_view etag,
             bool accepts_weak) {
  list = StripSpace(list);
  if (list == "*") {
    return true;
  }
  while (!list.empty()) {
    if (list.front() == ',') {
      list = StripSpace(list.substr(1));
      continue;
    }
    const std::optional<EntityTag> tag = TakeEntityTag(list);
    if (!tag.has_value()) {
      return false;
    }
    if (tag->opaque == etag && (accepts_weak || !tag->is_weak)) {
      return true;
    }
    list = StripSpace(list);
    if (!list.empty() && list.front() != ',') {
      return false;
    }
  }
  return false;
}

}  // namespace

RangeHeader ParseRangeHeader(absl::string_view value) {
  value = StripSpace(value);
  static constexpr absl::string_view kUnit = "bytes=";
  if (!absl::StartsWithIgnoreCase(value, kUnit)) {
    return {};
  }
  RangeHeader found;
  for (const absl::string_view element :
       absl::StrSplit(value.substr(kUnit.size()), ',')) {
    // Lists may have empty elements.
    const absl::string_view text = StripSpace(element);
    if (text.empty()) {
      continue;
    }
    const RangeHeader range = ParseElement(text);
    if (range.kind == RangeHeader::Kind::kNone) {
      return {};
    }
    found = found.kind == RangeHeader::Kind::kNone
                ? range
                : RangeHeader{.kind = RangeHeader::Kind::kSeveral};
  }
  return found;
}

SelectedPart SelectPart(const RangeHeader& range, uint64_t size_bytes,
                        bool refuses_several) {
  const SelectedPart whole{.size_bytes = size_bytes};
  const SelectedPart nothing{.kind = SelectedPart::Kind::kUnsatisfiable};
  switch (range.kind) {
    case RangeHeader::Kind::kNone:
      return whole;
    case RangeHeader::Kind::kSeveral:
      return refuses_several ? nothing : whole;
    case RangeHeader::Kind::kSuffix: {
      if (range.suffix_size_bytes == 0) {
        return nothing;
      }
      // Content-Range cannot name a part of nothing.
      if (size_bytes == 0) {
        return whole;
      }
      const uint64_t size = std::min(range.suffix_size_bytes, size_bytes);
      return {.kind = SelectedPart::Kind::kPart,
              .offset = size_bytes - size,
              .size_bytes = size};
    }
    case RangeHeader::Kind::kSpan: {
      if (range.first >= size_bytes) {
        return nothing;
      }
      const uint64_t last =
          std::min(range.last.value_or(size_bytes - 1), size_bytes - 1);
      return {.kind = SelectedPart::Kind::kPart,
              .offset = range.first,
              .size_bytes = last - range.first + 1};
    }
  }
  return whole;
}

ConditionResult EvaluateConditions(const RequestConditions& conditions,
                                   absl::string_view etag) {
  if (conditions.if_match.has_value() &&
      !Matches(*conditions.if_match, etag, /*accepts_weak=*/false)) {
    return ConditionResult::kPreconditionFailed;
  }
  if (conditions.if_none_match.has_value() &&
      Matches(*conditions.if_none_match, etag, /*accepts_weak=*/true)) {
    return ConditionResult::kNotModified;
  }
  return ConditionResult::kProceed;
}

bool RangeApplies(const RequestConditions& conditions, absl::string_view etag) {
  return !conditions.if_range.has_value() ||
         StripSpace(*conditions.if_range) == etag;
}

}  // namespace quire
