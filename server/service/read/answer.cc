// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "codecs/base/checksum.h"
#include "server/archive/archive_part.h"

namespace quire {
namespace {

// A full queue holds more than a hundred thousand reads.
constexpr absl::Duration kReadQueueRetryAfter = absl::Seconds(1);

}  // namespace

uint64_t SizeBytesOf(const std::vector<BlockPiece>& pieces) {
  uint64_t size_bytes = 0;
  for (const BlockPiece& piece : pieces) {
    size_bytes += piece.size_bytes;
  }
  return size_bytes;
}

uint64_t ChecksumOf(const std::vector<BlockPiece>& pieces) {
  if (pieces.size() == 1) {
    return Checksum64(pieces.front().bytes());
  }
  Checksummer64 checksummer;
  for (const BlockPiece& piece : pieces) {
    checksummer.Add(piece.bytes());
  }
  return checksummer.Get();
}

absl::Status ExplainBlockError(const ServedArchive& archive,
                               const absl::Status& status, BlockAddress block,
                               const ErrorMetadata& more) {
  const std::optional<uint64_t> part_offset = PartOffsetOf(block.block_index);
  ErrorMetadata metadata = {
      {"archive", archive.name},
      {"segment", absl::StrCat(block.segment_index)},
      {part_offset.has_value() ? "container_offset" : "block",
       absl::StrCat(part_offset.value_or(block.block_index))}};
  const std::string place =
      absl::StrCat(BlockOrPartName(block.block_index), " of segment ",
                   block.segment_index, " of archive \"", archive.name, "\"");
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      metadata.insert(metadata.end(), more.begin(), more.end());
      return ServiceError(
          status.code(), v1::BLOCK_DAMAGED,
          absl::StrCat(place, " is damaged; `quired verify` on the server ",
                       "names what it touches"),
          metadata);
    case absl::StatusCode::kUnavailable:
      return ServiceError(status.code(), v1::DEVICE_FAILED,
                          absl::StrCat(place, " could not be read"), metadata);
    case absl::StatusCode::kResourceExhausted:
      return ServiceError(status.code(), v1::SERVER_BUSY,
                          "the server's read queue is full; retry later", {},
                          kReadQueueRetryAfter);
    case absl::StatusCode::kCancelled:
      return ServiceError(status.code(), v1::CALL_CANCELLED,
                          "the call was cancelled");
    default:
      return status;
  }
}

}  // namespace quire
