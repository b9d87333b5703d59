// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/choose/wire_cost.h"
#include "codecs/rlz/coverage_dictionary.h"
#include "codecs/rlz/dictionary_builder.h"
#include "server/archive/format/section_compression.h"
#include "server/planner/auto_trial.h"
#include "server/planner/codec_trial.h"
#include "server/planner/read_forecast.h"

namespace quire {
namespace {

// What a server takes without archives, and an archive's indexes for each
// document and block (README, RESULTS).
constexpr double kServerMemoryBytes = 112.0 * (1 << 20);
constexpr double kDocumentMemoryBytes = 20;
constexpr double kBlockMemoryBytes = 5;
// On disk: an id is kept in about half of its length.
constexpr double kIdShare = 0.5;
constexpr double kDocumentDiskBytes = 3;
constexpr double kBlockDiskBytes = 4;
// To start and to sync files.
constexpr double kBuildSecondsLeast = 0.1;
// Of time that cores encode while a build runs on all of them.
constexpr double kEncodingShare = 0.9;
// FSST makes text half as long, at least.
constexpr double kFsstShare = 0.5;
// Of a dictionary, compressed as a trial: half a second each MiB.
constexpr size_t kTriedDictionaryBytes = size_t{16} << 20;
// A sample of so many dictionaries says what a collection takes with one.
constexpr uint64_t kDictionariesInSample = 4;
constexpr double kFreeMemoryShare = 0.9;
// Of --memory that is left over, what becomes cache, after what a server keeps
// to open an archive anew, of its dictionary (service/limits/memory_plan.h).
constexpr double kCacheShare = 5.0 / 8;
constexpr double kReloadShare = 1.25;

struct Candidate {
  const char* codec;
  // Empty: no dictionary.
  std::array<uint64_t, 2> dictionary_sizes;
};

constexpr std::array kCandidates = {
    Candidate{"lz4", {}},
    Candidate{"zstd", {}},
    Candidate{"xz", {}},
    Candidate{"rlz", {16 * kMiB, 64 * kMiB}},
    Candidate{"rlz:max", {16 * kMiB, 64 * kMiB}},
};
constexpr std::array<uint32_t, 3> kBlockSizes = {16 << 10, 64 << 10, 256 << 10};
// In which members of auto are compared.
constexpr uint32_t kSpeedBlockSize = 64 << 10;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

class Planner {
 public:
  Planner(const CollectionSample& sample, const TextFeed& feed,
          const PlanOptions& options)
      : sample_(sample),
        feed_(feed),
        options_(options),
        text_bytes_(static_cast<double>(options.text_size_bytes != 0
                                            ? options.text_size_bytes
                                            : sample.text_size_bytes)) {}

  absl::StatusOr<Plan> Make() {
    plan_.text_size_bytes = static_cast<uint64_t>(text_bytes_);
    plan_.sample_size_bytes = sample_.size_bytes();
    plan_.document_count = static_cast<uint64_t>(Documents());
    Tell("dictionaries");
    QUIRE_ASSIGN_OR_RETURN(
        std::vector<Dictionary> dictionaries,
        Choose(sample_.text_size_bytes, sample_.read_seconds, feed_));
    // While these are compressed, codecs without one are tried.
    std::vector<std::future<absl::Status>> compressed;
    compressed.reserve(dictionaries.size());
    for (Dictionary& dictionary : dictionaries) {
      compressed.push_back(std::async(std::launch::async, &CompressDictionary,
                                      std::ref(dictionary)));
    }
    for (const Candidate& candidate : kCandidates) {
      if (candidate.dictionary_sizes[0] == 0) {
        QUIRE_RETURN_IF_ERROR(AddPlain(candidate.codec));
      }
    }
    for (size_t i = 0; i < dictionaries.size(); ++i) {
      QUIRE_RETURN_IF_ERROR(compressed[i].get());
      if (IsJudged(dictionaries[i].wanted_size)) {
        QUIRE_RETURN_IF_ERROR(AddWithDictionary(dictionaries[i]));
      }
    }
    Tell("what codec auto chooses from");
    QUIRE_RETURN_IF_ERROR(TryAutoMembers(dictionaries.front().context,
                                         sample_.pieces, SpeedTrial(),
                                         plan_.codec_speeds));
    std::ranges::sort(plan_.cells, {}, &PlanCell::size_bytes);
    MarkPareto();
    Recommend();
    if (plan_.recommended.has_value()) {
      Explain(plan_.cells[*plan_.recommended]);
    }
    return std::move(plan_);
  }

