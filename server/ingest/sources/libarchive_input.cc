// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/libarchive_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/endian.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kInputBufferSizeBytes = 256 << 10;

// Adds libarchive's filters except gzip and zstd, which MemberStream reads
// member by member, filters that run other programs (lrzip, grzip), and those
// that are not compression (uuencode, rpm).
void AddFilters(archive* reader) {
  archive_read_support_filter_bzip2(reader);
  archive_read_support_filter_compress(reader);
  archive_read_support_filter_lz4(reader);
  archive_read_support_filter_lzip(reader);
  archive_read_support_filter_lzma(reader);
  archive_read_support_filter_lzop(reader);
  archive_read_support_filter_xz(reader);
}

// The record that ends a zip (APPNOTE.TXT of PKWARE, sections 4.3.12
// to 4.3.16).
constexpr size_t kZipEndSizeBytes = 22;
constexpr size_t kZipCommentSizeBytesMax = 0xFFFF;
constexpr size_t kZip64LocatorSizeBytes = 20;
constexpr absl::string_view kZipEndMagic = "PK\5\6";
constexpr absl::string_view kZipEntryMagic = "PK\1\2";
constexpr absl::string_view kZip64LocatorMagic = "PK\6\7";
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
absl::StatusOr<uint64_t> ZipCommentOffset(FileStream& stream) {
  const InputFile& file = stream.file();
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file.SizeBytes());
  std::vector<uint8_t> bytes(std::min<uint64_t>(
      size_bytes, kZipEndSizeBytes + kZipCommentSizeBytesMax));
  const uint64_t start = size_bytes - bytes.size();
  const uint64_t offset_before = stream.offset();
  stream.Seek(start);
  QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadFully(stream, bytes));
  stream.Seek(offset_before);
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

}  // namespace

struct LibarchiveInput::Callbacks {
  static la_ssize_t Read(archive* reader, void* self, const void** bytes) {
    auto* const input = static_cast<LibarchiveInput*>(self);
    const absl::StatusOr<size_t> got = input->FillBuffer();
    if (!got.ok()) {
      archive_set_error(reader, EIO, "%s", "read failed");
      return ARCHIVE_FATAL;
    }
    *bytes = input->buffer_.data();
    return static_cast<la_ssize_t>(*got);
  }

  static la_int64_t Skip(archive* /*reader*/, void* self,
                         la_int64_t size_bytes) {
    auto* const input = static_cast<LibarchiveInput*>(self);
    // A tar's end mark is detected in the last bytes, so these are always read:
    // libarchive reads the rest of a short skip.
    const auto reserve = static_cast<la_int64_t>(2 * kInputBufferSizeBytes);
    if (size_bytes <= reserve) {
      return 0;
    }
    absl::StatusOr<uint64_t> skipped =
        input->stream_->Skip(static_cast<uint64_t>(size_bytes - reserve));
    if (!skipped.ok()) {
      // libarchive 3.6 takes an error for a number of bytes, and calls this
      // again without end. After 0 it reads, and the read fails.
      input->stream_status_ = skipped.status();
      return 0;
    }
    return static_cast<la_int64_t>(*skipped);
  }

  static la_int64_t Seek(archive* reader, void* self, la_int64_t offset,
                         int whence) {
    auto* const input = static_cast<LibarchiveInput*>(self);
    la_int64_t base = 0;
    if (whence == SEEK_CUR) {
      base = static_cast<la_int64_t>(input->seekable_->offset());
    } else if (whence == SEEK_END) {
      base = static_cast<la_int64_t>(input->end_offset_);
    }
    la_int64_t target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target < 0) {
      archive_set_error(reader, EINVAL, "%s", "a position outside the file");
      return ARCHIVE_FATAL;
    }
    input->seekable_->Seek(static_cast<uint64_t>(target));
    return target;
  }
};

LibarchiveInput::LibarchiveInput(Format format,
                                 std::unique_ptr<ByteStream> stream,
                                 FileStream* seekable, std::string name)
    : stream_(std::move(stream)),
      seekable_(seekable),
      name_(std::move(name)),
      is_zip_(format == Format::kZip),
      archive_(archive_read_new()),
      buffer_(kInputBufferSizeBytes) {}

LibarchiveInput::~LibarchiveInput() {
  archive_read_free(archive_);
}

