// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/unfinished_archive.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

constexpr size_t kDifferentLinesMax = 8;

// Returns the lines that differ, the first ones of many, on one line:
// "codec zstd:3, block size 65536".
std::string DifferentLines(const std::string& lines, const std::string& other) {
  const absl::flat_hash_set<absl::string_view> others =
      absl::StrSplit(other, '\n');
  std::string different;
  size_t count = 0;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    if (!others.contains(line) && ++count <= kDifferentLinesMax) {
      absl::StrAppend(&different, different.empty() ? "" : ", ", line);
    }
  }
  if (count > kDifferentLinesMax) {
    absl::StrAppend(&different, " and ", count - kDifferentLinesMax, " more");
  }
  return different;
}

// Returns what distinguishes two unequal lists of lines.
std::string Difference(const std::string& begun, const std::string& given) {
  const std::string missing = DifferentLines(begun, given);
  const std::string added = DifferentLines(given, begun);
  if (missing.empty() && added.empty()) {
    return "its inputs in another order";
  }
  return absl::StrCat(missing.empty() ? "less" : missing, ", not with ",
                      added.empty() ? "less" : added);
}

bool AnyFile(absl::string_view /*name*/) {
  return true;
}

bool HasFile(int directory_fd, const std::string& name) {
  struct stat status;
  return fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

absl::StatusOr<UnfinishedArchive> UnfinishedArchive::Open(
    const std::string& path, bool replace, const std::string& parameters,
    uint32_t build_version, bool restart) {
  QUIRE_ASSIGN_OR_RETURN(
      PartialDirectory directory,
      PartialDirectory::Create(
          path, replace, restart ? Leftovers::kRemove : Leftovers::kKeep));
  absl::StatusOr<std::optional<JournalContents>> read =
      ReadJournal(directory.fd(), directory.name());
  if (!read.ok()) {
    // The device may read it later.
    directory.KeepUnpublished();
    return read.status();
  }
  std::optional<JournalContents> found = *std::move(read);
  if (found.has_value() && found->build_version != build_version) {
    found.reset();
  }
  if (found.has_value() && found->parameters != parameters) {
    directory.KeepUnpublished();
    return absl::FailedPreconditionError(absl::StrCat(
        directory.name(), ": was begun with ",
        Difference(found->parameters, parameters),
        "; give the same options and unchanged inputs to finish it, or "
        "--restart to drop it"));
  }
  if (found.has_value()) {
    UnfinishedArchive unfinished(std::move(directory), *found);
    // An earlier writer wrote blocks or chose their dictionary.
    if (found->dictionary_hash.has_value() ||
        HasFile(unfinished.directory_.fd(), SegmentFileName(0))) {
      unfinished.directory_.KeepUnpublished();
    }
    return unfinished;
  }
  const bool has_blocks = HasFile(directory.fd(), SegmentFileName(0));
  QUIRE_RETURN_IF_ERROR(directory.RemoveFiles(AnyFile));
  JournalContents journal = {.parameters = parameters,
                             .build_version = build_version};
  QUIRE_RETURN_IF_ERROR(
      WriteJournal(directory.fd(), directory.name(), journal));
  UnfinishedArchive unfinished(std::move(directory), std::move(journal));
  unfinished.has_dropped_blocks_ = has_blocks;
  return unfinished;
}

std::optional<std::string> UnfinishedArchive::ReadDictionary() const {
  if (!journal_.dictionary_hash.has_value()) {
    return std::nullopt;
  }
  const std::string name = DictionaryFileName(*journal_.dictionary_hash);
  const absl::StatusOr<ReadableFile> file = OpenReadableFile(
      directory_.fd(), name, absl::StrCat(directory_.name(), "/", name));
  std::array<uint8_t, kDictionaryHeaderSizeBytes> bytes;
  if (!file.ok() || !ReadExactly(file->fd.get(), 0, bytes, file->path).ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<DictionaryHeader> header = ParseDictionaryHeader(bytes);
  if (!header.ok() || header->size_bytes > kDictionaryTextSizeBytesMax ||
      header->stored_size_bytes > file->size_bytes()) {
    return std::nullopt;
  }
  absl::StatusOr<std::string> text =
      ReadDictionaryFile(*file, {.hash = *journal_.dictionary_hash,
                                 .size_bytes = header->size_bytes,
                                 .file_size_bytes = file->size_bytes()});
  return text.ok() ? std::optional(*std::move(text)) : std::nullopt;
}

absl::Status UnfinishedArchive::StartWriting(const CodecContext* context) {
  std::optional<uint64_t> hash;
  if (context != nullptr) {
    hash = Checksum64(AsBytes(context->dictionary));
  }
  if (journal_.dictionary_hash == hash) {
    // All other files are written again.
    return directory_.RemoveFiles(
        [](absl::string_view name) { return !IsSegmentFileName(name); });
  }
  // Remove them first: the new journal must not describe old blocks.
  QUIRE_RETURN_IF_ERROR(directory_.RemoveFiles(AnyFile));
  journal_.dictionary_hash = hash;
  return WriteJournal(directory_.fd(), directory_.name(), journal_);
}

}  // namespace quire
