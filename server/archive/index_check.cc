// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks the stored bytes of an opened segment that are not blocks:
// only the next opening would read them.
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
    QUIRE_RETURN_IF_ERROR(check(SectionName(entry.type), entry.offset,
                                entry.stored_size_bytes, entry.checksum));
    end = entry.offset + entry.stored_size_bytes;
  }
  SegmentFooter copy = footer_;
  const std::string footer = EncodeSegmentFooter(copy, header_.number);
  return check("footer", end, footer.size(), Checksum64(AsBytes(footer)));
}

}  // namespace quire
