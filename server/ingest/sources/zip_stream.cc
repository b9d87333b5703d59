// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/zip_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The record that ends a zip (APPNOTE.TXT of PKWARE, sections 4.3.12
// to 4.3.16).
constexpr size_t kZipEndSizeBytes = 22;
constexpr size_t kZipCommentSizeBytesMax = 0xFFFF;
constexpr size_t kZip64LocatorSizeBytes = 20;
constexpr absl::string_view kZipEndMagic = "PK\5\6";
constexpr absl::string_view kZipEntryMagic = "PK\1\2";
constexpr absl::string_view kZip64LocatorMagic = "PK\6\7";
constexpr absl::string_view kZip64EndMagic = "PK\6\6";
constexpr size_t kZip64EndSizeBytes = 56;
constexpr size_t kZipEntrySizeBytes = 46;
// The header of an entry, and the flag of one whose sizes follow its contents.
constexpr size_t kZipHeaderSizeBytes = 30;
constexpr absl::string_view kZipHeaderMagic = "PK\3\4";
constexpr uint16_t kHasDescriptor = 1 << 3;
constexpr uint16_t kIsEncrypted = 1;
// Tag of the field of an entry that holds what has more than 32 bits.
constexpr uint16_t kZip64Field = 1;
// libarchive looks for the end of the list in as many bytes.
constexpr size_t kZipEndSearchSizeBytes = size_t{16} << 10;
// A zip without entries, up to the size of its comment.
constexpr absl::string_view kEmptyZip("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                                      kZipEndSizeBytes - sizeof(uint16_t));

// True if the bytes of `file` at `offset` are `magic`.
bool IsAt(const InputFile& file, uint64_t offset, absl::string_view magic) {
  std::vector<uint8_t> bytes(magic.size());
  const absl::StatusOr<size_t> got = file.ReadAt(offset, bytes);
  return got.ok() && *got == bytes.size() && AsText(bytes) == magic;
}

// True if `end`, at `offset` of `file`, locates a list of entries before it.
bool LocatesEntries(const InputFile& file, uint64_t offset,
                    const uint8_t* end) {
  if (offset >= kZip64LocatorSizeBytes &&
      IsAt(file, offset - kZip64LocatorSizeBytes, kZip64LocatorMagic)) {
    return true;
  }
  const uint64_t list_size_bytes = LoadLittleEndian<uint32_t>(end + 12);
  const uint64_t list_offset = LoadLittleEndian<uint32_t>(end + 16);
  if (list_offset + list_size_bytes > offset) {
    return false;
  }
  // libarchive, too, looks for the list right before its end: in a zip that
  // follows other bytes, offsets may be from its own start.
  return list_size_bytes == 0
             ? list_offset == offset
             : IsAt(file, offset - list_size_bytes, kZipEntryMagic);
}

// Returns the offset of the zip's comment, or the file's size if no comment
// ends there. libarchive 3.6 takes the last signature in the last 16 KiB for
// the zip's end, although it can be text of the comment.
// Errors: Unavailable.
absl::StatusOr<uint64_t> ZipCommentOffset(
    const std::shared_ptr<const InputFile>& shared_file) {
  const InputFile& file = *shared_file;
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file.SizeBytes());
  std::vector<uint8_t> bytes(std::min<uint64_t>(
      size_bytes, kZipEndSizeBytes + kZipCommentSizeBytesMax));
  const uint64_t start = size_bytes - bytes.size();
  FileStream stream(shared_file, start);
  QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadFully(stream, bytes));
  const absl::string_view text = AsText(ByteView(bytes).first(got));
  size_t found = text.rfind(kZipEndMagic);
  while (found != absl::string_view::npos) {
    const size_t comment = found + kZipEndSizeBytes;
    if (comment <= text.size() &&
        LoadLittleEndian<uint16_t>(&bytes[comment - sizeof(uint16_t)]) ==
            text.size() - comment &&
        LocatesEntries(file, start + found, &bytes[found])) {
      return start + comment;
    }
    if (found == 0) {
      break;
    }
    found = text.rfind(kZipEndMagic, found - 1);
  }
  return size_bytes;
}

