// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/dictionary_file.h"

#include <array>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_format.h"
#include "server/archive/file_io.h"
#include "server/archive/section_compression.h"

namespace quire {
namespace {

absl::StatusOr<std::string> ReadText(int fd, const std::string& file,
                                     const ManifestDictionary& expected) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t file_size_bytes,
                         FileSizeBytes(fd, file));
  if (file_size_bytes != expected.file_size_bytes ||
      file_size_bytes < kDictionaryHeaderSizeBytes) {
    return absl::DataLossError(absl::StrCat(
        file, ": is ", file_size_bytes, " bytes long, expected ",
        expected.file_size_bytes, "; restore the file from a copy"));
  }
  std::array<uint8_t, kDictionaryHeaderSizeBytes> header_bytes;
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, 0, header_bytes, file));
  const auto header = ParseDictionaryHeader(header_bytes);
  QUIRE_RETURN_IF_ERROR(InFile(file, header.status()));
  if (header->stored_size_bytes !=
          file_size_bytes - kDictionaryHeaderSizeBytes ||
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
  auto text = Decompress(header->method, AsBytes(stored), header->size_bytes);
  QUIRE_RETURN_IF_ERROR(InFile(file, text.status()));
  const uint64_t hash = Checksum64(AsBytes(*text));
  if (hash != header->hash) {
    return InFile(file, ChecksumMismatch("checksum of the dictionary's text",
                                         hash, header->hash));
  }
  return text;
}

}  // namespace

DictionaryFileWriter::DictionaryFileWriter(
    int folder_fd, std::string folder,
    std::shared_ptr<const CodecContext> context)
    : folder_fd_(folder_fd),
      folder_(std::move(folder)),
      context_(std::move(context)),
      result_(absl::UnknownError("not finished")) {
  try {
    thread_ = std::thread([this] { result_ = Write(); });
    is_started_ = true;
  } catch (const std::system_error&) {
    // The system gives no more threads: Finish() does it.
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
  // Past the end of a thread it would end the process.
  try {
    return WriteFile();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        folder_, ": not enough memory to compress the dictionary"));
  }
}

absl::StatusOr<ManifestDictionary> DictionaryFileWriter::WriteFile() const {
  const std::string& text = context_->dictionary;
  DictionaryHeader header;
  header.size_bytes = text.size();
  header.hash = Checksum64(AsBytes(text));
  const std::string name = DictionaryFileName(header.hash);
  const std::string file = absl::StrCat(folder_, "/", name);
  auto stored = CompressStrongly(AsBytes(text), kDictionaryEffort, &cancel_);
  QUIRE_RETURN_IF_ERROR(InFile(file, stored.status()));
  header.method = stored->method;
  header.stored_size_bytes = stored->bytes.size();
  header.stored_checksum = Checksum64(AsBytes(stored->bytes));
  QUIRE_ASSIGN_OR_RETURN(FileWriter writer,
                         FileWriter::Create(folder_fd_, name, file));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(EncodeDictionaryHeader(header))));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(stored->bytes)));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return ManifestDictionary{.hash = header.hash,
                            .size_bytes = header.size_bytes,
                            .file_size_bytes = writer.size_bytes()};
}

absl::StatusOr<std::string> ReadDictionaryFile(
    int folder_fd, const std::string& folder,
    const ManifestDictionary& expected) {
  const std::string name = DictionaryFileName(expected.hash);
  const std::string file = absl::StrCat(folder, "/", name);
  QUIRE_ASSIGN_OR_RETURN(const UniqueFd fd,
                         OpenPartForReading(folder_fd, name, file));
  return ReadText(fd.get(), file, expected);
}

}  // namespace quire
