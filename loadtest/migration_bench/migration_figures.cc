// SPDX-License-Identifier: Apache-2.0
//
// migration_figures: what migration makes of a text. migration_bench.py runs it
// over options, compresses what it writes, and describes what it prints, one
// JSON object. The text that its recipe gives is compared with the original.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/content_chunker.h"
#include "loadtest/migration_bench/migrated_text.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

struct Arguments {
  std::string text;
  std::string output;
  std::string chunks_output;
  std::string method = "odess";
  std::vector<uint64_t> read_from;
  std::string window_size = "16MiB";
  std::string block_size = "64KiB";
  bool has_fixed_chunks = false;
  bool keeps_duplicates = false;
  bool keeps_order = false;
  MigrationOptions options;
};

const std::map<std::string, SketchMethod>& Methods() {
  static const std::map<std::string, SketchMethod> methods = {
      {"odess", SketchMethod::kOdess},
      {"ntransform", SketchMethod::kNTransform},
      {"finesse", SketchMethod::kFinesse}};
  return methods;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  return out ? absl::OkStatus()
             : absl::UnavailableError(
                   absl::StrCat(path, ": cannot be written"));
}

// Of each chunk three numbers, little-endian: its offset in 8 bytes, its size
// and its leader's number in 4 each.
std::string SerialiseChunks(const std::vector<MigratedChunk>& chunks) {
  constexpr size_t kEntrySizeBytes = 16;
  std::string table(chunks.size() * kEntrySizeBytes, '\0');
  uint8_t* entry = AsMutableBytes(table).data();
  for (const MigratedChunk& chunk : chunks) {
    StoreLittleEndian(chunk.offset, entry);
    StoreLittleEndian(chunk.size_bytes, entry + 8);
    StoreLittleEndian(chunk.leader, entry + 12);
    entry += kEntrySizeBytes;
  }
  return table;
}

// Those that share a cluster with others.
size_t CountSimilar(const std::vector<MigratedChunk>& chunks) {
  size_t count = 0;
  std::vector<bool> is_counted(chunks.size(), false);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const uint32_t leader = chunks[i].leader;
    if (leader != i) {
      count += is_counted[leader] ? 1 : 2;
      is_counted[leader] = true;
    }
  }
  return count;
}

void Print(const Arguments& arguments, const MigratedText& migrated,
           uint64_t text_bytes, uint64_t window_size_bytes,
           uint64_t block_size_bytes) {
  std::vector<std::string> reads;
  for (const uint64_t offset : arguments.read_from) {
    const ReadCost cost = CostOfReading(migrated.runs, offset,
                                        window_size_bytes, block_size_bytes);
    reads.push_back(absl::StrFormat(
        "{\"from\": %d, \"text_bytes\": %d, \"blocks\": %d, \"seeks\": %d}",
        offset, cost.text_bytes, cost.blocks, cost.seeks));
  }
  absl::PrintF(
      "{\"text_bytes\": %d, \"stored_bytes\": %d, \"chunks\": %d, "
      "\"stored_chunks\": %d, \"similar_chunks\": %d, \"runs\": %d, "
      "\"recipe_bytes\": %d, \"divide_cpu_seconds\": %.4f, "
      "\"sketch_cpu_seconds\": %.4f, \"cluster_cpu_seconds\": %.4f, "
      "\"reads\": [%s]}\n",
      text_bytes, migrated.stored.size(), migrated.chunk_count,
      migrated.chunks.size(), CountSimilar(migrated.chunks),
      migrated.runs.size(), RecipeSizeBytes(migrated.runs),
      migrated.divide_seconds, migrated.sketch_seconds,
      migrated.cluster_seconds, absl::StrJoin(reads, ", "));
}

absl::StatusOr<uint64_t> ParsePositiveSize(absl::string_view option,
                                           const std::string& word) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size, ParseByteSize(word));
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " must be at least 1 byte, got \"", word, "\""));
  }
  return size;
}

