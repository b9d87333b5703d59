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
  // Up to this size xz is worth its time,
  uint64_t xz_size_bytes_max;
  // which is 1 to 5 MB/s, or a third of that if `xz_extreme`.
  bool xz_extreme;
  // Above, zstd with a long window and this level.
  int zstd_level;
};

// Compressed while blocks are encoded, in about a second for each MiB, and
// a part of the archive that is larger the larger the dictionary: always xz.
// (Of 192 MiB zstd at level 19 made 7 % more.)
inline constexpr CompressionEffort kDictionaryEffort = {
    .xz_size_bytes_max = uint64_t{1} << 31,
    .xz_extreme = true,
    .zstd_level = 19};
// Compressed while nothing else happens: at most some 15 seconds with xz;
// beyond, 10 MB/s and more for a tenth more size.
inline constexpr CompressionEffort kSectionEffort = {
    .xz_size_bytes_max = uint64_t{16} << 20,
    .xz_extreme = false,
    .zstd_level = 12};

// The smallest of `raw` itself and what the methods make of it within the
// effort; up to a MiB, zstd at level 19 is tried too. Deterministic. Takes up
// to 700 MB of working memory. `cancel` is looked at now and then, if given;
// Cancelled once it is true. Errors: Cancelled.
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
