// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/container/container_part.h"

#include <zstd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/section_compression.h"

namespace quire {
namespace {

// Parts are compressed while documents are read, and read often.
constexpr CompressionEffort kPartEffort = {
    .xz_size_bytes_max = 0, .is_text = false, .small_zstd_level = 9};

}  // namespace

absl::StatusOr<ContainerPart> ContainerData::Append(ByteView raw) {
  QUIRE_ASSIGN_OR_RETURN(const CompressedBytes compressed,
                         CompressStrongly(raw, kPartEffort));
  ContainerPart part = {
      .offset = bytes_.size(),
      .stored_size_bytes = static_cast<uint32_t>(compressed.bytes.size()),
      .size_bytes = static_cast<uint32_t>(raw.size()),
      .method = compressed.method,
      .checksum = Checksum64(AsBytes(compressed.bytes))};
  bytes_.append(compressed.bytes);
  return part;
}

ContainerPart ContainerData::AppendStored(ContainerPart part, ByteView stored) {
  part.offset = bytes_.size();
  bytes_.append(AsText(stored).data(), stored.size());
  return part;
}

absl::StatusOr<ByteView> TakeContainerBytes(ByteView& in, uint64_t size_bytes) {
  if (size_bytes > in.size()) {
    return Damaged(
        absl::StrCat("there are ", in.size(), " bytes, expected ", size_bytes));
  }
  const ByteView bytes = in.first(size_bytes);
  in = in.subspan(size_bytes);
  return bytes;
}

void AppendPartReference(const ContainerPart& part, std::string& out) {
  AppendVarint(part.offset, out);
  AppendVarint(part.stored_size_bytes, out);
  AppendVarint(part.size_bytes, out);
  AppendVarint(static_cast<uint64_t>(part.method), out);
  uint8_t checksum[sizeof(uint64_t)];
  StoreLittleEndian(part.checksum, checksum);
  out.append(reinterpret_cast<const char*>(checksum), sizeof(checksum));
}

absl::StatusOr<ContainerPart> TakePartReference(ByteView& in,
                                                uint64_t data_size_bytes) {
  ContainerPart part;
  QUIRE_ASSIGN_OR_RETURN(part.offset, TakeVarint(in));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t stored_size_bytes, TakeVarint(in));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, TakeVarint(in));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t method, TakeVarint(in));
  if (size_bytes == 0 || size_bytes > kContainerPartSizeBytesMax ||
      stored_size_bytes == 0 || stored_size_bytes > size_bytes ||
      part.offset > data_size_bytes ||
      stored_size_bytes > data_size_bytes - part.offset) {
    return Damaged(absl::StrCat("a part has ", stored_size_bytes, " bytes for ",
                                size_bytes, ", at byte ", part.offset, " of ",
                                data_size_bytes));
  }
  if (method > static_cast<uint64_t>(CompressionMethod::kZstd) ||
      (method == static_cast<uint64_t>(CompressionMethod::kNone) &&
       stored_size_bytes != size_bytes)) {
    return Damaged(absl::StrCat("a part is compressed by method ", method,
                                ", to ", stored_size_bytes, " bytes of ",
                                size_bytes));
  }
  part.stored_size_bytes = static_cast<uint32_t>(stored_size_bytes);
  part.size_bytes = static_cast<uint32_t>(size_bytes);
  part.method = static_cast<CompressionMethod>(method);
  if (in.size() < sizeof(uint64_t)) {
    return Damaged("a reference to a part has no checksum");
  }
  part.checksum = LoadLittleEndian<uint64_t>(in.data());
  in = in.subspan(sizeof(uint64_t));
  return part;
}

absl::Status CheckStoredPart(const ContainerPart& part, ByteView stored) {
  if (stored.size() != part.stored_size_bytes) {
    return Damaged(absl::StrCat("a part has ", stored.size(),
                                " bytes, expected ", part.stored_size_bytes));
  }
  const uint64_t found = Checksum64(stored);
  return found == part.checksum
             ? absl::OkStatus()
             : ChecksumMismatch("checksum of a part of the container", found,
                                part.checksum);
}

absl::Status DecodePart(const ContainerPart& part, ByteView stored,
                        MutableByteView raw) {
  QUIRE_RETURN_IF_ERROR(CheckStoredPart(part, stored));
  if (part.method == CompressionMethod::kNone) {
    std::ranges::copy(stored, raw.begin());
    return absl::OkStatus();
  }
  const size_t frame_size_bytes =
      ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  const size_t size_bytes = frame_size_bytes != stored.size()
                                ? SIZE_MAX
                                : ZSTD_decompress(raw.data(), raw.size(),
                                                  stored.data(), stored.size());
  return size_bytes == raw.size()
             ? absl::OkStatus()
             : Damaged(
                   absl::StrCat("a part of the container is not a frame of ",
                                raw.size(), " bytes"));
}

}  // namespace quire
