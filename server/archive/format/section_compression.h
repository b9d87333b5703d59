// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compression of an archive's dictionary and index sections: slow and strong,
// since they are written once and read only when an archive is opened.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/rlz/text_frame.h"
#include "server/archive/format/archive_format.h"

namespace quire {

struct CompressedBytes {
  CompressionMethod method = CompressionMethod::kNone;
  std::string bytes;
};

// Trades time for size.
struct CompressionEffort {
  // Largest input that xz compresses, at 1 to 5 MB/s.
  uint64_t xz_size_bytes_max;
  // True for text: xz uses settings for text, and compresses inputs of 2 MiB
  // and more in parts of at least 1 MiB, on two threads, if these have nothing
  // in common: parts take down to half of the time.
  bool is_text;
  // Level of zstd, with a long window, for larger inputs ...
  int zstd_level = 0;
  // ... unless those above a MiB are compressed as a text frame.
  std::optional<TextFrameEffort> text_frame = std::nullopt;
  // Level of zstd for inputs up to a MiB.
  int small_zstd_level = 19;
};

// For dictionaries of archives that are to be small.
inline constexpr CompressionEffort kSmallDictionaryEffort = {
    .xz_size_bytes_max = uint64_t{1} << 31, .is_text = true};
// For dictionaries in general: they open in an eighth of the time.
inline constexpr CompressionEffort kDictionaryEffort = {
    .xz_size_bytes_max = 0,
    .is_text = true,
    .text_frame = TextFrameEffort::kStrong};
// For those of archives that are built for speed.
inline constexpr CompressionEffort kFastDictionaryEffort = {
    .xz_size_bytes_max = 0,
    .is_text = true,
    .text_frame = TextFrameEffort::kQuick};
// For estimates: about a sixth larger than with kDictionaryEffort, in a
// fifteenth of the time.
inline constexpr CompressionEffort kTrialEffort = {
    .xz_size_bytes_max = 0, .is_text = true, .zstd_level = 6};
// For sections, which are compressed while nothing else runs: at most about 15
// seconds with xz. Larger inputs use zstd at 10 MB/s and more, for a tenth more
// size.
inline constexpr CompressionEffort kSectionEffort = {
    .xz_size_bytes_max = uint64_t{16} << 20,
    .is_text = false,
    .zstd_level = 12};

// Returns the smallest of `raw` itself and the results of the methods within
// the effort; up to a MiB always tries zstd. Deterministic.
// Takes up to 700 MB of working memory, and for text in parts twice `raw` more.
// Text in parts or in a frame takes two threads.
// `cancel`, if given, is checked periodically.
// Errors: Cancelled  `cancel` is true.
//         Internal   libzstd failed.
absl::StatusOr<CompressedBytes> CompressStrongly(
    ByteView raw, const CompressionEffort& effort,
    const std::atomic<bool>* cancel = nullptr);

// Decompresses `stored`, which is untrusted. Memory grows with the output, to
// at most `size_bytes`, plus 130 MiB for the decoder; zstd begins with up to 64
// times `stored`, at most 64 MiB. The result has no spare capacity. `cancel` is
// as above. Errors: DataLoss   not `size_bytes` bytes compressed by `method`.
//         Cancelled
absl::StatusOr<std::string> Decompress(
    CompressionMethod method, ByteView stored, uint64_t size_bytes,
    const std::atomic<bool>* cancel = nullptr);

// Estimates the memory of Decompress() without its result.
uint64_t DecompressionBytes(uint64_t size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_