// Reads all of `out` at `offset`. Errors: DataLoss  the file ends before.
absl::Status ReadWhole(const std::shared_ptr<const InputFile>& file,
                       uint64_t offset, MutableByteView out) {
  FileStream stream(file, offset);
  QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadFully(stream, out));
  return got == out.size() ? absl::OkStatus()
                           : absl::DataLossError(absl::StrCat(
                                 file->name(), ": ends at byte ", offset + got,
                                 ", inside its list of entries"));
}

// Place of an entry, by its record in the list.
struct EntryPlace {
  uint64_t header_offset = 0;
  uint64_t stored_size_bytes = 0;
};

// Numbers of more than 32 bits are in a field of the record.
EntryPlace PlaceOf(ByteView record) {
  EntryPlace place = {
      .header_offset = LoadLittleEndian<uint32_t>(record.data() + 42),
      .stored_size_bytes = LoadLittleEndian<uint32_t>(record.data() + 20)};
  const bool has_long_text =
      LoadLittleEndian<uint32_t>(record.data() + 24) == UINT32_MAX;
  const size_t name_size = LoadLittleEndian<uint16_t>(record.data() + 28);
  const size_t fields_size = LoadLittleEndian<uint16_t>(record.data() + 30);
  ByteView fields = record.subspan(kZipEntrySizeBytes + name_size, fields_size);
  while (fields.size() >= 4) {
    const size_t size = std::min<size_t>(
        fields.size() - 4, LoadLittleEndian<uint16_t>(fields.data() + 2));
    const ByteView value = fields.subspan(4, size);
    if (LoadLittleEndian<uint16_t>(fields.data()) == kZip64Field) {
      size_t at = has_long_text ? sizeof(uint64_t) : 0;
      for (uint64_t* const number :
           {&place.stored_size_bytes, &place.header_offset}) {
        if (*number == UINT32_MAX && at + sizeof(uint64_t) <= value.size()) {
          *number = LoadLittleEndian<uint64_t>(value.data() + at);
          at += sizeof(uint64_t);
        }
      }
      break;
    }
    fields = fields.subspan(4 + size);
  }
  return place;
}

// Returns the size of the sizes at `offset`, after the contents of an entry:
// with or without a magic number, in 32 or 64 bits. Errors: Unavailable.
absl::StatusOr<size_t> DescriptorSize(const InputFile& file, uint64_t offset,
                                      uint64_t stored_size_bytes) {
  std::array<uint8_t, 24> bytes = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(offset, bytes));
  // The magic number, and the checksum.
  size_t at = AsText(ByteView(bytes)).substr(0, 4) == "PK\7\x08" ? 8 : 4;
  at += LoadLittleEndian<uint64_t>(&bytes[at]) == stored_size_bytes ? 16 : 8;
  return std::min(at, got);
}

// `record` is that of an entry in the list.
bool IsPcName(const uint8_t* record) {
  constexpr uint16_t kIsUtf8 = 1 << 11;
  // FAT, HPFS, and NTFS, which has two numbers.
  constexpr std::array<uint8_t, 4> kPcSystems = {0, 6, 10, 11};
  return (LoadLittleEndian<uint16_t>(record + 8) & kIsUtf8) == 0 &&
         std::ranges::find(kPcSystems, record[5]) != kPcSystems.end();
}

template <typename Number>
void AppendNumber(Number number, std::vector<uint8_t>& bytes) {
  bytes.resize(bytes.size() + sizeof(number));
  StoreLittleEndian(number, bytes.data() + bytes.size() - sizeof(number));
}

void AppendMagic(absl::string_view magic, std::vector<uint8_t>& bytes) {
  bytes.insert(bytes.end(), magic.begin(), magic.end());
}

