// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/dictionary_file.h"

#include <array>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {

const CompressionEffort& DictionaryEffort(const CodecSpec& codec) {
  const CodecInfo* const info = FindCodec(codec.id);
  if (info == nullptr || codec.level == info->level_max) {
    return kSmallDictionaryEffort;
  }
  return codec.level == info->level_min ? kFastDictionaryEffort
                                        : kDictionaryEffort;
}

DictionaryFileWriter::DictionaryFileWriter(
    int directory_fd, std::string directory, const CodecSpec& codec,
    std::shared_ptr<const CodecContext> context)
    : directory_fd_(directory_fd),
      directory_(std::move(directory)),
      effort_(DictionaryEffort(codec)),
      context_(std::move(context)),
      result_(absl::UnknownError("not finished")) {
  try {
    thread_ = std::thread([this] { result_ = Write(); });
    is_started_ = true;
  } catch (const std::system_error&) {
    // The system cannot start more threads: Finish() does the work.
  }
}

DictionaryFileWriter::~DictionaryFileWriter() {
  cancel_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

absl::StatusOr<ManifestDictionary> DictionaryFileWriter::Finish() {
  if (thread_.joinable()) {
    thread_.join();
  } else if (!std::exchange(is_started_, true)) {
    result_ = Write();
  }
  return result_;
}

absl::StatusOr<ManifestDictionary> DictionaryFileWriter::Write() const {
  const std::string& text = context_->dictionary;
  DictionaryHeader header;
  header.size_bytes = text.size();
  header.hash = Checksum64(AsBytes(text));
  const std::string name = DictionaryFileName(header.hash);
  const std::string file = absl::StrCat(directory_, "/", name);
  auto stored = CompressStrongly(AsBytes(text), effort_, &cancel_);
  QUIRE_RETURN_IF_ERROR(InFile(file, stored.status()));
  header.method = stored->method;
  header.stored_size_bytes = stored->bytes.size();
  header.stored_checksum = Checksum64(AsBytes(stored->bytes));
  QUIRE_ASSIGN_OR_RETURN(FileWriter writer,
                         FileWriter::Create(directory_fd_, name, file));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(EncodeDictionaryHeader(header))));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(stored->bytes)));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return ManifestDictionary{.hash = header.hash,
                            .size_bytes = header.size_bytes,
                            .file_size_bytes = writer.size_bytes()};
}

absl::StatusOr<std::string> ReadDictionaryFile(
    const ReadableFile& opened, const ManifestDictionary& expected,
    const std::atomic<bool>* cancel) {
  QUIRE_RETURN_IF_ERROR(CheckFileSize(opened, expected.file_size_bytes));
  const int fd = opened.fd.get();
  const std::string& file = opened.path;
  std::array<uint8_t, kDictionaryHeaderSizeBytes> header_bytes;
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, 0, header_bytes, file));
  const auto header = ParseDictionaryHeader(header_bytes);
  QUIRE_RETURN_IF_ERROR(InFile(file, header.status()));
  if (header->stored_size_bytes !=
          expected.file_size_bytes - kDictionaryHeaderSizeBytes ||
      header->size_bytes != expected.size_bytes ||
      header->hash != expected.hash) {
    return absl::DataLossError(
        absl::StrCat(file, ": is another dictionary than the manifest means: ",
                     FormatChecksum(header->hash), " of ", header->size_bytes,
                     " bytes, expected ", FormatChecksum(expected.hash), " of ",
                     expected.size_bytes));
  }
  std::string stored(header->stored_size_bytes, '\0');
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, kDictionaryHeaderSizeBytes,
                                    AsMutableBytes(stored), file));
  const uint64_t found = Checksum64(AsBytes(stored));
  if (found != header->stored_checksum) {
    return InFile(file, ChecksumMismatch("dictionary checksum", found,
                                         header->stored_checksum));
  }
  auto text =
      Decompress(header->method, AsBytes(stored), header->size_bytes, cancel);
  QUIRE_RETURN_IF_ERROR(InFile(file, text.status()));
  const uint64_t hash = Checksum64(AsBytes(*text));
  if (hash != header->hash) {
    return InFile(file, ChecksumMismatch("checksum of the dictionary's text",
                                         hash, header->hash));
  }
  return text;
}

absl::Status CheckDictionaryFile(const ReadableFile& opened, uint64_t hash,
                                 const BeforeRead& before_read) {
  const int fd = opened.fd.get();
  const std::string& file = opened.path;
  std::array<uint8_t, kDictionaryHeaderSizeBytes> header_bytes;
  QUIRE_RETURN_IF_ERROR(before_read(fd, 0, header_bytes.size()));
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, 0, header_bytes, file));
  const auto header = ParseDictionaryHeader(header_bytes);
  QUIRE_RETURN_IF_ERROR(InFile(file, header.status()));
  if (header->hash != hash) {
    return InFile(file, ChecksumMismatch("checksum of the dictionary's text",
                                         header->hash, hash));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const uint64_t found,
      ReadChecksum(fd, kDictionaryHeaderSizeBytes, header->stored_size_bytes,
                   file, before_read));
  return found == header->stored_checksum
             ? absl::OkStatus()
             : InFile(file, ChecksumMismatch("dictionary checksum", found,
                                             header->stored_checksum));
}

}  // namespace quire
