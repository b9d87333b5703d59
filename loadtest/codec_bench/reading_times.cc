// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/reading_times.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Keeps each counter's best repetition, under "BENCHMARK/COUNTER".
class BestRun : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) {
        continue;
      }
      if (run.error_occurred) {
        error_ = run.error_message;
        continue;
      }
      for (const auto& [counter, value] : run.counters) {
        double& best = best_[run.run_name.function_name + "/" + counter];
        best = std::max(best, value.value);
      }
    }
  }

  // 0 if it did not run.
  double Get(const std::string& name) const {
    const auto found = best_.find(name);
    return found == best_.end() ? 0 : found->second;
  }

  // Empty if nothing failed.
  const std::string& error() const { return error_; }

 private:
  std::map<std::string, double> best_;
  std::string error_;
};

// What the loops read, and with what.
struct Reading {
  const StoredText& stored;
  const BlockCodec& decoder;
  const std::vector<SourceRow>& documents;
  size_t range_size_bytes;
};

// Calls step(random number), which returns how many bytes it decoded, over and
// over. The numbers are the same for all codecs.
template <typename Step>
void Loop(benchmark::State& state, Step step) {
  std::mt19937_64 random(1);
  int64_t decoded_bytes = 0;
  for (auto _ : state) {
    const absl::StatusOr<size_t> size = step(random());
    if (!size.ok()) {
      state.SkipWithError(std::string(size.status().message()).c_str());
      return;
    }
    decoded_bytes += static_cast<int64_t>(*size);
  }
  state.SetBytesProcessed(decoded_bytes);
  state.SetItemsProcessed(state.iterations());
}

void DecodeBlocks(benchmark::State& state, const Reading& reading) {
  const auto scratch = reading.decoder.NewScratch();
  std::vector<uint8_t> raw(kBlockSizeBytesMax);
  size_t next = 0;
  Loop(state, [&](uint64_t) {
    const size_t index = next;
    next = next + 1 == reading.stored.block_count() ? 0 : next + 1;
    return reading.stored.DecodeBlock(reading.decoder, index, raw, *scratch);
  });
}

void DecodeRanges(benchmark::State& state, const Reading& reading) {
  const auto scratch = reading.decoder.NewScratch();
  std::vector<uint8_t> raw(reading.range_size_bytes);
  const uint64_t starts = reading.stored.size_bytes() - raw.size() + 1;
  Loop(state, [&](uint64_t random) -> absl::StatusOr<size_t> {
    QUIRE_RETURN_IF_ERROR(reading.stored.DecodeRange(
        reading.decoder, random % starts, raw, *scratch));
    return raw.size();
  });
}

void DecodeDocuments(benchmark::State& state, const Reading& reading) {
  const auto scratch = reading.decoder.NewScratch();
  uint64_t size_max = 0;
  for (const SourceRow& document : reading.documents) {
    size_max = std::max(size_max, document.size_bytes);
  }
  std::vector<uint8_t> raw(static_cast<size_t>(size_max));
  Loop(state, [&](uint64_t random) -> absl::StatusOr<size_t> {
    const SourceRow& document =
        reading.documents[random % reading.documents.size()];
    const MutableByteView out =
        MutableByteView(raw).first(static_cast<size_t>(document.size_bytes));
    QUIRE_RETURN_IF_ERROR(reading.stored.DecodeRange(
        reading.decoder, document.offset, out, *scratch));
    return out.size();
  });
}

}  // namespace

absl::StatusOr<ReadingTimes> TimeReading(
    const StoredText& stored, const BlockCodec& decoder,
    const std::vector<SourceRow>& documents, const ReadingOptions& options) {
  const Reading reading = {
      .stored = stored,
      .decoder = decoder,
      .documents = documents,
      .range_size_bytes = static_cast<size_t>(options.range_size_bytes)};
  const auto add = [&](const char* name, auto* function) {
    benchmark::RegisterBenchmark(name,
                                 [&reading, function](benchmark::State& state) {
                                   function(state, reading);
                                 })
        ->MinTime(options.seconds)
        ->Repetitions(options.repetitions);
  };
  benchmark::ClearRegisteredBenchmarks();
  add("blocks", &DecodeBlocks);
  add("ranges", &DecodeRanges);
  if (!documents.empty()) {
    add("documents", &DecodeDocuments);
  }
  BestRun best;
  benchmark::RunSpecifiedBenchmarks(&best);
  // They refer to `reading`.
  benchmark::ClearRegisteredBenchmarks();
  if (!best.error().empty()) {
    return absl::DataLossError(best.error());
  }
  return ReadingTimes{.decoded_bytes = best.Get("blocks/bytes_per_second"),
                      .ranges = best.Get("ranges/items_per_second"),
                      .documents = best.Get("documents/items_per_second")};
}

}  // namespace quire
