// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prints how many requests of made-up streams the block cache answers, next to
// other policies and the best possible, as tables. Nothing is timed: the same
// on every machine.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "server/storage/simulation/cache_replay.h"
#include "server/storage/simulation/cache_streams.h"

namespace quire {
namespace {

constexpr uint64_t kBlocks = 100'000;
constexpr uint64_t kChargeBytes = 64 << 10;

struct NamedStream {
  std::string name;
  CacheStreamOptions options;
};

std::vector<NamedStream> Streams() {
  const CacheStreamOptions uniform{.blocks = kBlocks, .requests = 1'000'000};
  CacheStreamOptions mild = uniform;
  mild.zipf_exponent = 0.8;
  CacheStreamOptions steep = uniform;
  steep.zipf_exponent = 1.0;
  CacheStreamOptions during_scan = steep;
  during_scan.scan_blocks = 1;
  CacheStreamOptions during_reads = during_scan;
  during_reads.scan_use = BlockCache::Use::kDemand;
  CacheStreamOptions during_quarters = during_reads;
  during_quarters.scan_blocks = 4;
  during_quarters.scan_asks_per_block = 4;
  CacheStreamOptions shifting = steep;
  shifting.shift_interval = 100'000;
  CacheStreamOptions reading_on = mild;
  reading_on.run_blocks = 4;
  reading_on.asks_per_block = 4;
  return {{"uniform", uniform},
          {"Zipf 0.8", mild},
          {"Zipf 1.0", steep},
          {"Zipf 1.0 during FULL", during_scan},
          {"Zipf 1.0 during FULL by reads", during_reads},
          {"Zipf 1.0 during FULL by reads of quarters", during_quarters},
          {"Zipf 1.0, other blocks every 100,000", shifting},
          {"Zipf 0.8, four blocks on in quarters", reading_on}};
}

double PercentOf(const std::vector<CacheRequest>& stream,
                 BlockCache::Options options, uint64_t capacity_blocks) {
  // absl's hash is another one in each process.
  options.hash = [](const BlockKey& key) {
    uint64_t hash = (key.block.block_index + 1) * 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    return hash ^ (hash >> 31);
  };
  options.capacity_size_bytes =
      capacity_blocks * (kChargeBytes + BlockCache::kEntryOverheadBytes);
  BlockCache cache(options);
  return ReplayOnBlockCache(stream, cache, kChargeBytes).percent();
}

void PrintPolicies(const NamedStream& named,
                   const std::vector<CacheRequest>& stream, int percent) {
  const uint64_t capacity_blocks =
      kBlocks * static_cast<uint64_t>(percent) / 100;
  std::printf("| %s | %d %% | %.1f", named.name.c_str(), percent,
              PercentOf(stream, {}, capacity_blocks));
  for (const ReferencePolicy policy :
       {ReferencePolicy::kLru, ReferencePolicy::kFifo, ReferencePolicy::kClock,
        ReferencePolicy::kSegmentedLru}) {
    const auto cache = MakeReferenceCache(policy, capacity_blocks);
    std::printf(" | %.1f", ReplayOnReference(stream, *cache).percent());
  }
  std::printf(" | %.1f |\n",
              ReplayOnOptimum(stream, capacity_blocks).percent());
}

void PrintVariants(const NamedStream& named,
                   const std::vector<CacheRequest>& stream, int percent) {
  const uint64_t capacity_blocks =
      kBlocks * static_cast<uint64_t>(percent) / 100;
  std::printf("| %s | %d %%", named.name.c_str(), percent);
  for (const bool early_uses_count : {false, true}) {
    for (const uint32_t probation_percent : {2U, 5U, 10U, 20U}) {
      std::printf(" | %.1f", PercentOf(stream,
                                       {.probation_percent = probation_percent,
                                        .early_uses_count = early_uses_count},
                                       capacity_blocks));
    }
  }
  std::printf(" |\n");
}

template <typename PrintRow>
void PrintTable(const char* head, PrintRow print_row) {
  std::printf("\n%s", head);
  for (const NamedStream& named : Streams()) {
    const std::vector<CacheRequest> stream =
        MakeCacheStream(named.options, /*seed=*/1);
    for (const int percent : {1, 5, 20}) {
      print_row(named, stream, percent);
    }
  }
}

}  // namespace
}  // namespace quire

int main() {
  quire::PrintTable(
      "| stream | cache | block cache | LRU | FIFO | CLOCK | segmented LRU | "
      "optimum |\n|---|---|---|---|---|---|---|---|\n",
      quire::PrintPolicies);
  quire::PrintTable(
      "| stream | cache | 2 % | 5 % | 10 % | 20 % | all uses, 2 % | 5 % | "
      "10 % | 20 % |\n|---|---|---|---|---|---|---|---|---|---|\n",
      quire::PrintVariants);
  return 0;
}