absl::StatusOr<std::unique_ptr<LibarchiveInput>> LibarchiveInput::Open(
    Format format, std::unique_ptr<ByteStream> stream, FileStream* seekable,
    std::string name) {
  std::unique_ptr<LibarchiveInput> input(new LibarchiveInput(
      format, std::move(stream), seekable, std::move(name)));
  archive* const reader = input->archive_;
  if (reader == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(input->name_, ": no memory to read it"));
  }
  switch (format) {
    case Format::kTar:
      archive_read_support_format_tar(reader);
      // Zeros end a tar, but not the file: read the bytes after them, and
      // report an error if they are not a tar, instead of dropping them.
      archive_read_set_format_option(reader, "tar",
                                     "read_concatenated_archives", "1");
      break;
    case Format::kZip:
      if (seekable != nullptr) {
        QUIRE_ASSIGN_OR_RETURN(input->end_offset_, ZipCommentOffset(*seekable));
        archive_read_support_format_zip_seekable(reader);
        if (input->end_offset_ == kZipEndSizeBytes &&
            IsAt(seekable->file(), 0, kEmptyZip)) {
          // libarchive 3.6 does not find the end at offset 0. An empty file has
          // no entries either.
          archive_read_support_format_empty(reader);
          input->end_offset_ = 0;
        }
      } else {
        archive_read_support_format_zip_streamable(reader);
      }
      break;
    case Format::kDecompressed:
      AddFilters(reader);
      archive_read_support_format_raw(reader);
      archive_read_support_format_empty(reader);
      break;
  }
  archive_read_set_callback_data(reader, input.get());
  archive_read_set_read_callback(reader, Callbacks::Read);
  if (format != Format::kDecompressed) {
    archive_read_set_skip_callback(reader, Callbacks::Skip);
  }
  if (seekable != nullptr) {
    archive_read_set_seek_callback(reader, Callbacks::Seek);
  }
  if (archive_read_open1(reader) != ARCHIVE_OK) {
    return input->Failure("at its start");
  }
  return input;
}

absl::StatusOr<size_t> LibarchiveInput::FillBuffer() {
  QUIRE_RETURN_IF_ERROR(stream_status_);
  MutableByteView space(buffer_);
  if (seekable_ != nullptr) {
    const uint64_t offset = std::min(seekable_->offset(), end_offset_);
    space = space.first(static_cast<size_t>(
        std::min<uint64_t>(space.size(), end_offset_ - offset)));
  }
  absl::StatusOr<size_t> got =
      space.empty() ? absl::StatusOr<size_t>(0) : stream_->Read(space);
  if (!got.ok()) {
    stream_status_ = got.status();
    return got;
  }
  if (*got == 0) {
    at_end_ = true;
    return 0;
  }
  at_end_ = false;
  const auto end = buffer_.begin() + static_cast<ptrdiff_t>(*got);
  const size_t keep = std::min(*got, kTarBlockSizeBytes);
  tail_.insert(tail_.end(), end - static_cast<ptrdiff_t>(keep), end);
  if (tail_.size() > kTarBlockSizeBytes) {
    tail_.erase(tail_.begin(),
                tail_.end() - static_cast<ptrdiff_t>(kTarBlockSizeBytes));
  }
  return got;
}

absl::Status LibarchiveInput::Failure(const std::string& place) const {
  if (!stream_status_.ok()) {
    return stream_status_;
  }
  const char* const reason = archive_error_string(archive_);
  // Only files that begin like a zip are opened as one; libarchive then misses
  // the list of entries at the end.
  const bool has_no_end = is_zip_ && reason != nullptr &&
                          absl::StartsWith(reason, "Unrecognized archive");
  return absl::DataLossError(
      absl::StrCat(name_, ": ",
                   has_no_end ? "begins like a zip, but the list of its "
                                "entries is missing (is it truncated?)"
                   : reason != nullptr ? PrintableMessage(reason)
                                       : "damaged or truncated",
                   " (", place, ")"));
}

bool LibarchiveInput::SawTarEnd() const {
  return at_end_ && tail_.size() == kTarBlockSizeBytes &&
         std::all_of(tail_.begin(), tail_.end(),
                     [](uint8_t byte) { return byte == 0; });
}

absl::StatusOr<std::unique_ptr<DecompressedStream>> DecompressedStream::Create(
    std::unique_ptr<ByteStream> compressed, const std::string& name) {
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<LibarchiveInput> input,
      LibarchiveInput::Open(LibarchiveInput::Format::kDecompressed,
                            std::move(compressed), nullptr, name));
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(input->get(), &entry);
  if (archive_filter_count(input->get()) < 2) {
    return nullptr;
  }
  const bool is_empty = result == ARCHIVE_EOF;
  if (result != ARCHIVE_OK && !is_empty) {
    return input->Failure("where its compressed data start");
  }
  return std::unique_ptr<DecompressedStream>(
      new DecompressedStream(std::move(input), is_empty));
}

absl::StatusOr<size_t> DecompressedStream::Read(MutableByteView out) {
  if (is_empty_) {
    return 0;
  }
  const la_ssize_t got =
      archive_read_data(input_->get(), out.data(), out.size());
  if (got < 0) {
    return input_->Failure(
        absl::StrCat("compressed by ", archive_filter_name(input_->get(), 0)));
  }
  return static_cast<size_t>(got);
}

}  // namespace quire
