// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_options.h"

namespace quire {

absl::string_view NameOf(LoadMode mode) {
  switch (mode) {
    case LoadMode::kRandom:
      return "random";
    case LoadMode::kBatch:
      return "batch";
    case LoadMode::kFull:
      return "full";
  }
  return "";
}

absl::string_view NameOf(LoadKind kind) {
  return kind == LoadKind::kRanges ? "ranges" : "documents";
}

absl::string_view NameOf(LoadDistribution distribution) {
  return distribution == LoadDistribution::kUniform ? "uniform" : "zipf";
}

absl::string_view NameOf(LoadArrivals arrivals) {
  return arrivals == LoadArrivals::kPoisson ? "poisson" : "constant";
}

}  // namespace quire
