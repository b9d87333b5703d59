// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text of a segment, read block by block past damage: for offline use.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_TEXT_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/segment_reader.h"

namespace quire {

// Caches the newest blocks, about 16 MiB. Thread-compatible.
class SegmentText {
 public:
  // `segment` and `codec` must outlive it. Without a codec only blocks that are
  // stored as text can be read. All blocks have at most `block_size_bytes_max`
  // of text.
  SegmentText(const SegmentReader& segment, const PayloadCodec* codec,
              uint32_t block_size_bytes_max);

  // A part of the text: its bytes, which are valid during the call, or the
  // error of its block.
  using Visitor = absl::FunctionRef<absl::Status(
      uint64_t size_bytes, const absl::StatusOr<ByteView>& part)>;

  // Calls `visit` for the parts of a range in order, each within one block.
  // Returns its first error and ends there. REQUIRES: the range is in the
  // segment. Errors of blocks: as SegmentReader::ReadFrame().
  absl::Status Visit(uint64_t offset, uint64_t size_bytes, Visitor visit);

 private:
  struct Kept {
    uint64_t index = UINT64_MAX;
    absl::Status status;
    std::vector<uint8_t> text;
  };

  const Kept& Block(uint64_t block_index);
  absl::Status ReadBlock(uint64_t block_index, MutableByteView text);

  const SegmentReader& segment_;
  const PayloadCodec* const codec_;
  const size_t block_count_max_;
  // Null without a codec.
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  std::vector<uint8_t> frame_;
  std::vector<Kept> blocks_;
  // Index of the entry to replace next.
  size_t oldest_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_TEXT_H_
