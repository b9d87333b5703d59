// SPDX-License-Identifier: Apache-2.0
#include "loadtest/migration_bench/migrated_text.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/varint.h"
#include "codecs/reorder/chunk_clusters.h"
#include "codecs/reorder/content_chunker.h"

namespace quire {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// Where each chunk ends.
std::vector<uint64_t> DivideText(ByteView text,
                                 const MigrationOptions& options) {
  const ContentChunker chunker(options.has_variable_chunks
                                   ? options.chunk_size_bytes
                                   : kChunkSizeBytesMin);
  std::vector<uint64_t> ends;
  for (uint64_t offset = 0; offset < text.size();) {
    const ByteView rest = text.subspan(offset);
    offset += options.has_variable_chunks
                  ? chunker.Next(rest)
                  : std::min<size_t>(rest.size(), options.chunk_size_bytes);
    ends.push_back(offset);
  }
  return ends;
}

// Of each chunk of the text, its number in `stored`, which gets those that are
// to be stored.
std::vector<uint32_t> FindDuplicates(ByteView text,
                                     const std::vector<uint64_t>& ends,
                                     bool drops_duplicates,
                                     std::vector<MigratedChunk>& stored) {
  absl::flat_hash_map<uint64_t, uint32_t> known;
  std::vector<uint32_t> numbers;
  numbers.reserve(ends.size());
  uint64_t offset = 0;
  for (const uint64_t end : ends) {
    const ByteView chunk = text.subspan(offset, end - offset);
    const auto next = static_cast<uint32_t>(stored.size());
    if (drops_duplicates) {
      const auto [same, is_new] = known.try_emplace(Checksum64(chunk), next);
      if (!is_new) {
        const MigratedChunk& other = stored[same->second];
        if (std::ranges::equal(chunk,
                               text.subspan(other.offset, other.size_bytes))) {
          numbers.push_back(same->second);
          offset = end;
          continue;
        }
      }
    }
    stored.push_back({offset, static_cast<uint32_t>(chunk.size()), next});
    numbers.push_back(next);
    offset = end;
  }
  return numbers;
}

// Takes chunks out of all clusters but the largest, so many that these have the
// share of the chunks that are in clusters of several.
void KeepLargestClusters(double share, std::vector<uint32_t>& leaders) {
  std::vector<uint32_t> sizes(leaders.size(), 0);
  for (const uint32_t leader : leaders) {
    ++sizes[leader];
  }
  std::vector<uint32_t> clusters;
  uint64_t similar_count = 0;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) {
      clusters.push_back(i);
      similar_count += sizes[i];
    }
  }
  std::ranges::stable_sort(
      clusters, [&](uint32_t a, uint32_t b) { return sizes[a] > sizes[b]; });
  std::vector<bool> is_moved(leaders.size(), false);
  uint64_t moved_count = 0;
  for (const uint32_t cluster : clusters) {
    if (static_cast<double>(moved_count) >=
        share * static_cast<double>(similar_count)) {
      break;
    }
    is_moved[cluster] = true;
    moved_count += sizes[cluster];
  }
  for (uint32_t i = 0; i < leaders.size(); ++i) {
    if (!is_moved[leaders[i]]) {
      leaders[i] = i;
    }
  }
}

std::vector<uint32_t> OrderChunks(ByteView text,
                                  const MigrationOptions& options,
                                  MigratedText& migrated) {
  std::vector<MigratedChunk>& chunks = migrated.chunks;
  double started = CpuSeconds();
  std::vector<uint64_t> sketches;
  for (const MigratedChunk& chunk : chunks) {
    const std::vector<uint64_t> sketch =
        SketchOf(text.subspan(chunk.offset, chunk.size_bytes), options.sketch);
    sketches.insert(sketches.end(), sketch.begin(), sketch.end());
  }
  migrated.sketch_seconds = CpuSeconds() - started;
  started = CpuSeconds();
  ChunkClusters clusters;
  const auto count = static_cast<size_t>(options.sketch.count);
  for (size_t i = 0; i < chunks.size(); ++i) {
    clusters.Add(absl::MakeConstSpan(sketches).subspan(i * count, count));
  }
  std::vector<uint32_t> leaders = clusters.Leaders();
  if (options.moved_share < 1) {
    KeepLargestClusters(options.moved_share, leaders);
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].leader = leaders[i];
  }
  std::vector<uint32_t> order = OrderByLeader(leaders);
  migrated.cluster_seconds = CpuSeconds() - started;
  return order;
}

}  // namespace