 private:
  double Documents() const {
    return static_cast<double>(sample_.document_count) * text_bytes_ /
           static_cast<double>(sample_.text_size_bytes);
  }

  void Tell(const std::string& what) const {
    if (options_.on_progress) {
      options_.on_progress(what);
    }
  }

  TrialOptions Trial(uint32_t block_size) const {
    return {.block_size_bytes = block_size,
            .thread_count = options_.core_count,
            .seconds = options_.trial_seconds,
            .compressibility = sample_.compressibility,
            .text_size_bytes = sample_.text_size_bytes};
  }

  // Says nothing of sizes.
  TrialOptions SpeedTrial() const {
    TrialOptions trial = Trial(kSpeedBlockSize);
    trial.seconds /= 4;
    trial.block_count_min /= 3;
    return trial;
  }

  // The first dictionary's are those that count.
  void NoteSpeed(const CodecSpec& spec, uint32_t block_size,
                 const CodecTrialResult& trial) {
    if (block_size == kSpeedBlockSize) {
      plan_.codec_speeds.emplace(FormatCodecSpec(spec), SpeedOf(trial));
    }
  }

  absl::Status AddPlain(const std::string& codec) {
    QUIRE_ASSIGN_OR_RETURN(const CodecSpec spec, ParseCodecSpec(codec));
    for (const uint32_t block_size : kBlockSizes) {
      Tell(
          absl::StrCat(codec, ", blocks of ", FormatByteSizeExact(block_size)));
      QUIRE_ASSIGN_OR_RETURN(
          const CodecTrialResult trial,
          TryCodec(spec, nullptr, sample_.pieces, Trial(block_size)));
      NoteSpeed(spec, block_size, trial);
      AddCell(codec, block_size, {}, trial, /*unseen=*/1);
    }
    return absl::OkStatus();
  }

  struct Dictionary {
    uint64_t wanted_size = 0;
    std::shared_ptr<CodecContext> context = nullptr;
    // To choose it, reading included.
    double choose_seconds_per_byte = 0;
    // On disk, and what compressing it takes one core.
    double disk_bytes = 0;
    double compress_seconds = 0;
  };

  // Dictionaries of all sizes for one text.
  static absl::StatusOr<std::vector<Dictionary>> Choose(uint64_t text_size,
                                                        double read_seconds,
                                                        const TextFeed& feed) {
    std::vector<Dictionary> chosen;
    std::vector<std::unique_ptr<DictionaryBuilder>> builders;
    for (const uint64_t size : kCandidates.back().dictionary_sizes) {
      // What is larger than the text would be all of it.
      if (!builders.empty() && size > text_size / 2) {
        continue;
      }
      chosen.push_back({.wanted_size = size});
      QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DictionaryBuilder> builder,
                             MakeCoverageDictionaryBuilder(
                                 {.dictionary_size_bytes = size}, text_size));
      builders.push_back(std::move(builder));
    }
    std::vector<double> seconds(builders.size(), 0);
    const TextSink add = [&](ByteView text) -> absl::Status {
      for (size_t i = 0; i < builders.size(); ++i) {
        const auto started = std::chrono::steady_clock::now();
        QUIRE_RETURN_IF_ERROR(builders[i]->Add(text));
        seconds[i] += Seconds(started);
      }
      return absl::OkStatus();
    };
    for (int pass = 0; pass < builders.front()->pass_count(); ++pass) {
      QUIRE_RETURN_IF_ERROR(feed(add));
      for (size_t i = 0; i < builders.size(); ++i) {
        const auto started = std::chrono::steady_clock::now();
        QUIRE_RETURN_IF_ERROR(builders[i]->FinishPass());
        seconds[i] += Seconds(started);
      }
    }
    for (size_t i = 0; i < builders.size(); ++i) {
      const auto started = std::chrono::steady_clock::now();
      chosen[i].context = std::make_shared<CodecContext>();
      chosen[i].context->dictionary = builders[i]->Take();
      seconds[i] += Seconds(started);
      chosen[i].choose_seconds_per_byte =
          (seconds[i] + builders[i]->pass_count() * read_seconds) /
          static_cast<double>(text_size);
    }
    return chosen;
  }

