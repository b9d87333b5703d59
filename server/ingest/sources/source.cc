// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/ingest/sources/archive_source.h"
#include "server/ingest/sources/container_detection.h"
#include "server/ingest/sources/file_sources.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/lines/line_source.h"
#include "server/ingest/sources/packed_source.h"
#include "server/ingest/sources/spool.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {
namespace {

using FilePtr = std::shared_ptr<const InputFile>;

absl::StatusOr<std::unique_ptr<Source>> OpenStandardInput(
    const SourceOptions& options) {
  const std::string name = "standard input";
  if (isatty(STDIN_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is a terminal; pipe one "
        "in: tar -c DIRECTORY | quired build -o OUT.quire -");
  }
  // If it was closed at the start, program_main.h has opened an unreadable file
  // there.
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
  QUIRE_ASSIGN_OR_RETURN(
      DetectedFile detected,
      DetectContainer(file, options, FoundIn::kStandardInput));
  if (detected.container == nullptr) {
    if (options.split.has_value()) {
      return MakePlainFileSource(file);
    }
    return absl::InvalidArgumentError(
        "standard input must be a tar, zip or WARC and is none of them; give a "
        "single file by its path");
  }
  return std::move(detected.container);
}

absl::StatusOr<std::unique_ptr<Source>> OpenFile(const std::string& path,
                                                 const SourceOptions& options,
                                                 std::string& misnaming) {
  QUIRE_ASSIGN_OR_RETURN(const FilePtr file, InputFile::Open(path));
  if (options.split.has_value() && options.split->has_fields()) {
    QUIRE_ASSIGN_OR_RETURN(const bool is_parquet, IsParquet(*file));
    if (is_parquet) {
      return MakePackedSource(file, options);
    }
  }
  absl::StatusOr<DetectedFile> detected =
      DetectContainer(file, options, FoundIn::kArgument);
  if (detected.status().code() == absl::StatusCode::kDataLoss) {
    return absl::DataLossError(absl::StrCat(
        detected.status().message(),
        options.split.has_value()
            ? "; --keep-going leaves out what cannot be read"
            : "; to keep this file as it is, as one document, put it into a "
              "directory and give the directory as the input"));
  }
  QUIRE_RETURN_IF_ERROR(detected.status());
  misnaming = Misnaming(path, *detected);
  return detected->container != nullptr ? std::move(detected->container)
                                        : MakePlainFileSource(file);
}

absl::StatusOr<std::unique_ptr<Source>> OpenAny(const std::string& path,
                                                const SourceOptions& options,
                                                std::string& misnaming) {
  if (path == "-") {
    return OpenStandardInput(options);
  }
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return ErrnoStatus(errno, path, "open");
  }
  if (S_ISDIR(status.st_mode)) {
    if (IsArchive(path)) {
      return OpenArchiveSource(path, options.decode_threads);
    }
    return MakeDirectorySource(path, options);
  }
  return OpenFile(path, options, misnaming);
}

// The documents of an input, filtered and renamed.
class RuledReader final : public SourceReader {
 public:
  RuledReader(std::unique_ptr<SourceReader> reader,
              std::shared_ptr<const IdRules> rules, std::string name,
              std::string misnaming, bool holds_files)
      : reader_(std::move(reader)),
        rules_(std::move(rules)),
        name_(std::move(name)),
        misnaming_(std::move(misnaming)),
        holds_files_(holds_files) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (!misnaming_.empty()) {
      Note(EntryNote::kMisnamed, absl::StrCat(name_, ": ", misnaming_));
      misnaming_.clear();
    }
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                             reader_->Next());
      const bool is_parquet =
          document.has_value() && holds_files_ &&
          absl::EndsWithIgnoreCase(document->id, ".parquet");
      if (document.has_value() && rules_ != nullptr) {
        if (rules_->Excludes(document->id)) {
          Note(EntryNote::kExcluded,
               absl::StrCat(name_, ": ", reader_->Place()));
          continue;
        }
        document->id = rules_->Rename(document->id);
      }
      if (is_parquet) {
        Note(EntryNote::kForeignFormat,
             absl::StrCat(name_, ": ", reader_->Place(),
                          ": is named like Parquet, and is one document; ",
                          kParquetAdvice));
      }
      return document;
    }
  }

  std::string Place() const override { return reader_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return reader_->Read(out);
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return reader_->Skip(size_bytes);
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return reader_->AwaitedCheck();
  }

  bool CanContinue() const override { return reader_->CanContinue(); }

  SkippedEntries skipped() const override {
    SkippedEntries skipped = SourceReader::skipped();
    skipped += reader_->skipped();
    return skipped;
  }

  void Listen(NoteListener listener) override {
    reader_->Listen(listener);
    SourceReader::Listen(std::move(listener));
  }

 private:
  const std::unique_ptr<SourceReader> reader_;
  const std::shared_ptr<const IdRules> rules_;
  const std::string name_;
  std::string misnaming_;
  // Documents are files, not lines or records.
  const bool holds_files_;
};

class RuledSource final : public Source {
 public:
  RuledSource(std::unique_ptr<Source> source,
              std::shared_ptr<const IdRules> rules, std::string misnaming,
              bool is_split)
      : source_(std::move(source)),
        rules_(std::move(rules)),
        misnaming_(std::move(misnaming)),
        holds_files_(!is_split && CheckHasLines(*source_).ok()) {}

  const std::string& name() const override { return source_->name(); }

  const char* kind() const override { return source_->kind(); }

  std::vector<SourceField> fields() const override { return source_->fields(); }

  UnreadInputs unread_inputs() const override {
    return source_->unread_inputs();
  }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return source_->StoredSizeBytes();
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<SourceReader> reader,
                           source_->Open());
    return std::make_unique<RuledReader>(std::move(reader), rules_, name(),
                                         misnaming_, holds_files_);
  }

 private:
  const std::unique_ptr<Source> source_;
  const std::shared_ptr<const IdRules> rules_;
  const std::string misnaming_;
  const bool holds_files_;
};

}  // namespace

absl::StatusOr<uint64_t> SourceReader::Skip(uint64_t size_bytes) {
  return SkipByReading(*this, size_bytes);
}

void SourceReader::Note(EntryNote note, const std::string& text) {
  switch (note) {
    case EntryNote::kSymbolicLink:
      ++skipped_.symbolic_links;
      break;
    case EntryNote::kSpecialFile:
      ++skipped_.special_files;
      break;
    case EntryNote::kDanglingLink:
      ++skipped_.dangling_links;
      break;
    case EntryNote::kExcluded:
      ++skipped_.excluded;
      break;
    case EntryNote::kUnexpanded:
    case EntryNote::kMisnamed:
    case EntryNote::kBadRecord:
    case EntryNote::kTolerated:
    case EntryNote::kForeignFormat:
    case EntryNote::kRepeatedId:
    case EntryNote::kIrregularRecord:
      break;
  }
  if (listener_) {
    listener_(note, text);
  }
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const SourceOptions& options) {
  std::string misnaming;
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                         OpenAny(path, options, misnaming));
  source = std::make_unique<RuledSource>(std::move(source), options.id_rules,
                                         std::move(misnaming),
                                         options.split.has_value());
  if (!options.split.has_value()) {
    return source;
  }
  QUIRE_RETURN_IF_ERROR(CheckHasLines(*source));
  return MakeLineSource(std::move(source), options);
}

}  // namespace quire
