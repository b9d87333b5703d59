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
#include "server/archive/files/file_io.h"
#include "server/ingest/byte_stream.h"
#include "server/ingest/container_source.h"
#include "server/ingest/directory_source.h"
#include "server/ingest/gzip_stream.h"
#include "server/ingest/input_limits.h"
#include "server/ingest/libarchive_input.h"
#include "server/ingest/plain_file_source.h"
#include "server/ingest/spool.h"
#include "server/ingest/warc_source.h"

namespace quire {
namespace {

using FilePtr = std::shared_ptr<const InputFile>;

enum class Compression { kNone, kGzip, kOther };

// What a pass over a file needs to know of it.
struct TextForm {
  Compression compression = Compression::kNone;
  // What it may decompress to.
  uint64_t size_bytes_max = 0;
};

absl::StatusOr<std::unique_ptr<ByteStream>> OpenCompressed(
    const FilePtr& file, Compression compression) {
  auto stream = std::make_unique<FileStream>(file);
  if (compression == Compression::kGzip) {
    return GzipStream::Create(std::move(stream), file->name());
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DecompressedStream> text,
      DecompressedStream::Create(std::move(stream), file->name()));
  if (text == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        file->name(),
        ": was compressed when it was opened and is not now; do not change ",
        "the input during a build"));
  }
  return text;
}

// Starts a pass over the text of `file`.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenText(const FilePtr& file,
                                                     const TextForm& form) {
  if (form.compression == Compression::kNone) {
    return std::make_unique<FileStream>(file);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text,
                         OpenCompressed(file, form.compression));
  return std::make_unique<BoundedStream>(std::move(text), file->name(),
                                         form.size_bytes_max);
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

struct SourceOptions {
  std::string spool_directory;
  std::optional<uint64_t> input_size_bytes_max;
};

// Null if the file is one document. `is_stdin`: then an empty tar is a tar.
absl::StatusOr<std::unique_ptr<Source>> DetectArchive(
    const FilePtr& file, const SourceOptions& options, bool is_stdin) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t stored_size_bytes, file->SizeBytes());
  TextForm form;
  form.size_bytes_max =
      InputSizeBytesMax(options.input_size_bytes_max, stored_size_bytes);
  QUIRE_ASSIGN_OR_RETURN(form.compression, DetectCompression(file));
  std::vector<uint8_t> start(kTarBlockSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text,
                         OpenText(file, form));
  QUIRE_ASSIGN_OR_RETURN(const size_t start_size, ReadFully(*text, start));
  start.resize(start_size);
  const absl::string_view start_text = AsText(start);
  auto open = [file, form] { return OpenText(file, form); };
  if (absl::StartsWith(start_text, "WARC/")) {
    return MakeWarcSource(file, std::move(open));
  }
  ContainerInput container;
  container.name = file->name();
  container.open = std::move(open);
  container.file = form.compression == Compression::kNone ? file : nullptr;
  container.stored_size_bytes = stored_size_bytes;
  container.spool_directory = options.spool_directory;
  container.size_bytes_max = form.size_bytes_max;
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
        file->name(), ": begins like a tar, but the checksum in its first ",
        "header is not that of the header: it is damaged"));
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Source>> OpenStandardInput(
    const SourceOptions& options) {
  const std::string name = "standard input";
  if (isatty(STDIN_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is a terminal; pipe one "
        "in: tar -c DIRECTORY | quired build -o OUT.quire -");
  }
  // Closed when the program began: then program_main.h has put something there
  // that cannot be read.
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_WRONLY) {
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is closed; pipe one in: "
        "tar -c DIRECTORY | quired build -o OUT.quire -");
  }
  QUIRE_ASSIGN_OR_RETURN(
      const FilePtr file,
      SpoolToUnnamedFile(
          STDIN_FILENO, name, options.spool_directory,
          options.input_size_bytes_max.value_or(kInputSizeBytesMax)));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->SizeBytes());
  if (size_bytes == 0) {
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is empty; did the "
        "command before the pipe fail?");
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                         DetectArchive(file, options, /*is_stdin=*/true));
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is none of them; give a "
        "single file by its path");
  }
  return source;
}

}  // namespace

absl::StatusOr<uint64_t> SourceReader::Skip(uint64_t size_bytes) {
  return SkipByReading(*this, size_bytes);
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const std::string& spool_directory,
    std::optional<uint64_t> input_size_bytes_max) {
  const SourceOptions options{.spool_directory = spool_directory,
                              .input_size_bytes_max = input_size_bytes_max};
  if (path == "-") {
    return OpenStandardInput(options);
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
      DetectArchive(file, options, /*is_stdin=*/false);
  if (source.status().code() == absl::StatusCode::kDataLoss) {
    return absl::DataLossError(absl::StrCat(
        source.status().message(), "; to keep this file as it is, as one ",
        "document, put it into a directory and give the directory as the "
        "input"));
  }
  if (!source.ok() || *source != nullptr) {
    return source;
  }
  return MakePlainFileSource(file);
}

}  // namespace quire
