// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/build_choice.h"

namespace quire {
namespace {

// Memory of a server without archives.
constexpr double kServerMemoryBytes = 112.0 * (1 << 20);
// Fraction of the limit that an archive may take.
constexpr double kFreeMemoryShare = 0.9;
// CPU time of a call and of each byte sent, without its blocks.
constexpr double kCallSeconds = 33e-6;
constexpr double kSentByteSeconds = 0.55e-9;
constexpr double kDriveReadSeconds = 12e-6;
// Minimum fraction of a sample that its dictionary may take.
constexpr double kDictionaryShareMin = 1.0 / 64;
// Samples of a smaller fraction of the text are not representative.
constexpr int kScaleMax = 64;
// Growth of the text up to which a sample's pairs of equal text foretell those
// of all text.
constexpr double kPairScaleMax = 6;
// Minimum half width of an interval: of a size that was built, and of a
// forecast.
constexpr double kBuiltError = 0.01;
constexpr double kForecastError = 0.08;
constexpr double kPartSecondsMax = 3600;

class Planner {
 public:
  Planner(const CollectionSample& sample, const PlanOptions& options,
          std::string directory)
      : sample_(sample),
        options_(options),
        directory_(std::move(directory)),
        text_bytes_(static_cast<double>(sample.collection_size_bytes())) {}

  absl::StatusOr<Plan> Make(std::span<const PlanCandidate> candidates) {
    plan_.text_size_bytes = sample_.collection_size_bytes();
    plan_.sample_size_bytes = sample_.size_bytes();
    plan_.document_count = static_cast<uint64_t>(
        static_cast<double>(sample_.document_count()) * text_bytes_ /
        static_cast<double>(sample_.text_size_bytes()));
    if (text_bytes_ / kScaleMax > static_cast<double>(sample_.size_bytes())) {
      plan_.notes.push_back(absl::StrCat(
          "archives were built from ", FormatByteSize(sample_.size_bytes()),
          ", less than a ", kScaleMax,
          "th of the text; give more of the collection, and a larger "
          "--sample-size, for better figures"));
    }
    for (const PlanCandidate& candidate : candidates) {
      QUIRE_RETURN_IF_ERROR(AddCell(candidate));
    }
    std::ranges::sort(plan_.cells, {}, [](const PlanCell& cell) {
      return cell.size.size_bytes;
    });
    Mark();
    Recommend();
    return std::move(plan_);
  }

 private:
  using Part = CollectionSample::Part;

  static std::string NameOf(const PlanCandidate& candidate) {
    return candidate.arguments.empty() ? "the defaults" : candidate.arguments;
  }

  absl::StatusOr<BuiltSample> Build(const PlanCandidate& candidate, Part part) {
    if (options_.on_progress) {
      options_.on_progress(absl::StrCat(
          NameOf(candidate), part == Part::kAll ? "" : ", half of the sample"));
    }
    if (sample_.is_whole()) {
      return BuildSample(sample_.sources(), candidate.build, directory_);
    }
    BuildOptions build = candidate.build;
    build.dictionary_size_bytes =
        DictionarySizeFor(DictionaryLimitOf(build), part);
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(sample_.SourceOf(part));
    return BuildSample(sources, build, directory_);
  }

  static uint64_t DictionaryLimitOf(const BuildOptions& build) {
    return build.dictionary_size_bytes.value_or(
        SettingsOf(build.objective).dictionary_size_bytes_max);
  }

  // A dictionary grows with the text up to its limit. A sample's dictionary is
  // therefore smaller; at full size it would hold most of the sample.
  uint64_t DictionarySizeFor(uint64_t limit_bytes, Part part) const {
    const auto sample_bytes = static_cast<double>(sample_.size_bytes());
    const auto limit = static_cast<double>(limit_bytes);
    const double size =
        std::min(limit, std::max(limit * sample_bytes / text_bytes_,
                                 sample_bytes * kDictionaryShareMin));
    return static_cast<uint64_t>(
        std::max(1.0, part == Part::kAll ? size : size / 2));
  }

