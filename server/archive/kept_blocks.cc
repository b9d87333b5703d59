// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/kept_blocks.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/block_frame.h"
#include "server/archive/format/member_count.h"

namespace quire {
namespace {

absl::StatusOr<bool> HasHeader(const ReadableFile& file,
                               const SegmentHeader& header) {
  if (file.size_bytes() < kSegmentHeaderSizeBytes) {
    return false;
  }
  std::array<uint8_t, kSegmentHeaderSizeBytes> found;
  QUIRE_RETURN_IF_ERROR(ReadExactly(file.fd.get(), 0, found, file.path));
  return std::ranges::equal(found, AsBytes(EncodeSegmentHeader(header)));
}

// Reads the frame at `offset`; false if it is incomplete.
absl::StatusOr<bool> ReadFrameAt(const ReadableFile& file, uint64_t offset,
                                 std::vector<uint8_t>& frame) {
  const uint64_t left = file.size_bytes() - offset;
  if (left <= kFrameOverheadSizeBytes) {
    return false;
  }
  std::array<uint8_t, kFrameWordSizeBytes> word_bytes;
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(file.fd.get(), offset, word_bytes, file.path));
  const absl::StatusOr<FrameWord> word =
      ParseFrameWord(LoadLittleEndian<uint32_t>(word_bytes.data()));
  if (!word.ok() || word->payload_size_bytes > kBlockSizeBytesMax ||
      word->payload_size_bytes > left - kFrameOverheadSizeBytes) {
    return false;
  }
  frame.resize(word->payload_size_bytes + kFrameOverheadSizeBytes);
  QUIRE_RETURN_IF_ERROR(ReadExactly(file.fd.get(), offset, frame, file.path));
  return true;
}

}  // namespace

absl::StatusOr<KeptBlocks> ReadKeptBlocks(
    int directory_fd, const std::string& directory, const SegmentHeader& header,
    const std::function<absl::Status(uint64_t size_bytes)>& on_read) {
  const std::string name = SegmentFileName(header.number);
  const absl::StatusOr<ReadableFile> file =
      OpenReadableFile(directory_fd, name, absl::StrCat(directory, "/", name));
  KeptBlocks kept;
  if (absl::IsNotFound(file.status())) {
    return kept;
  }
  QUIRE_RETURN_IF_ERROR(file.status());
  QUIRE_ASSIGN_OR_RETURN(const bool has_header, HasHeader(*file, header));
  if (!has_header) {
    return kept;
  }
  kept.end = kSegmentHeaderSizeBytes;
  std::vector<uint8_t> frame;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const bool is_there,
                           ReadFrameAt(*file, kept.end, frame));
    if (!is_there) {
      return kept;
    }
    const absl::StatusOr<uint64_t> checksum =
        CheckFrame({header.number, kept.blocks.size()}, frame);
    const absl::StatusOr<Payload> payload =
        ParseFrame(frame, frame.size() - kFrameOverheadSizeBytes);
    if (!checksum.ok() || !payload.ok()) {
      return kept;
    }
    kept.blocks.push_back(
        {.payload_size_bytes = static_cast<uint32_t>(payload->bytes.size()),
         .member = MemberOf(*payload, header.partition_size_bytes != 0),
         .is_raw = payload->is_raw});
    if (payload->has_recipe) {
      kept.has_recipes = true;
      kept.inflated.Add(payload->bytes);
    }
    kept.block_chain = ExtendBlockChain(kept.block_chain, *checksum);
    kept.end += frame.size();
    QUIRE_RETURN_IF_ERROR(on_read(frame.size()));
  }
}

}  // namespace quire
