// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/order_choice.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/section_compression.h"

namespace quire {
namespace {

// Size of a run in a layout (FORMAT.md), in bytes.
constexpr double kRunSizeBytes = 6;
// A dictionary holds most of what repeats: an archive saved at most a third of
// the part of the text that is left out, usually a fifth. Moving the rest saved
// 0.3 % (NOTES.md).
constexpr double kDuplicatesOfGain = 5;
// Text that is compressed to learn how well duplicates compress.
constexpr uint64_t kSampleCount = 64;
constexpr uint64_t kSampleSizeBytes = uint64_t{16} << 10;
// zstd is enough for that; level 19 took a twelfth of a build.
constexpr CompressionEffort kSampleEffort = {
    .xz_size_bytes_max = 0, .is_text = true, .small_zstd_level = 3};

// The place of text in ReorderedText::file, in bytes.
struct StoredPiece {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

uint64_t TotalBytes(const std::vector<StoredPiece>& pieces) {
  uint64_t total = 0;
  for (const StoredPiece& piece : pieces) {
    total += piece.size_bytes;
  }
  return total;
}

// Appends the text of a segment that is stored once but occurs again, once for
// each further occurrence.
void AppendDuplicates(std::vector<StoredRun> runs, uint64_t segment_offset,
                      std::vector<StoredPiece>& duplicates) {
  std::ranges::sort(runs, {}, &StoredRun::stored_offset);
  uint64_t end = 0;
  for (const StoredRun& run : runs) {
    const uint64_t run_end = run.stored_offset + run.size_bytes;
    if (run.stored_offset < end) {
      duplicates.push_back({segment_offset + run.stored_offset,
                            std::min(run_end, end) - run.stored_offset});
    }
    end = std::max(end, run_end);
  }
}

// Returns the compressed size per byte of samples from `pieces`.
absl::StatusOr<double> SampledRatio(const InputFile& file,
                                    const std::vector<StoredPiece>& pieces) {
  const uint64_t stride_bytes =
      std::max<uint64_t>(1, TotalBytes(pieces) / kSampleCount);
  std::vector<uint8_t> sample;
  uint64_t end = 0;
  uint64_t next = 0;
  double text_bytes = 0;
  double compressed_bytes = 0;
  for (const StoredPiece& piece : pieces) {
    const uint64_t begin = end;
    end += piece.size_bytes;
    for (; next < end; next += stride_bytes) {
      const uint64_t offset = next - begin;
      sample.resize(static_cast<size_t>(
          std::min(piece.size_bytes - offset, kSampleSizeBytes)));
      QUIRE_RETURN_IF_ERROR(
          ReadStoredText(file, piece.offset + offset, sample));
      QUIRE_ASSIGN_OR_RETURN(const CompressedBytes compressed,
                             CompressStrongly(sample, kSampleEffort));
      text_bytes += static_cast<double>(sample.size());
      compressed_bytes += static_cast<double>(compressed.bytes.size());
    }
  }
  return compressed_bytes / std::max(1.0, text_bytes);
}

}  // namespace

ReorderOptions ReorderOptionsFor(const BuildOptions& build, ReorderMode mode,
                                 std::string directory,
                                 uint64_t text_size_bytes) {
  ReorderOptions options;
  options.spool_directory = std::move(directory);
  options.memory_bytes_max = build.build_memory_bytes;
  options.seek_cost_bytes = build.seek_cost_bytes;
  options.segment_size_bytes =
      std::min(build.segment_size_bytes, text_size_bytes);
  if (mode != ReorderMode::kDuplicates) {
    options.moves = ReorderOptions::Moves::kChunks;
  }
  if (mode == ReorderMode::kAuto) {
    options.price = {.block_size_bytes = build.archive.block_size_bytes};
    options.duplicate_size_bytes_min =
        std::max(kRunPairSizeBytesMin, kWorthwhileDuplicateSizeBytes);
  }
  return options;
}

bool HasLayout(const ReorderedText& text) {
  return std::ranges::any_of(text.segments,
                             [](const ReorderedText::Segment& segment) {
                               return segment.layout.runs.size() > 1;
                             });
}

absl::StatusOr<bool> MayBeWorthReordering(const ReorderedText& text,
                                          uint64_t text_size_bytes,
                                          double gain_min) {
  std::vector<StoredPiece> duplicates;
  uint64_t segment_offset = 0;
  for (const ReorderedText::Segment& segment : text.segments) {
    AppendDuplicates(segment.layout.runs, segment_offset, duplicates);
    segment_offset += segment.layout.stored_text_size_bytes;
  }
  if (duplicates.empty()) {
    return false;
  }
  QUIRE_ASSIGN_OR_RETURN(const double duplicates_ratio,
                         SampledRatio(*text.file, duplicates));
  QUIRE_ASSIGN_OR_RETURN(const double ratio,
                         SampledRatio(*text.file, {{0, text.size_bytes}}));
  return static_cast<double>(TotalBytes(duplicates)) * duplicates_ratio >=
         kDuplicatesOfGain * gain_min * ratio *
             static_cast<double>(text_size_bytes);
}

bool MayBeWorthMoving(uint64_t dictionary_size_bytes,
                      uint64_t dictionary_size_bytes_max,
                      uint64_t text_size_bytes) {
  return dictionary_size_bytes >= dictionary_size_bytes_max / 8 * 7 &&
         dictionary_size_bytes < text_size_bytes / 2;
}

uint64_t RunMemoryBytes(const ReorderedText& text) {
  uint64_t size_bytes = 0;
  for (const ReorderedText::Segment& segment : text.segments) {
    size_bytes += segment.layout.runs.size() * sizeof(StoredRun);
  }
  return size_bytes;
}

double LayoutSizeBytes(const ReorderedText& text) {
  double size_bytes = 0;
  for (const ReorderedText::Segment& segment : text.segments) {
    if (segment.layout.runs.size() > 1) {
      size_bytes +=
          kRunSizeBytes * static_cast<double>(segment.layout.runs.size()) +
          static_cast<double>(segment.layout.checksums.size() *
                              sizeof(uint64_t));
    }
  }
  return size_bytes;
}

absl::StatusOr<double> DictionarySizeBytes(ByteView dictionary,
                                           const std::atomic<bool>* cancel) {
  if (dictionary.empty()) {
    return 0;
  }
  QUIRE_ASSIGN_OR_RETURN(const CompressedBytes compressed,
                         CompressStrongly(dictionary, kTrialEffort, cancel));
  return static_cast<double>(compressed.bytes.size());
}

}  // namespace quire