  absl::Status AddCell(const PlanCandidate& candidate) {
    std::vector<BuiltSample> halves;
    if (!sample_.is_whole()) {
      for (const Part part : {Part::kFirstHalf, Part::kSecondHalf}) {
        QUIRE_ASSIGN_OR_RETURN(halves.emplace_back(), Build(candidate, part));
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const BuiltSample all, Build(candidate, Part::kAll));
    for (const std::string& omission : all.omissions) {
      plan_.notes.push_back(absl::StrCat(
          "the build with ", NameOf(candidate), " omitted a step (", omission,
          "); set TMPDIR to a directory with more space if it lacks that"));
    }
    QUIRE_ASSIGN_OR_RETURN(const RangeCost ranges,
                           MeasureRanges(directory_, options_.read_size_bytes));
    PlanCell cell;
    cell.arguments = candidate.arguments;
    cell.block_size_bytes = candidate.build.archive.block_size_bytes;
    cell.size =
        ForecastSize(all, halves, text_bytes_,
                     static_cast<double>(DictionaryLimitOf(candidate.build)));
    if (options_.price_per_tb > 0) {
      cell.price = cell.size.size_bytes / 1e12 * options_.price_per_tb;
    }
    const double scale = text_bytes_ / all.text_bytes;
    cell.build_seconds = all.build_seconds * scale;
    cell.preparation_seconds = all.preparation_seconds * scale;
    cell.dictionary_size_bytes = static_cast<uint64_t>(
        std::min(all.dictionary_bytes * scale,
                 static_cast<double>(DictionaryLimitOf(candidate.build))));
    cell.memory_bytes = kServerMemoryBytes +
                        static_cast<double>(cell.dictionary_size_bytes) +
                        all.memory_bytes * scale;
    FindBottleneck(ranges, cell);
    plan_.cells.push_back(std::move(cell));
    return absl::OkStatus();
  }

  void FindBottleneck(const RangeCost& ranges, PlanCell& cell) const {
    const auto read_bytes = static_cast<double>(options_.read_size_bytes);
    const double cpu_seconds = kCallSeconds + ranges.cpu_seconds +
                               ranges.blocks * kDriveReadSeconds +
                               read_bytes * kSentByteSeconds;
    const double drive_reads = RandomReadsPerSecond(
        options_.drive,
        static_cast<uint64_t>(ranges.stored_bytes / ranges.blocks),
        static_cast<uint64_t>(cell.size.size_bytes));
    const std::array limits = {
        std::pair{options_.core_count / cpu_seconds, "processors"},
        std::pair{drive_reads / ranges.blocks, "drive"},
        std::pair{options_.network_bytes_per_second / read_bytes, "network"}};
    std::tie(cell.reads_per_second, cell.bottleneck) =
        *std::ranges::min_element(limits);
  }

  void Mark() {
    double fastest = 0;
    for (PlanCell& cell : plan_.cells) {
      cell.is_pareto = cell.reads_per_second > fastest;
      fastest = std::max(fastest, cell.reads_per_second);
      if (options_.memory_bytes != 0 &&
          cell.memory_bytes >
              static_cast<double>(options_.memory_bytes) * kFreeMemoryShare) {
        cell.unfit = "needs more memory";
      } else if (options_.budget > 0 && cell.price > options_.budget) {
        cell.unfit = "over the budget";
      }
    }
  }

  // Recommends the smallest cell that is fast enough for the objective,
  // relative to the fastest.
  void Recommend() {
    double fastest = 0;
    for (const PlanCell& cell : plan_.cells) {
      if (cell.unfit.empty()) {
        fastest = std::max(fastest, cell.reads_per_second);
      }
    }
    const double enough = options_.objective == AutoObjective::kArchive ? 0
                          : options_.objective == AutoObjective::kSpeed
                              ? 0.9
                              : 2.0 / 3;
    for (size_t i = 0; i < plan_.cells.size(); ++i) {
      const PlanCell& cell = plan_.cells[i];
      if (cell.unfit.empty() && cell.reads_per_second >= enough * fastest) {
        plan_.recommended = i;
        return;
      }
    }
  }

  const CollectionSample& sample_;
  const PlanOptions& options_;
  const std::string directory_;
  const double text_bytes_;
  Plan plan_;
};

}  // namespace

SizeForecast ForecastSize(const BuiltSample& all,
                          std::span<const BuiltSample> halves,
                          double text_bytes, double dictionary_bytes_max) {
  if (halves.size() != 2) {
    const double size = all.stored_bytes + all.dictionary_file_bytes;
    return {.size_bytes = size,
            .size_bytes_min = size * (1 - kBuiltError),
            .size_bytes_max = size * (1 + kBuiltError)};
  }
  const double scale = text_bytes / all.text_bytes;
  const double in_halves = halves[0].stored_bytes + halves[1].stored_bytes;
  // Text that the halves share. If the whole takes more than its halves, their
  // dictionary held much of them, which does not happen with large texts.
  const double shared = in_halves - all.stored_bytes;
  // Text that occurs everywhere is stored once for each sample. If each half
  // takes as much as the whole, the samples do not show what further text adds:
  // proportional is an upper bound.
  const double growth = all.stored_bytes - shared;
  const double by_constant = growth > 0
                                 ? all.stored_bytes + growth * (scale - 1)
                                 : all.stored_bytes * scale;
  // A sample of one in n documents has one in n² pairs of equal documents.
  // Pairs are at most half of the archive: halves that share more share other
  // text.
  const double pair_scale = std::min(scale, kPairScaleMax);
  const double pairs_max = all.stored_bytes / (4 * pair_scale - 2);
  const double pair_weight =
      shared > 0 ? std::clamp(2 - shared / pairs_max, 0.0, 1.0) : 0;
  const double by_pairs = std::lerp(
      by_constant, (all.stored_bytes - 2 * shared * (pair_scale - 1)) * scale,
      pair_weight);
  const double stored = (by_constant + by_pairs) / 2;
  // Half of the difference is the standard error of the mean. A half without
  // text tells nothing.
  const double difference =
      growth > 0 && std::min(halves[0].text_bytes, halves[1].text_bytes) > 0
          ? std::abs(halves[0].stored_bytes / halves[0].text_bytes -
                     halves[1].stored_bytes / halves[1].text_bytes) *
                text_bytes
          : stored;
  const double error = std::max(difference, kForecastError * stored);
  const double dictionary_file =
      all.dictionary_bytes > 0
          ? all.dictionary_file_bytes *
                std::min(scale, dictionary_bytes_max / all.dictionary_bytes)
          : 0;
  return {
      .size_bytes = stored + dictionary_file,
      .size_bytes_min =
          std::max(std::min({by_constant, by_pairs, all.stored_bytes * scale}) -
                       error,
                   0.0) +
          dictionary_file * (1 - kForecastError),
      .size_bytes_max = std::max(by_constant, by_pairs) + error +
                        dictionary_file * (1 + kForecastError)};
}

PartsForecast ForecastParts(const PlanCell& cell, uint32_t machine_count) {
  const double seconds = cell.build_seconds / machine_count;
  const double rounds = std::max(1.0, std::ceil(seconds / kPartSecondsMax));
  return {.part_count = machine_count * static_cast<uint64_t>(rounds),
          .part_seconds = seconds / rounds,
          .seconds = cell.preparation_seconds + seconds};
}

absl::StatusOr<Plan> MakePlan(const CollectionSample& sample,
                              std::span<const PlanCandidate> candidates,
                              const PlanOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const WorkDirectory directory,
                         WorkDirectory::Create(options.work_directory));
  return Planner(sample, options, directory.path()).Make(candidates);
}

}  // namespace quire