// Appends what ends a list of `size_bytes` at `offset`.
void AppendEnd(uint64_t count, uint64_t size_bytes, uint64_t stated_offset,
               uint64_t offset, std::vector<uint8_t>& bytes) {
  if (stated_offset >= UINT32_MAX) {
    AppendMagic(kZip64EndMagic, bytes);
    AppendNumber(uint64_t{kZip64EndSizeBytes - 12}, bytes);
    // Versions, and numbers of disks.
    AppendNumber(uint32_t{45 << 16 | 45}, bytes);
    AppendNumber(uint64_t{0}, bytes);
    AppendNumber(count, bytes);
    AppendNumber(count, bytes);
    AppendNumber(size_bytes, bytes);
    AppendNumber(stated_offset, bytes);
    AppendMagic(kZip64LocatorMagic, bytes);
    AppendNumber(uint32_t{0}, bytes);
    AppendNumber(offset + size_bytes, bytes);
    AppendNumber(uint32_t{1}, bytes);
  }
  const auto count16 =
      static_cast<uint16_t>(std::min<uint64_t>(count, UINT16_MAX));
  AppendMagic(kZipEndMagic, bytes);
  AppendNumber(uint32_t{0}, bytes);
  AppendNumber(count16, bytes);
  AppendNumber(count16, bytes);
  AppendNumber(static_cast<uint32_t>(size_bytes), bytes);
  AppendNumber(
      static_cast<uint32_t>(std::min<uint64_t>(stated_offset, UINT32_MAX)),
      bytes);
  AppendNumber(uint16_t{0}, bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ZipStream>> ZipStream::Open(
    std::shared_ptr<const InputFile> file) {
  QUIRE_ASSIGN_OR_RETURN(uint64_t end, ZipCommentOffset(file));
  // libarchive 3.6 does not find the end at offset 0. An empty file has no
  // entries either.
  if (end == kZipEndSizeBytes && IsAt(*file, 0, kEmptyZip)) {
    end = 0;
  }
  return std::make_unique<ZipStream>(std::move(file), end,
                                     std::vector<uint8_t>());
}

absl::StatusOr<size_t> ZipStream::Read(MutableByteView out) {
  size_t size = 0;
  if (offset_ < file_end_offset_) {
    QUIRE_ASSIGN_OR_RETURN(
        size,
        file_->ReadAt(offset_, out.first(static_cast<size_t>(std::min<uint64_t>(
                                   out.size(), file_end_offset_ - offset_)))));
  } else if (offset_ - file_end_offset_ < tail_.size()) {
    const ByteView rest = ByteView(tail_).subspan(
        static_cast<size_t>(offset_ - file_end_offset_));
    size = std::min(out.size(), rest.size());
    std::copy_n(rest.begin(), size, out.begin());
  }
  offset_ += size;
  return size;
}

absl::StatusOr<uint64_t> ZipStream::Skip(uint64_t size_bytes) {
  const uint64_t end = file_end_offset_ + tail_.size();
  const uint64_t skipped = std::min(size_bytes, end - std::min(end, offset_));
  offset_ += skipped;
  return skipped;
}

absl::StatusOr<ZipDirectory::End> ZipDirectory::ReadEnd(
    const std::shared_ptr<const InputFile>& file) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t zip_end, ZipCommentOffset(file));
  std::vector<uint8_t> bytes(
      std::min<uint64_t>(zip_end, kZipEndSearchSizeBytes));
  const uint64_t start = zip_end - bytes.size();
  QUIRE_RETURN_IF_ERROR(ReadWhole(file, start, bytes));
  const size_t found = AsText(bytes).rfind(kZipEndMagic);
  if (found == absl::string_view::npos ||
      found + kZipEndSizeBytes > bytes.size()) {
    return absl::DataLossError(
        absl::StrCat(file->name(),
                     ": the end of its list of entries is "
                     "missing"));
  }
  const uint8_t* const record = &bytes[found];
  End end = {.entry_count = LoadLittleEndian<uint16_t>(record + 10),
             .list_size_bytes = LoadLittleEndian<uint32_t>(record + 12),
             .stated_offset = LoadLittleEndian<uint32_t>(record + 16)};
  uint64_t end_offset = start + found;
  const uint64_t file_end_offset =
      end_offset + kZipEndSizeBytes + LoadLittleEndian<uint16_t>(record + 20);
  if (end_offset >= kZip64LocatorSizeBytes &&
      IsAt(*file, end_offset - kZip64LocatorSizeBytes, kZip64LocatorMagic)) {
    std::vector<uint8_t> locator(kZip64LocatorSizeBytes);
    QUIRE_RETURN_IF_ERROR(
        ReadWhole(file, end_offset - kZip64LocatorSizeBytes, locator));
    const auto offset = LoadLittleEndian<uint64_t>(locator.data() + 8);
    if (offset < end_offset && IsAt(*file, offset, kZip64EndMagic)) {
      std::vector<uint8_t> long_record(kZip64EndSizeBytes);
      QUIRE_RETURN_IF_ERROR(ReadWhole(file, offset, long_record));
      end = {.entry_count = LoadLittleEndian<uint64_t>(&long_record[32]),
             .list_size_bytes = LoadLittleEndian<uint64_t>(&long_record[40]),
             .stated_offset = LoadLittleEndian<uint64_t>(&long_record[48])};
      end_offset = offset;
    }
  }
  if (end.list_size_bytes > std::min<uint64_t>(end_offset, UINT32_MAX)) {
    return absl::DataLossError(absl::StrCat(
        file->name(), ": the list of its entries must end at byte ", end_offset,
        " and have less than 4 GiB, and is said to have ", end.list_size_bytes,
        " bytes"));
  }
  end.list_offset = end_offset - end.list_size_bytes;
  end.end_offset = file_end_offset;
  return end;
}

