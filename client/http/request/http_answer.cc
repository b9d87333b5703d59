// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/http_answer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// Pieces grow while less than this share of the memory is in use, up to the
// same share of the rest.
constexpr size_t kGrowthShare = 8;

}  // namespace

Answer TextAnswer(int status, absl::string_view message) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Cache-Control", "no-store"}},
          .body = absl::StrCat(message, "\n")};
}

size_t PieceSize(const MemoryBudget& budget, bool is_slow) {
  const size_t limit = budget.limit_bytes() / kGrowthShare;
  const size_t used = std::min(budget.used_bytes(), limit);
  return is_slow ? kPieceSizeBytesMin
                 : std::clamp((limit - used) / kGrowthShare, kPieceSizeBytesMin,
                              kPieceSizeBytesMax);
}

}  // namespace quire