  // As an archive keeps it; of a large one a part, as it takes long.
  static absl::Status CompressDictionary(Dictionary& dictionary) {
    const ByteView text = AsBytes(dictionary.context->dictionary);
    if (text.empty()) {
      return absl::OkStatus();
    }
    const ByteView part =
        text.first(std::min(text.size(), kTriedDictionaryBytes));
    const double started = ThreadSeconds();
    QUIRE_ASSIGN_OR_RETURN(const CompressedBytes compressed,
                           CompressStrongly(part, kDictionaryEffort));
    const double scale =
        static_cast<double>(text.size()) / static_cast<double>(part.size());
    dictionary.compress_seconds = (ThreadSeconds() - started) * scale;
    dictionary.disk_bytes =
        static_cast<double>(compressed.bytes.size()) * scale;
    return absl::OkStatus();
  }

  // False, with a note, if the inputs are too small a sample for it.
  bool IsJudged(uint64_t dictionary_size) {
    if (text_bytes_ <= static_cast<double>(sample_.text_size_bytes) ||
        sample_.text_size_bytes >= kDictionariesInSample * dictionary_size) {
      return true;
    }
    plan_.notes.push_back(absl::StrCat(
        "the inputs, ", FormatByteSize(sample_.text_size_bytes),
        ", are a sample of less than four dictionaries of ",
        FormatByteSizeExact(dictionary_size),
        ", so there are no figures for these; give at least ",
        FormatByteSizeExact(kDictionariesInSample * dictionary_size),
        " of the collection"));
    return false;
  }

  absl::Status AddWithDictionary(const Dictionary& dictionary) {
    QUIRE_ASSIGN_OR_RETURN(const double unseen, UnseenFactor(dictionary));
    for (const Candidate& candidate : kCandidates) {
      if (candidate.dictionary_sizes[0] == 0) {
        continue;
      }
      QUIRE_ASSIGN_OR_RETURN(const CodecSpec spec,
                             ParseCodecSpec(candidate.codec));
      for (const uint32_t block_size : kBlockSizes) {
        Tell(absl::StrCat(candidate.codec, ", dictionary of ",
                          FormatByteSizeExact(dictionary.wanted_size),
                          ", blocks of ", FormatByteSizeExact(block_size)));
        QUIRE_ASSIGN_OR_RETURN(const CodecTrialResult trial,
                               TryCodec(spec, dictionary.context,
                                        sample_.pieces, Trial(block_size)));
        NoteSpeed(spec, block_size, trial);
        AddCell(candidate.codec, block_size, dictionary, trial, unseen);
      }
    }
    return absl::OkStatus();
  }

  // By how much text that a dictionary was not chosen from takes more: every
  // other piece of the sample with a dictionary of the others, over these. 1
  // where the inputs are the whole collection.
  absl::StatusOr<double> UnseenFactor(const Dictionary& dictionary) const {
    if (text_bytes_ <= static_cast<double>(sample_.text_size_bytes) ||
        sample_.pieces.size() < 8) {
      return 1.0;
    }
    Tell(absl::StrCat("a dictionary of ",
                      FormatByteSizeExact(dictionary.wanted_size),
                      " on text that it was not chosen from"));
    std::array<std::vector<std::string>, 2> halves;
    uint64_t text_size = 0;
    for (size_t i = 0; i < sample_.pieces.size(); ++i) {
      halves[i % 2].push_back(sample_.pieces[i]);
      text_size += i % 2 == 0 ? sample_.pieces[i].size() : 0;
    }
    QUIRE_ASSIGN_OR_RETURN(
        const std::vector<Dictionary> chosen,
        Choose(text_size, 0, [&](const TextSink& sink) -> absl::Status {
          for (const std::string& piece : halves[0]) {
            QUIRE_RETURN_IF_ERROR(sink(AsBytes(piece)));
          }
          return absl::OkStatus();
        }));
    const auto found = std::ranges::find(chosen, dictionary.wanted_size,
                                         &Dictionary::wanted_size);
    const Dictionary& used = found != chosen.end() ? *found : chosen.back();
    QUIRE_ASSIGN_OR_RETURN(const CodecSpec spec, ParseCodecSpec("rlz"));
    std::array<double, 2> shares = {};
    for (size_t i = 0; i < shares.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(
          const CodecTrialResult trial,
          TryCodec(spec, used.context, halves[i], Trial(64 << 10)));
      shares[i] = trial.stored_share;
    }
    return std::max(1.0, shares[1] / std::max(shares[0], 1e-9));
  }

