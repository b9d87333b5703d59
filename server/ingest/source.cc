// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/file_io.h"
#include "server/ingest/byte_stream.h"
#include "server/ingest/container_source.h"
#include "server/ingest/directory_source.h"
#include "server/ingest/gzip_stream.h"
#include "server/ingest/libarchive_input.h"
#include "server/ingest/plain_file_source.h"
#include "server/ingest/spool.h"
#include "server/ingest/warc_source.h"

namespace quire {
namespace {

using FilePtr = std::shared_ptr<const InputFile>;

enum class Compression { kNone, kGzip, kOther };

// Starts a pass over the text of `file`.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenText(const FilePtr& file,
                                                     Compression compression) {
  auto stream = std::make_unique<FileStream>(file);
  switch (compression) {
    case Compression::kNone:
      return stream;
    case Compression::kGzip:
      return GzipStream::Create(std::move(stream), file->name());
    case Compression::kOther:
      break;
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DecompressedStream> text,
      DecompressedStream::Create(std::move(stream), file->name()));
  if (text == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        file->name(), ": changed while the archive was built from it"));
  }
  return text;
}

absl::StatusOr<Compression> DetectCompression(const FilePtr& file) {
  std::array<uint8_t, 3> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, file->ReadAt(0, start));
  // Deflate, the only method of gzip, is part of its mark here: two bytes are
  // too few to call a file damaged that does not decompress.
  if (size == start.size() && start[0] == 0x1F && start[1] == 0x8B &&
      start[2] == 8) {
    return Compression::kGzip;
  }
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DecompressedStream> text,
                         DecompressedStream::Create(
                             std::make_unique<FileStream>(file), file->name()));
  return text != nullptr ? Compression::kOther : Compression::kNone;
}

bool IsZipStart(absl::string_view text) {
  return absl::StartsWith(text, "PK\x03\x04") ||
         absl::StartsWith(text, "PK\x05\x06");
}

bool ClaimsToBeTar(absl::string_view text) {
  return text.size() > 262 && text.substr(257, 5) == "ustar";
}

// Null if the file is one document. `is_stdin`: then an empty tar is a tar.
absl::StatusOr<std::unique_ptr<Source>> DetectArchive(const FilePtr& file,
                                                      bool is_stdin) {
  QUIRE_ASSIGN_OR_RETURN(const Compression compression,
                         DetectCompression(file));
  std::vector<uint8_t> start(kTarBlockSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text,
                         OpenText(file, compression));
  QUIRE_ASSIGN_OR_RETURN(const size_t start_size, ReadFully(*text, start));
  start.resize(start_size);
  const absl::string_view start_text = AsText(start);
  auto open = [file, compression] { return OpenText(file, compression); };
  if (absl::StartsWith(start_text, "WARC/")) {
    return MakeWarcSource(file->name(), std::move(open));
  }
  ContainerInput container;
  container.name = file->name();
  container.open = std::move(open);
  container.file = compression == Compression::kNone ? file : nullptr;
  if (IsZipStart(start_text)) {
    return MakeZipSource(std::move(container));
  }
  const bool whole_block = start.size() == kTarBlockSizeBytes;
  const bool zeros = std::all_of(start.begin(), start.end(),
                                 [](uint8_t byte) { return byte == 0; });
  if (whole_block && (IsTarHeader(start) || (is_stdin && zeros))) {
    return MakeTarSource(std::move(container));
  }
  if (ClaimsToBeTar(start_text)) {
    return absl::DataLossError(absl::StrCat(
        file->name(), ": begins like a tar, but the checksum of its first ",
        "header is wrong: it is damaged"));
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Source>> OpenStandardInput(
    const std::string& spool_folder) {
  const std::string name = "standard input";
  if (isatty(STDIN_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "standard input is a terminal; give - only with a tar piped in, as in: "
        "tar -c FOLDER | quired build -o OUT.quire -");
  }
  // Closed when the program began: then RunProgram() has put something there
  // that cannot be read.
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_WRONLY) {
    return absl::InvalidArgumentError(
        "standard input is closed; give - only with a tar piped in, as in: "
        "tar -c FOLDER | quired build -o OUT.quire -");
  }
  QUIRE_ASSIGN_OR_RETURN(const FilePtr file,
                         SpoolToUnnamedFile(STDIN_FILENO, name, spool_folder));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->SizeBytes());
  if (size_bytes == 0) {
    return absl::InvalidArgumentError(
        "standard input is empty, not a tar; did the command before the pipe "
        "fail?");
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                         DetectArchive(file, /*is_stdin=*/true));
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        "standard input is neither a tar nor a zip nor a WARC; a single file "
        "can be given by its path");
  }
  return source;
}

}  // namespace

absl::StatusOr<uint64_t> SourceReader::Skip(uint64_t size_bytes) {
  return SkipByReading(*this, size_bytes);
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const std::string& spool_folder) {
  if (path == "-") {
    return OpenStandardInput(spool_folder);
  }
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return ErrnoStatus(errno, path, "open");
  }
  if (S_ISDIR(status.st_mode)) {
    return MakeDirectorySource(path);
  }
  QUIRE_ASSIGN_OR_RETURN(const FilePtr file, InputFile::Open(path));
  absl::StatusOr<std::unique_ptr<Source>> source =
      DetectArchive(file, /*is_stdin=*/false);
  if (source.status().code() == absl::StatusCode::kDataLoss) {
    return absl::DataLossError(absl::StrCat(
        source.status().message(), "; to keep this file as it is, as one ",
        "document, put it into a folder and give the folder as the input"));
  }
  if (!source.ok() || *source != nullptr) {
    return source;
  }
  return MakePlainFileSource(file);
}

}  // namespace quire
