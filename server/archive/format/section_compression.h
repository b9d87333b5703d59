// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compression of an archive's dictionary and index sections: slow and strong,
// as they are written once and read at opening.
#ifndef QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_
#define QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/format/archive_format.h"

namespace quire {

struct CompressedBytes {
  CompressionMethod method = CompressionMethod::kNone;
  std::string bytes;
};

// How long compression may take.
struct CompressionEffort {
  // Upper bound on what xz compresses, at 1 to 5 MB/s.
  uint64_t xz_size_bytes_max;
  // For text: xz uses settings that suit it, and from 2 MiB on compresses two
  // halves on two threads unless they have much in common.
  bool is_text;
  // Level of zstd, with a long window, above that bound.
  int zstd_level;
};

// For dictionaries, which are compressed while blocks are encoded. Always xz: a
// dictionary is a large part of an archive, and zstd at level 19 takes as long
// for 4 to 10 % more.
inline constexpr CompressionEffort kDictionaryEffort = {
    .xz_size_bytes_max = uint64_t{1} << 31, .is_text = true, .zstd_level = 19};
// For estimates: about a fifth more than kDictionaryEffort, in a fiftieth of
// its time.
inline constexpr CompressionEffort kTrialEffort = {
    .xz_size_bytes_max = 0, .is_text = true, .zstd_level = 5};
// Compressed while nothing else happens: at most some 15 seconds with xz;
// beyond, 10 MB/s and more for a tenth more size.
inline constexpr CompressionEffort kSectionEffort = {
    .xz_size_bytes_max = uint64_t{16} << 20,
    .is_text = false,
    .zstd_level = 12};

// The smallest of `raw` itself and what the methods make of it within the
// effort; up to a MiB, zstd at level 19 is tried too. Deterministic. Takes up
// to 700 MB of working memory, and for text in halves twice `raw` more.
// `cancel` is looked at now and then, if given; Cancelled once it is true.
// Errors: Cancelled.
absl::StatusOr<CompressedBytes> CompressStrongly(
    ByteView raw, const CompressionEffort& effort,
    const std::atomic<bool>* cancel = nullptr);

// Undoes it for `stored`, which is untrusted. Memory grows with what really
// comes out, to `size_bytes` at most, besides 130 MiB for the decoder; the
// string that is returned has no spare capacity. `cancel` is as above.
// Errors: DataLoss   not `size_bytes` bytes compressed by `method`.
//         Cancelled
absl::StatusOr<std::string> Decompress(
    CompressionMethod method, ByteView stored, uint64_t size_bytes,
    const std::atomic<bool>* cancel = nullptr);

// About what Decompress() takes besides what it returns.
uint64_t DecompressionBytes(uint64_t size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FORMAT_SECTION_COMPRESSION_H_