absl::Status ZipDirectory::ReadEntries() {
  std::vector<uint8_t> list(static_cast<size_t>(end_.list_size_bytes));
  QUIRE_RETURN_IF_ERROR(ReadWhole(file_, end_.list_offset, list));
  size_t offset = 0;
  while (list.size() - offset >= kZipEntrySizeBytes &&
         AsText(list).substr(offset, kZipEntryMagic.size()) == kZipEntryMagic) {
    const uint8_t* const record = &list[offset];
    const size_t size_bytes = kZipEntrySizeBytes +
                              LoadLittleEndian<uint16_t>(record + 28) +
                              LoadLittleEndian<uint16_t>(record + 30) +
                              LoadLittleEndian<uint16_t>(record + 32);
    if (size_bytes > list.size() - offset) {
      break;
    }
    const EntryPlace place = PlaceOf(ByteView(record, size_bytes));
    entries_.push_back({.header_offset = place.header_offset,
                        .stored_size_bytes = place.stored_size_bytes,
                        .offset = static_cast<uint32_t>(offset),
                        .size_bytes = static_cast<uint32_t>(size_bytes),
                        .has_pc_name = IsPcName(record)});
    offset += size_bytes;
  }
  // A zip of many entries without the long record has the low bits.
  if (offset != list.size() ||
      ((entries_.size() ^ end_.entry_count) & UINT16_MAX) != 0) {
    return absl::DataLossError(absl::StrCat(
        file_->name(), ": the list of its entries is damaged at byte ",
        end_.list_offset + offset));
  }
  // libarchive takes the first of those with one offset.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) {
                     return a.header_offset < b.header_offset;
                   });
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) {
                               return a.header_offset == b.header_offset;
                             }),
                 entries_.end());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ZipDirectory>> ZipDirectory::Read(
    std::shared_ptr<const InputFile> file) {
  QUIRE_ASSIGN_OR_RETURN(const End end, ReadEnd(file));
  std::shared_ptr<ZipDirectory> directory(
      new ZipDirectory(std::move(file), end));
  QUIRE_RETURN_IF_ERROR(directory->ReadEntries());
  return directory;
}

