// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/shared_parts.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include "server/archive/files/archive_directory.h"
#include "server/archive/format/archive_format.h"
#include "server/service/catalog/archive_argument.h"

namespace quire {
namespace {

// A directory with more files of one kind counts as unknown.
constexpr size_t kPartFilesMax = 1000;
// Hexadecimal digits of a hash.
constexpr size_t kHashSize = 16;

std::optional<uint64_t> ParseHash(absl::string_view hash) {
  uint64_t number = 0;
  return hash.size() == kHashSize && absl::SimpleHexAtoi(hash, &number)
             ? std::optional(number)
             : std::nullopt;
}

void AddHash(absl::string_view hash, std::vector<uint64_t>& hashes) {
  if (const std::optional<uint64_t> number = ParseHash(hash);
      number.has_value()) {
    hashes.push_back(*number);
  }
}

}  // namespace

SharedParts::SharedParts(const ArchiveInfo& info) : is_known_(true) {
  AddHash(info.dictionary_hash, of_manifest_.dictionaries);
  AddHash(info.symbol_table_hash, of_manifest_.symbol_tables);
}

void SharedParts::Examine(const ArchiveArgument& argument) {
  namespace fs = std::filesystem;
  // Of an archive in an object store, those of the local copy: the last that
  // were read.
  if (absl::StatusOr<ArchiveDirectory> directory =
          OpenDirectoryOnly(argument.path);
      directory.ok() && ReadManifest(*directory).ok()) {
    *this = SharedParts(directory->manifest.Describe(0));
    return;
  }
  of_files_ = {};
  std::error_code error;
  fs::directory_iterator entry(argument.path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string file_name = entry->path().filename().string();
    absl::string_view name = file_name;
    if (absl::ConsumePrefix(&name, kDictionaryFilePrefix)) {
      AddHash(name, of_files_.dictionaries);
    } else if (absl::ConsumePrefix(&name, kSymbolTableFilePrefix)) {
      AddHash(name, of_files_.symbol_tables);
    }
    if (std::max(of_files_.dictionaries.size(),
                 of_files_.symbol_tables.size()) > kPartFilesMax) {
      return;
    }
  }
  // A local copy need not have all files. Where there is no directory there are
  // none, unless a link may lead to one again.
  std::error_code ignored;
  const bool is_listed =
      !error || ((error == std::errc::not_a_directory ||
                  error == std::errc::no_such_file_or_directory) &&
                 !fs::is_symlink(argument.path, ignored));
  is_known_ = is_known_ || (argument.url.empty() && is_listed);
}

void SharedParts::Add(const SharedParts& other) {
  const auto add = [](const std::vector<uint64_t>& from,
                      std::vector<uint64_t>& to) {
    for (const uint64_t hash : from) {
      if (std::ranges::find(to, hash) == to.end()) {
        to.push_back(hash);
      }
    }
  };
  for (const Hashes* const hashes : {&other.of_manifest_, &other.of_files_}) {
    add(hashes->dictionaries, of_manifest_.dictionaries);
    add(hashes->symbol_tables, of_manifest_.symbol_tables);
  }
  is_known_ = true;
}

std::optional<bool> SharedParts::Has(SharedPart part,
                                     absl::string_view hash) const {
  const std::optional<uint64_t> number = ParseHash(hash);
  const auto has_it = [&](const Hashes& hashes) {
    const std::vector<uint64_t>& all = part == SharedPart::kDictionary
                                           ? hashes.dictionaries
                                           : hashes.symbol_tables;
    return std::ranges::find(all, *number) != all.end();
  };
  if (number.has_value() && (has_it(of_manifest_) || has_it(of_files_))) {
    return true;
  }
  return is_known_ ? std::optional(false) : std::nullopt;
}

std::string NeighbourhoodOf(const ArchiveArgument& argument) {
  absl::string_view place = argument.url.empty() ? argument.path : argument.url;
  while (absl::ConsumeSuffix(&place, "/")) {
  }
  const size_t slash = place.rfind('/');
  return std::string(
      place.substr(0, slash == absl::string_view::npos ? 0 : slash));
}

}  // namespace quire
