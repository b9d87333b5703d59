// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/libarchive_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kInputBufferSizeBytes = 256 << 10;

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
    input->passed_bytes_ += *skipped;
    return static_cast<la_int64_t>(*skipped);
  }

  static la_int64_t Seek(archive* reader, void* self, la_int64_t offset,
                         int whence) {
    auto* const input = static_cast<LibarchiveInput*>(self);
    la_int64_t base = 0;
    if (whence == SEEK_CUR) {
      base = static_cast<la_int64_t>(input->zip_->offset());
    } else if (whence == SEEK_END) {
      base = static_cast<la_int64_t>(input->zip_->EndOffset().value_or(0));
    }
    la_int64_t target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target < 0) {
      archive_set_error(reader, EINVAL, "%s", "a position outside the file");
      return ARCHIVE_FATAL;
    }
    input->zip_->Seek(static_cast<uint64_t>(target));
    return target;
  }
};

LibarchiveInput::LibarchiveInput(Format format,
                                 std::unique_ptr<ByteStream> stream,
                                 ZipStream* zip, std::string name)
    : stream_(std::move(stream)),
      zip_(zip),
      name_(std::move(name)),
      is_zip_(format == Format::kZip),
      archive_(archive_read_new()),
      buffer_(kInputBufferSizeBytes) {}

LibarchiveInput::~LibarchiveInput() {
  archive_read_free(archive_);
}

absl::StatusOr<std::unique_ptr<LibarchiveInput>> LibarchiveInput::Open(
    Format format, std::unique_ptr<ByteStream> stream, ZipStream* zip,
    std::string name) {
  std::unique_ptr<LibarchiveInput> input(
      new LibarchiveInput(format, std::move(stream), zip, std::move(name)));
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
      if (zip != nullptr) {
        archive_read_support_format_zip_seekable(reader);
        if (zip->EndOffset() == uint64_t{0}) {
          archive_read_support_format_empty(reader);
        }
      } else {
        archive_read_support_format_zip_streamable(reader);
      }
      break;
  }
  archive_read_set_callback_data(reader, input.get());
  archive_read_set_read_callback(reader, Callbacks::Read);
  archive_read_set_skip_callback(reader, Callbacks::Skip);
  if (zip != nullptr) {
    archive_read_set_seek_callback(reader, Callbacks::Seek);
  }
  if (archive_read_open1(reader) != ARCHIVE_OK) {
    return input->Failure("at its start");
  }
  return input;
}

absl::StatusOr<size_t> LibarchiveInput::FillBuffer() {
  QUIRE_RETURN_IF_ERROR(stream_status_);
  absl::StatusOr<size_t> got = stream_->Read(buffer_);
  if (!got.ok()) {
    stream_status_ = got.status();
    return got;
  }
  if (*got == 0) {
    at_end_ = true;
    return 0;
  }
  at_end_ = false;
  buffer_size_ = *got;
  passed_bytes_ += *got;
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
  if (absl::IsDataLoss(stream_status_)) {
    return absl::DataLossError(
        absl::StrCat(stream_status_.message(), " (", place, ")"));
  }
  if (!stream_status_.ok()) {
    return stream_status_;
  }
  const char* const reason = archive_error_string(archive_);
  // Only files that begin like a zip are opened as one; libarchive then misses
  // the list of entries at the end.
  const bool has_no_end = is_zip_ && reason != nullptr &&
                          absl::StartsWith(reason, "Unrecognized archive");
  const bool is_cut_tar =
      !is_zip_ && reason != nullptr && absl::StartsWith(reason, "Truncated");
  return absl::DataLossError(
      absl::StrCat(name_, ": ",
                   has_no_end ? "begins like a zip, but the list of its "
                                "entries is missing (is it truncated?)"
                   : reason != nullptr ? PrintableMessage(reason)
                                       : "damaged or truncated",
                   " (", place, ")",
                   is_cut_tar ? "; it was truncated, or is one of several "
                                "volumes: extract those in order, by tar "
                                "--extract --multi-volume"
                              : ""));
}

std::shared_ptr<const TextCheck> LibarchiveInput::AwaitedCheck() const {
  return stream_->AwaitedCheck(
      static_cast<uint64_t>(archive_filter_bytes(archive_, 0)));
}

absl::Status LibarchiveInput::CheckZipEnd() {
  // The list, up to the record that ends it and its comment.
  constexpr size_t kEndSizeBytes = 22;
  constexpr size_t kEndSizeBytesMax = kEndSizeBytes + 0xFFFF;
  const uint64_t unused_bytes =
      passed_bytes_ -
      std::min(passed_bytes_,
               static_cast<uint64_t>(archive_filter_bytes(archive_, 0)));
  const auto held =
      static_cast<size_t>(std::min<uint64_t>(buffer_size_, unused_bytes));
  const ByteView unused = ByteView(buffer_).subspan(buffer_size_ - held, held);
  std::string rest(unused.begin(), unused.end());
  bool has_entry = absl::StrContains(rest, "PK\3\4");
  while (!at_end_) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, FillBuffer());
    const absl::string_view piece = AsText(ByteView(buffer_).first(got));
    rest.append(piece.data(), piece.size());
    has_entry = has_entry || absl::StrContains(rest, "PK\3\4");
    rest.erase(0, rest.size() - std::min(rest.size(), kEndSizeBytesMax));
  }
  size_t end = rest.rfind("PK\5\6");
  while (end != std::string::npos && end > 0 &&
         end + kEndSizeBytes > rest.size()) {
    end = rest.rfind("PK\5\6", end - 1);
  }
  const bool has_end =
      end != std::string::npos && end + kEndSizeBytes <= rest.size();
  size_t size = 0;
  if (has_end) {
    size = end + kEndSizeBytes + static_cast<uint8_t>(rest[end + 20]) +
           (size_t{static_cast<uint8_t>(rest[end + 21])} << 8);
  }
  if (has_end && !has_entry &&
      rest.find_first_not_of('\0', size) == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      name_, ": ",
      has_entry ? "entries follow the list of the zip, and are left out; if it "
                  "is several zips, compress each on its own"
      : !has_end
          ? "the list that ends a zip is missing (is it truncated?)"
          : absl::StrCat("left out: ",
                         FormatCounted(rest.size() - size, "byte", "bytes"),
                         " after the end of the zip")));
}

bool LibarchiveInput::SawTarEnd() const {
  return at_end_ && tail_.size() == kTarBlockSizeBytes &&
         std::all_of(tail_.begin(), tail_.end(),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace quire