absl::StatusOr<ZipDirectory::Contents> ZipDirectory::FindContents(
    uint64_t index) const {
  const Entry& entry = entries_[static_cast<size_t>(index)];
  const uint64_t offset = HeaderOffset(entry);
  std::array<uint8_t, kZipHeaderSizeBytes> header = {};
  QUIRE_RETURN_IF_ERROR(ReadWhole(file_, offset, header));
  const Contents contents = {
      .offset = offset + header.size() +
                LoadLittleEndian<uint16_t>(&header[26]) +
                LoadLittleEndian<uint16_t>(&header[28]),
      .size_bytes = entry.stored_size_bytes,
      .is_stored =
          LoadLittleEndian<uint16_t>(&header[8]) == 0 &&
          (LoadLittleEndian<uint16_t>(&header[6]) & kIsEncrypted) == 0};
  if (!absl::StartsWith(AsText(header), kZipHeaderMagic) ||
      contents.offset > end_.list_offset ||
      contents.size_bytes > end_.list_offset - contents.offset) {
    return absl::DataLossError(absl::StrCat(
        file_->name(), ": the header of entry ", index, " must be at byte ",
        offset, ", and its contents before the list of entries at byte ",
        end_.list_offset));
  }
  return contents;
}

absl::StatusOr<ZipDirectory::Unlisted> ZipDirectory::FindUnlisted() const {
  Unlisted found;
  uint64_t covered = 0;
  for (const Entry& entry : entries_) {
    const uint64_t offset = HeaderOffset(entry);
    if (offset >= end_.list_offset) {
      continue;
    }
    QUIRE_RETURN_IF_ERROR(AddUnlisted(covered, offset, found));
    // The sizes here may be others than in the list.
    std::array<uint8_t, kZipHeaderSizeBytes> header = {};
    QUIRE_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, header));
    const auto here = LoadLittleEndian<uint32_t>(&header[18]);
    uint64_t end = offset + got +
                   std::max<uint64_t>(entry.stored_size_bytes,
                                      here != UINT32_MAX ? here : 0) +
                   LoadLittleEndian<uint16_t>(&header[26]) +
                   LoadLittleEndian<uint16_t>(&header[28]);
    if ((LoadLittleEndian<uint16_t>(&header[6]) & kHasDescriptor) != 0) {
      QUIRE_ASSIGN_OR_RETURN(
          const size_t size,
          DescriptorSize(*file_, end, entry.stored_size_bytes));
      end += size;
    }
    covered = std::max(covered, end);
  }
  QUIRE_RETURN_IF_ERROR(AddUnlisted(covered, end_.list_offset, found));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file_->SizeBytes());
  QUIRE_RETURN_IF_ERROR(AddUnlisted(end_.end_offset, size_bytes, found));
  for (std::string* const words : {&found.lost, &found.between}) {
    if (!words->empty()) {
      *words =
          absl::StrCat(file_->name(), ": left out: ", *words,
                       ", which are in no entry of its list",
                       words == &found.lost
                           ? "; if it is several zips, split it where one ends"
                           : "");
    }
  }
  return found;
}

