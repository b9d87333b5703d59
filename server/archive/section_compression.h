// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compression of an archive's dictionary and index sections: slow and strong,
// as they are written once and read at opening.
#ifndef QUIRE_SERVER_ARCHIVE_SECTION_COMPRESSION_H_
#define QUIRE_SERVER_ARCHIVE_SECTION_COMPRESSION_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/archive_format.h"

namespace quire {

struct CompressedBytes {
  CompressionMethod method = CompressionMethod::kNone;
  std::string bytes;
};

// The smallest of what the methods make of `raw`: xz at its strongest, and zstd
// where it is quick to try (up to a MiB) or xz would take too long (from 64 MiB
// on). Deterministic. About 2 MB/s; up to 700 MB of working memory.
// `cancel` is looked at now and then, if given; Cancelled once it is true.
// Errors: Cancelled; ResourceExhausted  not enough memory.
absl::StatusOr<CompressedBytes> CompressStrongly(
    ByteView raw, const std::atomic<bool>* cancel = nullptr);

// Undoes it for `stored`, which is untrusted. Memory grows with what really
// comes out, to `size_bytes` at most, beside 130 MiB for the decoder.
// Errors: DataLoss           not `size_bytes` bytes compressed by `method`.
//         ResourceExhausted  not enough memory.
absl::StatusOr<std::string> Decompress(CompressionMethod method,
                                       ByteView stored, uint64_t size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SECTION_COMPRESSION_H_
