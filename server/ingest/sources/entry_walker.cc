// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/entry_walker.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <clocale>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// libarchive's for entries of zips that have none.
constexpr unsigned kZipModeWithout = 0664;

// libarchive converts names from the container's character set to that of the
// thread's locale, and damages characters that the latter lacks. UTF-8 has all,
// whatever locale the program runs in.
class ScopedUtf8Locale {
 public:
  ScopedUtf8Locale() : previous_(uselocale(Utf8())) {}

  ~ScopedUtf8Locale() { uselocale(previous_); }

  ScopedUtf8Locale(const ScopedUtf8Locale&) = delete;
  ScopedUtf8Locale& operator=(const ScopedUtf8Locale&) = delete;

 private:
  static locale_t Utf8() {
    // Null if the system has no such locale: then the current one stays.
    static const locale_t locale =
        newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
    return locale;
  }

  const locale_t previous_;
};

EntryWalker::Kind KindOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) {
    // Some writers store the contents with every link.
    return archive_entry_size_is_set(entry) != 0 &&
                   archive_entry_size(entry) > 0
               ? EntryWalker::Kind::kFile
               : EntryWalker::Kind::kHardLink;
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryWalker::Kind::kFile;
    case AE_IFLNK:
      return EntryWalker::Kind::kSymbolicLink;
    case AE_IFDIR:
      return EntryWalker::Kind::kDirectory;
    default:
      return EntryWalker::Kind::kSpecial;
  }
}

// Nothing for times beyond the range of milliseconds: only damaged headers have
// them.
std::optional<int64_t> TimeMs(archive_entry* entry) {
  if (archive_entry_mtime_is_set(entry) == 0) {
    return std::nullopt;
  }
  constexpr int64_t kSecondsMax = kCaptureTimeMsMax / 1000 - 1;
  const int64_t seconds = archive_entry_mtime(entry);
  return seconds < -kSecondsMax || seconds > kSecondsMax
             ? std::nullopt
             : std::optional<int64_t>(seconds * 1000 +
                                      archive_entry_mtime_nsec(entry) /
                                          1'000'000);
}

}  // namespace

EntryWalker::EntryWalker(std::unique_ptr<LibarchiveInput> input,
                         LibarchiveInput::Format format, bool is_seekable,
                         std::string name, uint64_t offset)
    : input_(std::move(input)),
      format_(format),
      is_seekable_(is_seekable),
      name_(std::move(name)),
      start_offset_(offset) {}

absl::StatusOr<std::unique_ptr<EntryWalker>> EntryWalker::Open(
    const ContainerInput& input, LibarchiveInput::Format format,
    uint64_t offset) {
  std::unique_ptr<ByteStream> stream;
  ZipStream* seekable = nullptr;
  if (input.file == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(stream, input.open());
  } else if (format == LibarchiveInput::Format::kZip) {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ZipStream> zip,
                           ZipStream::Open(input.file));
    seekable = zip.get();
    stream = std::move(zip);
  } else {
    // Tars are read forward only.
    stream = std::make_unique<FileStream>(input.file, offset);
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<LibarchiveInput> opened,
      LibarchiveInput::Open(format, std::move(stream), seekable, input.name));
  std::unique_ptr<EntryWalker> walker(new EntryWalker(
      std::move(opened), format, seekable != nullptr, input.name, offset));
  walker->zip_file_ = seekable != nullptr ? input.file : nullptr;
  return walker;
}

absl::StatusOr<std::unique_ptr<EntryWalker>> EntryWalker::OpenPart(
    const std::string& name, std::shared_ptr<const ZipDirectory> directory,
    uint64_t begin, uint64_t end) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ZipStream> zip,
                         directory->Part(begin, end));
  ZipStream* const seekable = zip.get();
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<LibarchiveInput> opened,
                         LibarchiveInput::Open(LibarchiveInput::Format::kZip,
                                               std::move(zip), seekable, name));
  std::unique_ptr<EntryWalker> walker(new EntryWalker(
      std::move(opened), LibarchiveInput::Format::kZip, true, name, 0));
  walker->entry_count_ = begin;
  walker->directory_ = std::move(directory);
  return walker;
}