  void AddCell(const std::string& codec, uint32_t block_size,
               const Dictionary& dictionary, const CodecTrialResult& trial,
               double unseen) {
    PlanCell cell;
    cell.codec = codec;
    cell.block_size_bytes = block_size;
    cell.dictionary_size_bytes = dictionary.wanted_size;
    // Between what was seen, as if the dictionary grew with the text, and what
    // was not: the more the less the inputs are of the collection.
    const double seen = std::min(
        1.0, static_cast<double>(sample_.text_size_bytes) / text_bytes_);
    const double unseen_share = std::min(trial.stored_share * unseen, 1.0);
    const double share = std::clamp(
        trial.stored_share + (unseen_share - trial.stored_share) * (1 - seen),
        1e-6, 1.0);
    cell.figures = {trial.encode_bytes_per_second,
                    trial.decode_bytes_per_second, 1 / share};
    const double blocks = text_bytes_ / block_size;
    const double fixed = dictionary.disk_bytes + blocks * kBlockDiskBytes +
                         Documents() * kDocumentDiskBytes +
                         static_cast<double>(sample_.id_size_bytes) * kIdShare *
                             text_bytes_ /
                             static_cast<double>(sample_.text_size_bytes);
    const double error = 2 * trial.share_error;
    cell.size_bytes = fixed + text_bytes_ * share;
    cell.size_bytes_min =
        fixed + text_bytes_ * std::max(trial.stored_share - error, 0.0);
    cell.size_bytes_max =
        fixed + text_bytes_ * std::min(unseen_share + error, 1.0);
    if (options_.price_per_tb > 0) {
      cell.price = cell.size_bytes / 1e12 * options_.price_per_tb;
    }
    cell.build_seconds = BuildSeconds(dictionary, trial);
    cell.memory_bytes =
        kServerMemoryBytes + static_cast<double>(dictionary.wanted_size) +
        Documents() * kDocumentMemoryBytes + blocks * kBlockMemoryBytes;
    AddReading(share, cell);
    plan_.cells.push_back(std::move(cell));
  }

  // The dictionary is compressed by one thread while others encode.
  double BuildSeconds(const Dictionary& dictionary,
                      const CodecTrialResult& trial) const {
    const double read = sample_.read_seconds * text_bytes_ /
                        static_cast<double>(sample_.text_size_bytes);
    const double encode = text_bytes_ / trial.encode_bytes_per_second;
    return kBuildSecondsLeast +
           text_bytes_ * dictionary.choose_seconds_per_byte + read +
           trial.prepare_seconds +
           std::max(dictionary.compress_seconds,
                    (encode + dictionary.compress_seconds) /
                        (options_.core_count * kEncodingShare));
  }

  void AddReading(double share, PlanCell& cell) const {
    const double spare =
        static_cast<double>(options_.memory_bytes) - cell.memory_bytes -
        static_cast<double>(cell.dictionary_size_bytes) * kReloadShare;
    const ReadForecast forecast = ForecastReads(
        {.text_bytes = text_bytes_,
         .block_size_bytes = cell.block_size_bytes,
         .stored_share = share,
         .decode_bytes_per_second = cell.figures.decode_bytes_per_second,
         .cache_bytes = kCacheBytesLeast + kCacheShare * std::max(spare, 0.0)},
        {.drive = options_.drive,
         .network_bytes_per_second = options_.network_bytes_per_second,
         .core_count = options_.core_count,
         .read_size_bytes = options_.read_size_bytes,
         .in_flight = options_.in_flight});
    cell.random = forecast.random;
    cell.batch = forecast.batch;
    cell.full_bytes_per_second = forecast.full_bytes_per_second;
    cell.full_stored_bytes_per_second = forecast.full_stored_bytes_per_second;
  }

