// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/build_journal.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

constexpr absl::string_view kFirstLines = "quire journal 2\nbuild version ";
constexpr absl::string_view kChecksum = "checksum ";
constexpr absl::string_view kDictionary = "dictionary ";
constexpr size_t kHashDigitCount = 16;
// Parameters have a few hundred bytes, and some hundred for each input.
constexpr uint64_t kJournalSizeBytesMax = 64 << 20;

// Removes a line "NAME 0123456789abcdef" from the start of `text`; returns its
// number.
std::optional<uint64_t> TakeHashLine(absl::string_view name,
                                     absl::string_view& text) {
  absl::string_view rest = text;
  uint64_t hash = 0;
  if (!absl::ConsumePrefix(&rest, name) || rest.size() <= kHashDigitCount ||
      rest[kHashDigitCount] != '\n' ||
      !std::ranges::all_of(rest.substr(0, kHashDigitCount),
                           absl::ascii_isxdigit) ||
      !absl::SimpleHexAtoi(rest.substr(0, kHashDigitCount), &hash)) {
    return std::nullopt;
  }
  text = rest.substr(kHashDigitCount + 1);
  return hash;
}

}  // namespace

std::string EncodeJournal(const JournalContents& contents) {
  std::string file = absl::StrCat(kFirstLines, contents.build_version, "\n",
                                  contents.parameters);
  absl::StrAppend(&file, kChecksum, FormatChecksum(Checksum64(AsBytes(file))),
                  "\n");
  if (contents.dictionary_hash.has_value()) {
    absl::StrAppend(&file, kDictionary,
                    FormatChecksum(*contents.dictionary_hash), "\n");
  }
  return file;
}

std::optional<JournalContents> ParseJournal(absl::string_view file) {
  const size_t end = file.find(absl::StrCat("\n", kChecksum));
  if (!absl::StartsWith(file, kFirstLines) || end == absl::string_view::npos) {
    return std::nullopt;
  }
  const absl::string_view head = file.substr(0, end + 1);
  absl::string_view rest = file.substr(end + 1);
  if (TakeHashLine(kChecksum, rest) != Checksum64(AsBytes(head))) {
    return std::nullopt;
  }
  const absl::string_view body = head.substr(kFirstLines.size());
  const size_t line_size = body.find('\n');
  uint32_t build_version = 0;
  if (!absl::SimpleAtoi(body.substr(0, line_size), &build_version)) {
    return std::nullopt;
  }
  return JournalContents{.parameters = std::string(body.substr(line_size + 1)),
                         .dictionary_hash = TakeHashLine(kDictionary, rest),
                         .build_version = build_version};
}

absl::StatusOr<std::optional<JournalContents>> ReadJournal(
    int directory_fd, const std::string& directory) {
  absl::StatusOr<ReadableFile> file =
      OpenReadableFile(directory_fd, kJournalFileName,
                       absl::StrCat(directory, "/", kJournalFileName));
  if (absl::IsNotFound(file.status())) {
    return std::nullopt;
  }
  QUIRE_RETURN_IF_ERROR(file.status());
  if (file->size_bytes() > kJournalSizeBytesMax) {
    return std::nullopt;
  }
  std::string text(file->size_bytes(), '\0');
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(file->fd.get(), 0, AsMutableBytes(text), file->path));
  return ParseJournal(text);
}

absl::Status WriteJournal(int directory_fd, const std::string& directory,
                          const JournalContents& contents) {
  const std::string path = absl::StrCat(directory, "/", kJournalFileName);
  const std::string file = EncodeJournal(contents);
  if (file.size() > kJournalSizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": would have ", file.size(), " bytes, expected at most ",
        kJournalSizeBytesMax, "; give directories instead of their files"));
  }
  if (unlinkat(directory_fd, kJournalFileName, 0) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, path, "replace");
  }
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(directory_fd, kJournalFileName, path));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(file)));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return SyncDirectory(directory_fd, directory);
}

}  // namespace quire
