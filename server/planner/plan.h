// SPDX-License-Identifier: GPL-3.0-or-later
//
// Forecasts for archives of a collection with several sets of build options:
// their sizes, the rate of random reads of a server and its bottleneck; and a
// recommendation. Each candidate is built by the build's own code, from a small
// collection or from a sample of a large one.
#ifndef QUIRE_SERVER_PLANNER_PLAN_H_
#define QUIRE_SERVER_PLANNER_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/planner/collection_sample.h"
#include "server/planner/drive_plan.h"
#include "server/planner/sample_build.h"

namespace quire {

// One way to build the archive.
struct PlanCandidate {
  // Options of `quired build` that are equivalent to `build`; may be empty.
  std::string arguments;
  BuildOptions build;
};

struct PlanOptions {
  PlannedDrive drive;
  double network_bytes_per_second = 1.25e9;
  uint32_t core_count = 1;
  // Number of machines, each with core_count cores, that build parts.
  uint32_t machine_count = 1;
  // Limit on `quired serve --memory`; 0: none.
  uint64_t memory_bytes = 0;
  // In euro; 0: unknown.
  double price_per_tb = 0;
  // Price of GETs from an object store, in euro; 0: unknown.
  double price_per_million_requests = 0;
  // In euro; 0: no limit.
  double budget = 0;
  uint64_t read_size_bytes = 16 << 10;
  // Decides which of several candidates is recommended.
  AutoObjective objective = AutoObjective::kBalanced;
  // Directory for the archives and their temporary files.
  std::string work_directory = "/tmp";
  // Called with the name of each step; may be empty.
  std::function<void(const std::string&)> on_progress = {};
};

// Forecast of the size of archives of a collection, in bytes.
struct SizeForecast {
  double size_bytes = 0;
  // Interval that contains the size in most cases; never empty.
  double size_bytes_min = 0;
  double size_bytes_max = 0;
};

// A built candidate. All figures are for the collection.
struct PlanCell {
  std::string arguments;
  uint64_t block_size_bytes = 0;
  uint64_t dictionary_size_bytes = 0;
  // All files of the archive.
  SizeForecast size;
  // In euro; unset without PlanOptions::price_per_tb.
  std::optional<double> price;
  double build_seconds = 0;
  // The part of it that chooses the encoding: order, dictionary.
  double preparation_seconds = 0;
  // Minimum memory to serve the archive.
  double memory_bytes = 0;
  // Upper bound on reads of one range per second, from a cold cache, and the
  // part of the server that sets it: "processors", "drive" or "network".
  double reads_per_second = 0;
  std::string bottleneck;
  // No other cell is both smaller and faster.
  bool is_pareto = false;
  // The reason why it cannot be recommended; empty if it can.
  std::string unfit;
};

// A build in parts, on several machines (docs/building.md).
struct PartsForecast {
  uint64_t part_count = 0;
  // Upper bounds: of one part, and of all with the dictionary.
  double part_seconds = 0;
  double seconds = 0;
};

// Returns the fewest equal parts that keep all machines busy and take at most
// an hour each, so that a part that is killed costs little.
PartsForecast ForecastParts(const PlanCell& cell, uint32_t machine_count);

struct Plan {
  uint64_t text_size_bytes = 0;
  uint64_t sample_size_bytes = 0;
  uint64_t document_count = 0;
  // Sentences about uncertain figures.
  std::vector<std::string> notes;
  // Smallest first.
  std::vector<PlanCell> cells;
  // Index of the recommended cell; unset if none is suitable.
  std::optional<size_t> recommended;
};

// Returns the size of an archive of `text_bytes` from archives of both halves
// of a sample and of all of it. Ignores the halves if the sample is the whole
// collection. `dictionary_bytes_max` bounds the dictionary.
SizeForecast ForecastSize(const BuiltSample& all,
                          std::span<const BuiltSample> halves,
                          double text_bytes, double dictionary_bytes_max);

// Errors: those of BuildArchive() and Archive; Cancelled.
absl::StatusOr<Plan> MakePlan(const CollectionSample& sample,
                              std::span<const PlanCandidate> candidates,
                              const PlanOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_PLAN_H_