absl::Status Migrate(Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(
      const uint64_t window_size,
      ParsePositiveSize("--window-size", arguments.window_size));
  QUIRE_ASSIGN_OR_RETURN(
      const uint64_t block_size,
      ParsePositiveSize("--block-size", arguments.block_size));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> source,
                         SourceText::Open(arguments.text, ""));
  std::string text(source->size_bytes(), '\0');
  QUIRE_RETURN_IF_ERROR(source->Read(0, AsMutableBytes(text)));
  MigrationOptions& options = arguments.options;
  options.has_variable_chunks = !arguments.has_fixed_chunks;
  options.drops_duplicates = !arguments.keeps_duplicates;
  options.moves_similar = !arguments.keeps_order;
  options.sketch.method = Methods().at(arguments.method);
  const MigratedText migrated = MigrateText(AsBytes(text), options);
  if (RestoreText(migrated) != text) {
    return absl::InternalError("the recipe does not give the text back");
  }
  if (!arguments.output.empty()) {
    QUIRE_RETURN_IF_ERROR(WriteFile(arguments.output, migrated.stored));
  }
  if (!arguments.chunks_output.empty()) {
    QUIRE_RETURN_IF_ERROR(
        WriteFile(arguments.chunks_output, SerialiseChunks(migrated.chunks)));
  }
  Print(arguments, migrated, text.size(), window_size, block_size);
  return absl::OkStatus();
}

void Declare(CLI::App& app, Arguments& arguments) {
  MigrationOptions& options = arguments.options;
  app.add_option("TEXT", arguments.text, "file, held in memory twice")
      ->required();
  app.add_option("--out", arguments.output, "write the migrated text there");
  app.add_option(
      "--chunks-out", arguments.chunks_output,
      "write there, of each stored chunk, its offset (8 bytes), size "
      "and first of its cluster (4 bytes each), little-endian");
  app.add_flag("--fixed", arguments.has_fixed_chunks,
               "chunks of one size rather than content-defined ones");
  app.add_option("--chunk-size", options.chunk_size_bytes, "bytes")
      ->check(CLI::IsMember(std::vector<uint32_t>{1024, 2048, 4096, 8192, 16384,
                                                  kChunkSizeBytesMax}))
      ->capture_default_str();
  app.add_flag("--keep-duplicates", arguments.keeps_duplicates,
               "store equal chunks as often as they come");
  app.add_flag("--keep-order", arguments.keeps_order,
               "do not move similar chunks together");
  app.add_option("--method", arguments.method, "how features are found")
      ->check(CLI::IsMember(Methods()))
      ->capture_default_str();
  app.add_option("--super-features", options.sketch.count)
      ->check(CountInRange(1, kSketchCountMax))
      ->capture_default_str();
  app.add_option("--features-each", options.sketch.features_each)
      ->check(CountInRange(1, kSketchFeaturesEachMax))
      ->capture_default_str();
  app.add_option("--moved-share", options.moved_share,
                 "of the similar chunks, the largest clusters first")
      ->check(NumberInRange(0, 1))
      ->capture_default_str();
  app.add_option("--read-from", arguments.read_from,
                 "count the blocks that reading takes from that byte to the "
                 "end; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--window-size", arguments.window_size,
                 "text for which blocks are read in order of storage")
      ->capture_default_str();
  app.add_option("--block-size", arguments.block_size)->capture_default_str();
}

int Run(Arguments& arguments) {
  const absl::Status status = Migrate(arguments);
  if (!status.ok()) {
    std::cerr << "migration_figures: " << status << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Arguments arguments;
  return quire::RunProgram("migration_figures",
                           "what migration makes of a text", 1,
                           [&](CLI::App& app) {
                             quire::Declare(app, arguments);
                             app.parse(argc, argv);
                             return quire::Run(arguments);
                           });
}
