// SPDX-License-Identifier: Apache-2.0
#include "client/quire/capture_list.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

struct Capture {
  int64_t time_ms = 0;
  uint64_t ordinal = 0;
};

// True if a read at the time `at_ms` prefers `a`: the newest up to then, then
// the oldest after it; of equal times the last in the archive.
bool IsPreferred(const Capture& a, const Capture& b, int64_t at_ms) {
  const auto rank = [&](const Capture& capture) {
    const bool is_later = capture.time_ms > at_ms;
    // Bitwise: the negation of the least number is none.
    return std::tuple(is_later, is_later ? capture.time_ms : ~capture.time_ms,
                      ~capture.ordinal);
  };
  return rank(a) < rank(b);
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ListCaptures(Client& client,
                                                   absl::string_view archive,
                                                   const DocumentKey& key,
                                                   const ReadOptions& options) {
  const std::string& id = std::get<std::string>(key.name);
  std::vector<std::string> types = key.record_types;
  if (types.empty()) {
    types = {"response", "revisit"};
  }
  const auto is_preferred = [at_ms = key.at_time_ms.value_or(INT64_MAX)](
                                const Capture& a, const Capture& b) {
    return IsPreferred(a, b, at_ms);
  };
  // A heap, whose first is the least preferred.
  std::vector<Capture> best;
  DocumentLister lister = client.ListDocuments(
      archive, {.prefix = id, .archive_uuid = options.archive_uuid});
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Document> document,
                           lister.Next());
    // The id itself precedes all that start with it.
    if (!document.has_value() || document->id() != id) {
      break;
    }
    if (std::find(types.begin(), types.end(), document->record_type()) ==
        types.end()) {
      continue;
    }
    best.push_back({.time_ms = document->has_capture_time_ms()
                                   ? document->capture_time_ms()
                                   : INT64_MIN,
                    .ordinal = document->ordinal()});
    std::push_heap(best.begin(), best.end(), is_preferred);
    if (best.size() > kCapturesMax) {
      std::pop_heap(best.begin(), best.end(), is_preferred);
      best.pop_back();
    }
  }
  std::sort_heap(best.begin(), best.end(), is_preferred);
  std::vector<uint64_t> ordinals;
  ordinals.reserve(best.size());
  for (const Capture& capture : best) {
    ordinals.push_back(capture.ordinal);
  }
  return ordinals;
}

}  // namespace quire
