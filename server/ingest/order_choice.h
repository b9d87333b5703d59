// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decides whether a build reorders its text, from the size of the archive
// either way.
#ifndef QUIRE_SERVER_INGEST_ORDER_CHOICE_H_
#define QUIRE_SERVER_INGEST_ORDER_CHOICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/ingest/build_options.h"
#include "server/ingest/dictionary/dictionary_choice.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {

// Returns the reordering options of a text of `text_size_bytes` for `build` in
// `mode`, which is not kOff. `directory` is that of the archive; kAuto is the
// order that it tries for codecs without a dictionary.
ReorderOptions ReorderOptionsFor(const BuildOptions& build, ReorderMode mode,
                                 std::string directory,
                                 uint64_t text_size_bytes);

// Returns false if `text` is that of the documents in order.
bool HasLayout(const ReorderedText& text);

// Returns false if duplicates are so little of the text, of `text_size_bytes`,
// that an archive with a dictionary cannot become smaller by the part
// `gain_min`. Counts text by the size of samples compressed with zstd. Errors:
// those of ReadStoredText().
absl::StatusOr<bool> MayBeWorthReordering(const ReorderedText& text,
                                          uint64_t text_size_bytes,
                                          double gain_min);

// Returns false if similar text need not be moved together, as a dictionary of
// `dictionary_size_bytes` has the repeated text of `text_size_bytes`: it is
// smaller than its limit, or is itself most of the text.
bool MayBeWorthMoving(uint64_t dictionary_size_bytes,
                      uint64_t dictionary_size_bytes_max,
                      uint64_t text_size_bytes);

// Returns the memory of all segments' runs, in bytes.
uint64_t RunMemoryBytes(const ReorderedText& text);

// Returns the approximate size of all segments' layouts in the archive.
double LayoutSizeBytes(const ReorderedText& text);

// Blocks that a trial encodes: of texts above kTrialTextSizeBytes every second,
// third or fourth, or all.
enum class TrialBlocks { kSome, kAll };

inline constexpr uint64_t kTrialTextSizeBytes = uint64_t{32} << 20;

struct SizeEstimate {
  // Blocks, and the dictionary unless it is that of an archive that grows.
  double size_bytes = 0;
  // Standard error of `size_bytes`; 0 if every block was encoded.
  double error_bytes = 0;
};

// Estimates the size of the archive of a text with the codec of
// `options.archive` and with `context`, without inflating members. Compresses
// blocks and dictionary with less effort than a build does. Takes one pass over
// the text, on `options.threads` threads and one for the dictionary.
// REQUIRES: text_size_bytes > 0.
// Errors: those of MakePayloadCodec(), ParallelEncoder and `pass`;
//         Cancelled  `options.cancel` became true.
absl::StatusOr<SizeEstimate> EstimateSize(
    const BuildOptions& options,
    const std::shared_ptr<const CodecContext>& context,
    uint64_t text_size_bytes, TrialBlocks trial_blocks, const TextPass& pass);

// True if an archive estimated as `changed` is smaller than one estimated as
// `plain` by the part `gain_min`, and by the error of the difference.
bool IsClearlySmaller(const SizeEstimate& changed, const SizeEstimate& plain,
                      double gain_min);

// True if the errors leave open whether it is: a trial of all blocks has none.
bool IsWithinError(const SizeEstimate& changed, const SizeEstimate& plain,
                   double gain_min);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_ORDER_CHOICE_H_