absl::StatusOr<bool> EntryWalker::Next() {
  archive_entry* entry = nullptr;
  int result = ARCHIVE_OK;
  can_continue_ = false;
  {
    const ScopedUtf8Locale utf8;
    result = archive_read_next_header(input_->get(), &entry);
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) {
      // Warnings concern metadata that is not kept (owners, times, attributes),
      // or names in the wrong character set.
      can_continue_ = true;
      QUIRE_RETURN_IF_ERROR(TakeEntry(entry));
      return true;
    }
  }
  if (result != ARCHIVE_EOF) {
    return HeaderFailure();
  }
  if (format_ == LibarchiveInput::Format::kTar) {
    lacks_end_ = !input_->SawTarEnd();
  } else if (!is_seekable_) {
    QUIRE_RETURN_IF_ERROR(input_->CheckZipEnd());
  } else if (zip_file_ != nullptr && entry_count_ == 0) {
    QUIRE_RETURN_IF_ERROR(CheckIsEmpty());
  }
  return false;
}

absl::Status EntryWalker::HeaderFailure() const {
  const std::string place =
      absl::StrCat("in the header of entry ", entry_count_, ", from 0");
  // Negative if the text before the header is missing; that of the entry before
  // if that is truncated.
  const la_int64_t position = archive_read_header_position(input_->get());
  const uint64_t offset = start_offset_ + static_cast<uint64_t>(position);
  const bool is_there = format_ == LibarchiveInput::Format::kTar &&
                        position >= 0 &&
                        (entry_count_ == 0 || offset > header_offset_);
  return input_->Failure(
      is_there ? absl::StrCat(place, ", at byte ", offset,
                              " of the uncompressed tar, whose rest is left "
                              "out")
               : place);
}

absl::Status EntryWalker::CheckIsEmpty() const {
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const ZipDirectory> directory,
                         ZipDirectory::Read(zip_file_));
  return directory->entry_count() == 0
             ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat(
                   name_, ": its list has ",
                   FormatCounted(directory->entry_count(), "entry", "entries"),
                   ", and none is where the end of the zip says; the zip is "
                   "damaged: zip -FF may repair a copy"));
}

absl::Status EntryWalker::TakeEntry(archive_entry* entry) {
  index_ = entry_count_++;
  entry_name_.clear();
  header_offset_ =
      start_offset_ +
      static_cast<uint64_t>(archive_read_header_position(input_->get()));
  const char* path = archive_entry_pathname(entry);
  if (path == nullptr) {
    path = archive_entry_pathname_utf8(entry);
  }
  if (path == nullptr) {
    return absl::DataLossError(
        absl::StrCat(name_, ": ", Place(),
                     ": its name must be in the character set that the ",
                     "header says, and is not; the input is damaged"));
  }
  entry_name_ = path;
  is_name_converted_ = false;
  if (is_seekable_ && !IsUtf8(entry_name_)) {
    ConvertName();
  }
  kind_ = KindOf(entry);
  link_target_.clear();
  if (kind_ == Kind::kHardLink) {
    link_target_ = archive_entry_hardlink(entry);
  }
  QUIRE_RETURN_IF_ERROR(CheckHasNoOtherText(entry));
  if (kind_ == Kind::kFile && archive_entry_is_encrypted(entry) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name_, ": ", Place(), ": is encrypted, and no password can be given; ",
        "unpack the archive and build from the directory"));
  }
  size_bytes_ = std::nullopt;
  if (archive_entry_size_is_set(entry) != 0) {
    size_bytes_ = static_cast<uint64_t>(
        std::max<la_int64_t>(0, archive_entry_size(entry)));
  }
  time_ms_ = TimeMs(entry);
  const bool is_tar = format_ == LibarchiveInput::Format::kTar;
  has_mode_ = is_tar || archive_entry_perm(entry) != kZipModeWithout;
  has_owner_ =
      is_tar || archive_entry_uid(entry) != 0 || archive_entry_gid(entry) != 0;
  piece_ = {};
  piece_offset_ = 0;
  position_ = 0;
  pieces_ended_ = false;
  return absl::OkStatus();
}

