// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/block_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

constexpr uint32_t kRawBit = uint32_t{1} << 24;
constexpr uint32_t kRecipeBit = uint32_t{1} << 25;

uint64_t FrameChecksum(FramePlace place, ByteView word_and_payload) {
  return Checksum64(word_and_payload,
                    (uint64_t{place.segment_number} << 40) | place.block_index);
}

}  // namespace

std::optional<FrameWord> FindFrameWord(uint32_t word) {
  const uint32_t bits = word & ~kPayloadSizeBytesMax;
  const uint32_t payload_size_bytes = word & kPayloadSizeBytesMax;
  if ((bits != 0 && bits != kRawBit && bits != kRecipeBit) ||
      payload_size_bytes == 0) {
    return std::nullopt;
  }
  return FrameWord{.payload_size_bytes = payload_size_bytes,
                   .is_raw = bits == kRawBit,
                   .has_recipe = bits == kRecipeBit};
}

absl::StatusOr<FrameWord> ParseFrameWord(uint32_t word) {
  if (const auto found = FindFrameWord(word)) {
    return *found;
  }
  if ((word & kPayloadSizeBytesMax) != 0) {
    return absl::DataLossError(
        absl::StrCat("reserved bits of the frame's word are set: ",
                     absl::Hex(word, absl::kZeroPad8)));
  }
  return absl::DataLossError("the frame has no payload");
}

Payload StoredPayload(ByteView raw, const Payload& payload) {
  const bool is_raw = payload.is_raw || payload.bytes.empty() ||
                      payload.bytes.size() >= raw.size();
  return is_raw ? Payload{.bytes = raw, .is_raw = true} : payload;
}

uint64_t EncodeFrame(FramePlace place, const Payload& payload,
                     std::vector<uint8_t>& frame) {
  const ByteView bytes = payload.bytes;
  const uint32_t bit = payload.is_raw
                           ? kRawBit
                           : (payload.has_recipe ? kRecipeBit : uint32_t{0});
  frame.resize(bytes.size() + kFrameOverheadSizeBytes);
  const size_t checked_size_bytes = frame.size() - sizeof(uint64_t);
  StoreLittleEndian(static_cast<uint32_t>(bytes.size()) | bit, frame.data());
  std::ranges::copy(bytes, frame.begin() + kFrameWordSizeBytes);
  const uint64_t checksum =
      FrameChecksum(place, ByteView(frame).first(checked_size_bytes));
  StoreLittleEndian(checksum, frame.data() + checked_size_bytes);
  return checksum;
}

bool IsFrameOf(FramePlace place, ByteView frame) {
  if (frame.size() <= kFrameOverheadSizeBytes) {
    return false;
  }
  const size_t checked_size_bytes = frame.size() - sizeof(uint64_t);
  return FrameChecksum(place, frame.first(checked_size_bytes)) ==
         LoadLittleEndian<uint64_t>(frame.data() + checked_size_bytes);
}

absl::StatusOr<uint64_t> CheckFrame(FramePlace place, ByteView frame) {
  if (frame.size() <= kFrameOverheadSizeBytes) {
    return absl::DataLossError(
        absl::StrCat("the frame has only ", frame.size(), " bytes"));
  }
  const size_t checked_size_bytes = frame.size() - sizeof(uint64_t);
  const uint64_t expected =
      LoadLittleEndian<uint64_t>(frame.data() + checked_size_bytes);
  const uint64_t found = FrameChecksum(place, frame.first(checked_size_bytes));
  if (found != expected) {
    return absl::DataLossError(
        absl::StrCat("checksum is ", FormatChecksum(found), ", expected ",
                     FormatChecksum(expected)));
  }
  return found;
}

absl::StatusOr<Payload> ParseFrame(ByteView frame, size_t raw_size_bytes,
                                   bool is_cut) {
  const size_t overhead_size_bytes =
      is_cut ? kFrameWordSizeBytes : kFrameOverheadSizeBytes;
  if (frame.size() <= overhead_size_bytes) {
    return absl::DataLossError(
        absl::StrCat("the frame has only ", frame.size(), " bytes"));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const FrameWord word,
      ParseFrameWord(LoadLittleEndian<uint32_t>(frame.data())));
  const ByteView payload =
      frame.subspan(kFrameWordSizeBytes, frame.size() - overhead_size_bytes);
  if (word.payload_size_bytes != payload.size()) {
    return absl::DataLossError(absl::StrCat("payload size is ",
                                            word.payload_size_bytes,
                                            ", expected ", payload.size()));
  }
  if (word.is_raw && payload.size() != raw_size_bytes) {
    return absl::DataLossError(absl::StrCat(
        "text has ", payload.size(), " bytes, expected ", raw_size_bytes));
  }
  return Payload{
      .bytes = payload, .is_raw = word.is_raw, .has_recipe = word.has_recipe};
}

absl::Status DecodeFrame(ByteView frame, MutableByteView raw,
                         const PayloadCodec& codec,
                         PayloadCodec::Scratch& scratch) {
  QUIRE_ASSIGN_OR_RETURN(const Payload payload, ParseFrame(frame, raw.size()));
  return codec.Decode(payload, raw, scratch);
}

uint64_t ExtendBlockChain(uint64_t chain, uint64_t block_checksum) {
  uint8_t bytes[sizeof(block_checksum)];
  StoreLittleEndian(block_checksum, bytes);
  return Checksum64(bytes, chain);
}

}  // namespace quire
