// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks the stored bytes of an opened segment that are not blocks: indexes,
// which only the next opening would read, and the data of the container.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
absl::Status SegmentReader::CheckIndexes(
    const BeforeRead& before_read, std::vector<absl::Status>& damages) const {
  const auto check = [&](absl::string_view name, uint64_t offset,
                         uint64_t size_bytes, uint64_t expected) {
    const auto found = ReadChecksum(fd_, offset, size_bytes, name, before_read);
    return NoteDamage(
        InFile(file_, found.ok() && *found != expected
                          ? ChecksumMismatch(absl::StrCat(name, " checksum"),
                                             *found, expected)
                          : found.status()),
        damages);
  };
  const std::string header = EncodeSegmentHeader(header_);
  QUIRE_RETURN_IF_ERROR(
      check("segment header", 0, header.size(), Checksum64(AsBytes(header))));
  uint64_t end = footer_.blocks_end;
  for (const SectionEntry& entry : footer_.sections) {
    if (entry.type != static_cast<uint32_t>(SectionType::kContainerData)) {
      QUIRE_RETURN_IF_ERROR(check(SectionName(entry.type), entry.offset,
                                  entry.stored_size_bytes, entry.checksum));
    }
    end = entry.offset + entry.stored_size_bytes;
  }
  SegmentFooter copy = footer_;
  const std::string footer = EncodeSegmentFooter(copy, header_.number);
  return check("footer", end, footer.size(), Checksum64(AsBytes(footer)));
}

absl::Status SegmentReader::CheckContainer(const ReadExtent& read) const {
  const SectionEntry* const data = footer_.Find(SectionType::kContainerData);
  if (data == nullptr) {
    return absl::OkStatus();
  }
  constexpr uint64_t kPieceSizeBytes = uint64_t{256} << 10;
  Checksummer64 checksum;
  std::vector<uint8_t> piece;
  for (uint64_t done = 0; done < data->stored_size_bytes;
       done += piece.size()) {
    piece.resize(std::min(kPieceSizeBytes, data->stored_size_bytes - done));
    QUIRE_RETURN_IF_ERROR(
        read({.fd = fd_,
              .offset = {data->offset + done},
              .size_bytes = static_cast<uint32_t>(piece.size())},
             piece));
    checksum.Add(piece);
  }
  return checksum.Get() == data->checksum
             ? absl::OkStatus()
             : InFile(absl::StrCat(file_, ": ", SectionName(data->type)),
                      ChecksumMismatch("checksum", checksum.Get(),
                                       data->checksum));
}

absl::Status SegmentReader::CheckContainer() const {
  const std::string name = absl::StrCat(
      file_, ": ",
      SectionName(static_cast<uint32_t>(SectionType::kContainerData)));
  return CheckContainer([&name](const Extent& extent, MutableByteView stored) {
    return ReadExactly(extent.fd, extent.offset.value, stored, name);
  });
}

}  // namespace quire
