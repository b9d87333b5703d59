// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/archive_argument.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/archive_name.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

// Returns the archive at a path, which may contain '='.
ArchiveArgument NamedByPath(absl::string_view path) {
  absl::string_view stem = path;
  while (absl::ConsumeSuffix(&stem, "/")) {
  }
  stem = stem.substr(stem.rfind('/') + 1);
  absl::ConsumeSuffix(&stem, ".quire");
  return {.name = std::string(stem), .path = std::string(path)};
}

absl::Status CheckArchiveName(const ArchiveArgument& argument) {
  return IsArchiveName(argument.name)
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "\"", argument.name,
                   "\" cannot be an archive's name: use 1 to ",
                   kArchiveNameSizeMax,
                   " letters, digits, dots, underscores and dashes, not \".\" "
                   "or \"..\", as in NAME=",
                   argument.path));
}

}  // namespace

absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text) {
  ArchiveArgument argument;
  const size_t equals = text.find('=');
  // A path may contain '=', too: the text before it is a name only if it looks
  // like one.
  if (equals != absl::string_view::npos &&
      !absl::StrContains(text.substr(0, equals), '/')) {
    argument.name = std::string(text.substr(0, equals));
    argument.path = std::string(text.substr(equals + 1));
  } else {
    argument = NamedByPath(text);
  }
  if (argument.path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no archive; write PATH or ", "NAME=PATH"));
  }
  QUIRE_RETURN_IF_ERROR(CheckArchiveName(argument));
  if (IsStoreUrl(argument.path)) {
    argument.url = std::move(argument.path);
    argument.path.clear();
  }
  return argument;
}

absl::StatusOr<DirectoryArchives> FindArchives(const std::string& directory) {
  namespace fs = std::filesystem;
  struct stat attributes = {};
  if (stat(directory.c_str(), &attributes) != 0) {
    return ErrnoStatus(errno, directory, "list");
  }
  std::vector<ArchiveArgument> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string file_name = path.filename().string();
    // An entry that looks like an archive and cannot be examined is left to the
    // code that opens it.
    std::error_code ignored;
    if (absl::StartsWith(file_name, ".") ||
        absl::EndsWith(file_name, ".partial") ||
        !entry->is_directory(ignored) ||
        (path.extension() != ".quire" &&
         !fs::exists(path / "MANIFEST", ignored))) {
      continue;
    }
    ArchiveArgument argument = NamedByPath(path.string());
    if (const absl::Status status = CheckArchiveName(argument); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ": ", status.message()));
    }
    found.push_back(std::move(argument));
  }
  if (error) {
    return ErrnoStatus(error.value(), directory, "list");
  }
  std::sort(found.begin(), found.end(),
            [](const ArchiveArgument& a, const ArchiveArgument& b) {
              return a.name < b.name;
            });
  if (const absl::Status status = CheckNamesDiffer(found); !status.ok()) {
    return status;
  }
  return DirectoryArchives{.archives = std::move(found),
                           .device = attributes.st_dev};
}

absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments) {
  std::map<absl::string_view, absl::string_view> paths;
  for (const ArchiveArgument& argument : arguments) {
    const absl::string_view where =
        argument.url.empty() ? argument.path : argument.url;
    const auto [other, is_new] = paths.emplace(argument.name, where);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two archives are named \"", argument.name, "\", ", other->second,
          " and ", where, "; name them apart with NAME=PATH"));
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
