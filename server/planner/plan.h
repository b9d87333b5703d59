// SPDX-License-Identifier: GPL-3.0-or-later
//
// What archives of a collection would be like: how large, how long to build,
// how fast to read, for codecs, block sizes and dictionaries; and which of them
// to take. Sizes and speeds of codecs are measured on a sample, on this
// machine, with all cores busy; drives and network are models. After sections
// 2.1 and 2.2 of "Data Compression for Climate Data" (Kuhn, Kunkel, Ludwig).
#ifndef QUIRE_SERVER_PLANNER_PLAN_H_
#define QUIRE_SERVER_PLANNER_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/choose/compression_cost.h"
#include "server/planner/auto_trial.h"
#include "server/planner/collection_sample.h"
#include "server/planner/drive_plan.h"
#include "server/planner/server_model.h"

namespace quire {

enum class PlanObjective { kArchive, kBalanced, kSpeed };

struct PlanOptions {
  // Of the collection that the inputs stand for; 0: they are it.
  uint64_t text_size_bytes = 0;
  PlannedDrive drive;
  double network_bytes_per_second = 1.25e9;
  // Of the server and of the build.
  uint32_t core_count = 1;
  // What `quired serve --memory` may have; 0: no bound.
  uint64_t memory_bytes = 0;
  double price_per_tb = 0;
  // 0: no bound.
  double budget = 0;
  uint64_t read_size_bytes = 16 << 10;
  uint32_t in_flight = 64;
  PlanObjective objective = PlanObjective::kBalanced;
  // CPU time for each trial, of which there are some thirty.
  double trial_seconds = 0.8;
  // Told what is being tried; may be empty.
  std::function<void(const std::string&)> on_progress = {};
};

// One way to build the archive.
struct PlanCell {
  std::string codec;
  uint32_t block_size_bytes = 0;
  // 0: the codec uses none.
  uint64_t dictionary_size_bytes = 0;
  // On one core, of the blocks alone.
  CodecFigures figures;
  // All files of the archive; the range is of two standard errors, never of
  // less than 2 % of the blocks, and, where the inputs stand for more, of the
  // extrapolation.
  double size_bytes = 0;
  double size_bytes_min = 0;
  double size_bytes_max = 0;
  // In euro; unset without PlanOptions::price_per_tb.
  std::optional<double> price;
  double build_seconds = 0;
  // Least memory that serves it: dictionary, indexes, and what every server
  // takes.
  double memory_bytes = 0;
  // Single calls, `in_flight` at a time; one large batch.
  Throughput random;
  Throughput batch;
  // Of text, in identity and in stored blocks.
  double full_bytes_per_second = 0;
  double full_stored_bytes_per_second = 0;
  // No other cell is both smaller and faster at random reads.
  bool is_pareto = false;
  // Why it cannot be recommended; empty if it can.
  std::string unfit;
};

// What an answer is on the wire in each encoding, for the recommended cell.
struct PlanEncoding {
  std::string name;
  double answer_bytes = 0;
  // What the network lets through.
  double answers_per_second = 0;
};

struct PlanThreshold {
  uint32_t core_count = 0;
  double bytes_per_second = 0;
  double pipelined_bytes_per_second = 0;
};

struct Plan {
  uint64_t text_size_bytes = 0;
  uint64_t sample_size_bytes = 0;
  uint64_t document_count = 0;
  // Sentences on figures that the plan does not give.
  std::vector<std::string> notes;
  // Smallest first.
  std::vector<PlanCell> cells;
  // Index of the recommended one; unset if none is fit.
  std::optional<size_t> recommended;
  std::vector<PlanEncoding> encodings;
  // What codec auto is to choose by.
  PlannedSpeeds codec_speeds;
  // Of the recommended codec: below which throughput of a link it pays.
  std::vector<PlanThreshold> thresholds;
  // Drives for the text as it is, and for the recommended archive: as few as
  // hold it (S1), and as many as before with less on each (S2). Zero units
  // where the drive has no bound.
  StoragePurchase plain_drives;
  StoragePurchase fewest_drives;
  StoragePurchase as_many_drives;
};

// Gives the text that was sampled to the sink, as ReadText() does.
using TextFeed = std::function<absl::Status(const TextSink&)>;

// A dictionary gets no cells if the inputs stand for a larger collection and
// have less than four times its size: it would be chosen from the text that it
// is tried on. Plan::notes names it. Reads the text twice more, to choose
// dictionaries.
// Errors: those of the codecs and of `feed`; FailedPrecondition if the text has
//         changed.
absl::StatusOr<Plan> MakePlan(const CollectionSample& sample,
                              const TextFeed& feed, const PlanOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_PLAN_H_