  void MarkPareto() {
    double fastest = 0;
    for (PlanCell& cell : plan_.cells) {
      cell.is_pareto = cell.random.per_second > fastest;
      fastest = std::max(fastest, cell.random.per_second);
      if (options_.memory_bytes != 0 &&
          cell.memory_bytes >
              static_cast<double>(options_.memory_bytes) * kFreeMemoryShare) {
        cell.unfit = "needs more memory";
      } else if (options_.budget > 0 && cell.price > options_.budget) {
        cell.unfit = "over the budget";
      }
    }
  }

  // The smallest; the fastest at random reads, smaller ones first where that is
  // within a tenth; between them the smallest that is at least two thirds as
  // fast as the fastest.
  void Recommend() {
    double fastest = 0;
    for (const PlanCell& cell : plan_.cells) {
      if (cell.unfit.empty()) {
        fastest = std::max(fastest, cell.random.per_second);
      }
    }
    const double enough = options_.objective == PlanObjective::kArchive ? 0
                          : options_.objective == PlanObjective::kSpeed
                              ? 0.9
                              : 2.0 / 3;
    for (size_t i = 0; i < plan_.cells.size(); ++i) {
      const PlanCell& cell = plan_.cells[i];
      if (cell.unfit.empty() && cell.random.per_second >= enough * fastest) {
        plan_.recommended = i;
        return;
      }
    }
  }

  void Explain(const PlanCell& cell) {
    const double share = 1 / cell.figures.ratio;
    const auto read_size = static_cast<double>(options_.read_size_bytes);
    const double block = cell.block_size_bytes;
    for (const auto& [name, bytes] :
         {std::pair<const char*, double>{"identity", read_size},
          {"fsst", read_size * kFsstShare},
          {"stored", (read_size - 1 + block) * share}}) {
      plan_.encodings.push_back(
          {.name = name,
           .answer_bytes = bytes,
           .answers_per_second = options_.network_bytes_per_second / bytes});
    }
    for (uint32_t cores = 1; cores <= options_.core_count; cores *= 2) {
      AddThreshold(cell, cores);
    }
    if (plan_.thresholds.back().core_count != options_.core_count) {
      AddThreshold(cell, options_.core_count);
    }
    if (options_.drive.capacity_bytes == 0) {
      return;
    }
    const auto capacity = static_cast<double>(options_.drive.capacity_bytes);
    const StorageUnit unit = {
        .drives_price = capacity / 1e12 * options_.price_per_tb,
        .capacity_bytes = capacity,
        .bytes_per_second =
            RatesOf(options_.drive, 1 << 20, options_.drive.capacity_bytes, 1,
                    /*batch_in_flight=*/1)
                .sequential_bytes_per_second,
        .core_count = options_.core_count};
    constexpr CodecFigures kNone = {1e15, 1e15, 1};
    CodecFigures figures = cell.figures;
    figures.ratio = text_bytes_ / cell.size_bytes;
    plan_.plain_drives = BuyFewestUnits(unit, kNone, text_bytes_);
    plan_.fewest_drives = BuyFewestUnits(unit, figures, text_bytes_);
    plan_.as_many_drives = BuyFewestDrives(unit, figures, text_bytes_,
                                           plan_.plain_drives.unit_count);
  }

  void AddThreshold(const PlanCell& cell, uint32_t cores) {
    const CodecFigures& codec = cell.figures;
    plan_.thresholds.push_back(
        {.core_count = cores,
         .bytes_per_second =
             cores * PaysBelowBytesPerSecond(codec.encode_bytes_per_second,
                                             codec.decode_bytes_per_second,
                                             1 / codec.ratio),
         .pipelined_bytes_per_second =
             cores * PaysPipelinedBelowBytesPerSecond(
                         codec.encode_bytes_per_second,
                         codec.decode_bytes_per_second, 1 / codec.ratio)});
  }

  const CollectionSample& sample_;
  const TextFeed& feed_;
  const PlanOptions& options_;
  const double text_bytes_;
  Plan plan_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const CollectionSample& sample,
                              const TextFeed& feed,
                              const PlanOptions& options) {
  return Planner(sample, feed, options).Make();
}

}  // namespace quire
