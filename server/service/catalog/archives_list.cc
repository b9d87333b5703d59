// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/archives_list.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "server/archive/files/small_file.h"
#include "server/storage/remote/remote_store.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr uint64_t kListSizeBytesMax = uint64_t{64} << 20;
constexpr size_t kShownErrorSizeMax = 300;

}  // namespace

absl::StatusOr<std::vector<ArchiveArgument>> ParseArchivesList(
    absl::string_view text, const std::string& directory) {
  std::vector<ArchiveArgument> archives;
  // Lines of names.
  std::map<std::string, uint64_t> lines;
  std::vector<std::string> errors;
  uint64_t error_count = 0;
  const auto add_error = [&](uint64_t line, absl::string_view message) {
    if (++error_count <= kShownListErrorsMax) {
      errors.push_back(absl::StrCat("line ", line, ": ",
                                    message.substr(0, kShownErrorSizeMax)));
    }
  };
  uint64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    absl::StatusOr<ArchiveArgument> archive =
        line.find('\0') == absl::string_view::npos
            ? ParseArchiveArgument(line)
            : absl::InvalidArgumentError(
                  "a zero byte; the list must be a text file");
    if (!archive.ok()) {
      add_error(number, archive.status().message());
      continue;
    }
    if (!archive->url.empty()) {
      const absl::Status status =
          ParseStoreAddress(archive->url, "", RemoteStoreOptions().region)
              .status();
      if (!status.ok()) {
        add_error(number, status.message());
        continue;
      }
    }
    const auto [first, is_new] = lines.emplace(archive->name, number);
    if (!is_new) {
      add_error(number, absl::StrCat("the name ", archive->name,
                                     " is that of line ", first->second,
                                     ", too; name them apart with NAME=PATH"));
      continue;
    }
    if (archive->url.empty()) {
      archive->path =
          (std::filesystem::path(directory) / archive->path).string();
    }
    archive->is_listed = true;
    archives.push_back(*std::move(archive));
  }
  if (error_count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::StrJoin(errors, "; "),
        error_count > errors.size()
            ? absl::StrCat("; and ", error_count - errors.size(), " more")
            : ""));
  }
  return archives;
}

absl::StatusOr<std::vector<ArchiveArgument>> ReadArchivesList(
    const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadSmallFile(path, kListSizeBytesMax);
  if (!text.ok()) {
    return absl::InvalidArgumentError(text.status().message());
  }
  absl::StatusOr<std::vector<ArchiveArgument>> archives = ParseArchivesList(
      *text, std::filesystem::path(path).parent_path().string());
  if (!archives.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", archives.status().message()));
  }
  return archives;
}

}  // namespace quire
