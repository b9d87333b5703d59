// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of a segment's container (FORMAT.md, "Container"): pieces that are
// read, checked and decompressed alone, when they are needed.
#ifndef QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_PART_H_
#define QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_PART_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/format/archive_format.h"

namespace quire {

inline constexpr uint32_t kContainerPartSizeBytesMax = uint32_t{1} << 20;

// A part, as the container refers to it.
struct ContainerPart {
  // Offset in the container's data.
  uint64_t offset = 0;
  // 1 to size_bytes.
  uint32_t stored_size_bytes = 0;
  // Decompressed size, 1 to kContainerPartSizeBytesMax.
  uint32_t size_bytes = 0;
  CompressionMethod method = CompressionMethod::kNone;
  // Checksum of the stored bytes.
  uint64_t checksum = 0;
};

// The data of a container while it is written. Thread-compatible.
class ContainerData {
 public:
  // Appends `raw`, compressed if that is smaller, and returns the reference.
  // Deterministic. REQUIRES: 1 to kContainerPartSizeBytesMax bytes.
  // Errors: Internal  libzstd failed.
  absl::StatusOr<ContainerPart> Append(ByteView raw);

  // Appends a part as another container stores it. REQUIRES: `stored` has
  // part.stored_size_bytes.
  ContainerPart AppendStored(ContainerPart part, ByteView stored);

  const std::string& bytes() const { return bytes_; }

  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Decoded bytes of a part, valid as long as `owner`.
struct PartBytes {
  std::shared_ptr<const void> owner;
  ByteView bytes;
};

// Returns the decoded bytes of a part of one segment; unset if they are not at
// hand, for callers that must not block: they collect the parts, fetch them,
// and call again.
using PartLoader = std::function<absl::StatusOr<std::optional<PartBytes>>(
    const ContainerPart&)>;

// Takes bytes off the front of `in`, which is untrusted. Errors: DataLoss.
absl::StatusOr<ByteView> TakeContainerBytes(ByteView& in, uint64_t size_bytes);

void AppendPartReference(const ContainerPart& part, std::string& out);

// Takes a reference off the front of `in`. `data_size_bytes` is the size of the
// container's data. Errors: DataLoss.
absl::StatusOr<ContainerPart> TakePartReference(ByteView& in,
                                                uint64_t data_size_bytes);

// Compares the stored bytes of a part with its size and checksum.
// Errors: DataLoss.
absl::Status CheckStoredPart(const ContainerPart& part, ByteView stored);

// Checks and decompresses a part. Thread-safe.
// REQUIRES: `raw` has part.size_bytes. Errors: DataLoss.
absl::Status DecodePart(const ContainerPart& part, ByteView stored,
                        MutableByteView raw);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CONTAINER_CONTAINER_PART_H_