absl::Status EntryWalker::CheckHasNoOtherText(archive_entry* entry) const {
  const bool is_tar = format_ == LibarchiveInput::Format::kTar;
  const bool has_text =
      archive_entry_size_is_set(entry) != 0 && archive_entry_size(entry) > 0;
  // libarchive gives no type for the continued part of a file.
  if (is_tar && kind_ == Kind::kSpecial && archive_entry_filetype(entry) == 0) {
    return absl::DataLossError(absl::StrCat(
        name_, ": ", Place(),
        ": continues a file of an earlier volume, and is "
        "left out; the file may have a header in its text: extract the volumes "
        "in order, by tar --extract --multi-volume"));
  }
  // In a tar such an entry is a list of files, for incremental backups.
  if (!is_tar && kind_ == Kind::kDirectory && has_text) {
    return absl::DataLossError(absl::StrCat(
        name_, ": ", Place(), ": is a directory by its name, and has ",
        FormatCounted(static_cast<uint64_t>(archive_entry_size(entry)), "byte",
                      "bytes"),
        " of text, which are left out"));
  }
  return absl::OkStatus();
}

void EntryWalker::ConvertName() {
  if (directory_ == nullptr && zip_file_ != nullptr) {
    absl::StatusOr<std::shared_ptr<const ZipDirectory>> directory =
        ZipDirectory::Read(std::exchange(zip_file_, nullptr));
    directory_ = directory.ok() ? *std::move(directory) : nullptr;
  }
  if (directory_ != nullptr && index_ < directory_->entry_count() &&
      directory_->HasPcName(index_)) {
    entry_name_ = Utf8OfCodePage437(entry_name_);
    is_name_converted_ = true;
  }
}

std::string EntryWalker::Place() const {
  return absl::StrCat("entry ", index_, " (from 0), ", QuotedText(entry_name_),
                      ", at byte ", header_offset_, " of the uncompressed ",
                      format_ == LibarchiveInput::Format::kTar ? "tar" : "zip");
}

absl::Status EntryWalker::Failure() const {
  return input_->Failure(
      absl::StrCat("in ", Place(), ", after ", position_, " bytes of it"));
}

absl::Status EntryWalker::NextPiece() {
  const void* bytes = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  const int result =
      archive_read_data_block(input_->get(), &bytes, &size, &offset);
  if (result == ARCHIVE_EOF) {
    pieces_ended_ = true;
    // A hole at the end has no piece after it.
    piece_ = {};
    piece_offset_ = std::max(position_, size_bytes_.value_or(position_));
    return absl::OkStatus();
  }
  if (result != ARCHIVE_OK) {
    // After FATAL, libarchive's reader is unusable.
    can_continue_ = result == ARCHIVE_FAILED || result == ARCHIVE_WARN;
    return Failure();
  }
  if (offset < 0 || static_cast<uint64_t>(offset) < position_) {
    return absl::DataLossError(absl::StrCat(
        name_, ": ", Place(), ": the pieces of a sparse file must ascend, and ",
        "the one at byte ", offset, " starts before byte ", position_,
        ", where the one before it ends; the input is damaged"));
  }
  piece_ = ByteView(static_cast<const uint8_t*>(bytes), size);
  piece_offset_ = static_cast<uint64_t>(offset);
  return absl::OkStatus();
}

absl::StatusOr<size_t> EntryWalker::Read(MutableByteView out) {
  while (position_ == piece_offset_ && piece_.empty()) {
    if (pieces_ended_) {
      return 0;
    }
    QUIRE_RETURN_IF_ERROR(NextPiece());
    if (!pieces_ended_ && piece_.empty()) {
      // An empty piece of a sparse file: only its offset counts.
      piece_offset_ = position_;
    }
  }
  size_t size = 0;
  if (position_ < piece_offset_) {
    size = static_cast<size_t>(
        std::min<uint64_t>(out.size(), piece_offset_ - position_));
    std::memset(out.data(), 0, size);
  } else {
    size = std::min(out.size(), piece_.size());
    std::memcpy(out.data(), piece_.data(), size);
    piece_ = piece_.subspan(size);
    piece_offset_ += size;
  }
  position_ += size;
  return size;
}

}  // namespace quire