MigratedText MigrateText(ByteView text, const MigrationOptions& options) {
  MigratedText migrated;
  const double started = CpuSeconds();
  const std::vector<uint64_t> ends = DivideText(text, options);
  const std::vector<uint32_t> numbers =
      FindDuplicates(text, ends, options.drops_duplicates, migrated.chunks);
  migrated.divide_seconds = CpuSeconds() - started;
  migrated.chunk_count = ends.size();

  std::vector<uint32_t> order(migrated.chunks.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  if (options.moves_similar) {
    order = OrderChunks(text, options, migrated);
  }
  std::vector<uint64_t> places(order.size());
  for (const uint32_t number : order) {
    const MigratedChunk& chunk = migrated.chunks[number];
    places[number] = migrated.stored.size();
    absl::StrAppend(&migrated.stored,
                    AsText(text.subspan(chunk.offset, chunk.size_bytes)));
  }
  RunList runs;
  for (const uint32_t number : numbers) {
    runs.Append(migrated.chunks[number].size_bytes, places[number]);
  }
  migrated.runs = std::move(runs).Take();
  return migrated;
}

std::string RestoreText(const MigratedText& migrated) {
  std::string text;
  for (const StoredRun& run : migrated.runs) {
    text.append(migrated.stored, run.stored_offset, run.size_bytes);
  }
  return text;
}

size_t RecipeSizeBytes(const std::vector<StoredRun>& runs) {
  std::string recipe;
  uint64_t end = 0;
  for (const StoredRun& run : runs) {
    AppendVarint(run.size_bytes, recipe);
    AppendVarint(ZigZag(static_cast<int64_t>(run.stored_offset - end)), recipe);
    end = run.stored_offset + run.size_bytes;
  }
  return recipe.size();
}

ReadCost CostOfReading(const std::vector<StoredRun>& runs, uint64_t offset,
                       uint64_t window_size_bytes, uint64_t block_size_bytes) {
  QUIRE_CHECK(window_size_bytes > 0 && block_size_bytes > 0,
              "windows and blocks must not be empty");
  ReadCost cost;
  std::vector<uint64_t> blocks;
  uint64_t window_bytes = 0;
  // No block follows it.
  uint64_t last_block = ~uint64_t{0} - 1;
  const auto end_window = [&] {
    std::ranges::sort(blocks);
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    for (const uint64_t block : blocks) {
      cost.seeks += block == last_block + 1 ? 0 : 1;
      last_block = block;
    }
    cost.blocks += blocks.size();
    blocks.clear();
    window_bytes = 0;
  };
  uint64_t begin = 0;
  for (StoredRun run : runs) {
    const uint64_t skipped =
        std::min(run.size_bytes, offset - std::min(offset, begin));
    begin += run.size_bytes;
    run.size_bytes -= skipped;
    run.stored_offset += skipped;
    while (run.size_bytes > 0) {
      const uint64_t piece =
          std::min(run.size_bytes, window_size_bytes - window_bytes);
      const uint64_t last = (run.stored_offset + piece - 1) / block_size_bytes;
      for (uint64_t block = run.stored_offset / block_size_bytes; block <= last;
           ++block) {
        blocks.push_back(block);
      }
      cost.text_bytes += piece;
      window_bytes += piece;
      run.size_bytes -= piece;
      run.stored_offset += piece;
      if (window_bytes == window_size_bytes) {
        end_window();
      }
    }
  }
  end_window();
  return cost;
}

}  // namespace quire