absl::Status ZipDirectory::AddUnlisted(uint64_t begin, uint64_t end,
                                       Unlisted& found) const {
  std::vector<uint8_t> piece(size_t{64} << 10);
  bool has_text = false;
  bool has_entry = false;
  for (uint64_t at = begin; at < end && !has_entry;) {
    QUIRE_ASSIGN_OR_RETURN(
        const size_t got,
        file_->ReadAt(at, MutableByteView(piece).first(static_cast<size_t>(
                              std::min<uint64_t>(piece.size(), end - at)))));
    const absl::string_view text = AsText(ByteView(piece).first(got));
    has_text =
        has_text || text.find_first_not_of('\0') != absl::string_view::npos;
    has_entry = absl::StrContains(text, kZipHeaderMagic);
    if (got < kZipHeaderMagic.size()) {
      break;
    }
    // Pieces overlap by less than a magic number.
    at += got - (at + got < end ? kZipHeaderMagic.size() - 1 : 0);
  }
  if (has_text) {
    std::string& words =
        has_entry || begin >= end_.end_offset ? found.lost : found.between;
    absl::StrAppend(&words, words.empty() ? "" : ", ",
                    FormatCounted(end - begin, "byte", "bytes"), " at offset ",
                    begin, has_entry ? " (with entries of their own)" : "");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ZipStream>> ZipDirectory::Part(
    uint64_t begin, uint64_t end) const {
  std::vector<uint8_t> tail;
  for (uint64_t i = begin; i < end; ++i) {
    const Entry& entry = entries_[static_cast<size_t>(i)];
    const size_t size = tail.size();
    tail.resize(size + entry.size_bytes);
    QUIRE_RETURN_IF_ERROR(ReadWhole(file_, end_.list_offset + entry.offset,
                                    MutableByteView(tail).subspan(size)));
  }
  AppendEnd(end - begin, tail.size(), end_.stated_offset, end_.list_offset,
            tail);
  return std::make_unique<ZipStream>(file_, end_.list_offset, std::move(tail));
}

std::string Utf8OfCodePage437(absl::string_view text) {
  // The characters of the bytes from 0x80 on.
  constexpr std::array<uint16_t, 128> kCharacters = {
      0x00C7, 0x00FC, 0x00E9, 0x00E2, 0x00E4, 0x00E0, 0x00E5, 0x00E7, 0x00EA,
      0x00EB, 0x00E8, 0x00EF, 0x00EE, 0x00EC, 0x00C4, 0x00C5, 0x00C9, 0x00E6,
      0x00C6, 0x00F4, 0x00F6, 0x00F2, 0x00FB, 0x00F9, 0x00FF, 0x00D6, 0x00DC,
      0x00A2, 0x00A3, 0x00A5, 0x20A7, 0x0192, 0x00E1, 0x00ED, 0x00F3, 0x00FA,
      0x00F1, 0x00D1, 0x00AA, 0x00BA, 0x00BF, 0x2310, 0x00AC, 0x00BD, 0x00BC,
      0x00A1, 0x00AB, 0x00BB, 0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561,
      0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557, 0x255D, 0x255C, 0x255B,
      0x2510, 0x2514, 0x2534, 0x252C, 0x251C, 0x2500, 0x253C, 0x255E, 0x255F,
      0x255A, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256C, 0x2567, 0x2568,
      0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256B, 0x256A, 0x2518,
      0x250C, 0x2588, 0x2584, 0x258C, 0x2590, 0x2580, 0x03B1, 0x00DF, 0x0393,
      0x03C0, 0x03A3, 0x03C3, 0x00B5, 0x03C4, 0x03A6, 0x0398, 0x03A9, 0x03B4,
      0x221E, 0x03C6, 0x03B5, 0x2229, 0x2261, 0x00B1, 0x2265, 0x2264, 0x2320,
      0x2321, 0x00F7, 0x2248, 0x00B0, 0x2219, 0x00B7, 0x221A, 0x207F, 0x00B2,
      0x25A0, 0x00A0};
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const uint16_t code = byte < 0x80 ? byte : kCharacters[byte - 0x80];
    if (code < 0x80) {
      utf8.push_back(c);
    } else if (code < 0x800) {
      utf8.push_back(static_cast<char>(0xC0 | code >> 6));
      utf8.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else {
      utf8.push_back(static_cast<char>(0xE0 | code >> 12));
      utf8.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
      utf8.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }
  return utf8;
}

}  // namespace quire
