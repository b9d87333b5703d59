// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/container/container_directory.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

constexpr uint64_t kSubsectionCountMax = 16;

}  // namespace

absl::StatusOr<std::vector<ContainerEntry>> ParseContainerDirectory(
    ByteView section) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(section));
  if (count == 0 || count > kSubsectionCountMax) {
    return Damaged(absl::StrCat("a container has ", count,
                                " parts, expected 1 to ", kSubsectionCountMax));
  }
  std::vector<ContainerEntry> entries;
  uint64_t previous_id = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ContainerEntry entry;
    QUIRE_ASSIGN_OR_RETURN(entry.id, TakeVarint(section));
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes, TakeVarint(section));
    if (size_bytes > section.size()) {
      return Damaged(absl::StrCat("there are ", section.size(),
                                  " bytes, expected ", size_bytes));
    }
    entry.head = section.first(size_bytes);
    section = section.subspan(size_bytes);
    if (entry.id <= previous_id) {
      return Damaged(absl::StrCat(
          "part ", entry.id, " of a container comes after part ", previous_id));
    }
    previous_id = entry.id;
    entries.push_back(entry);
  }
  if (!section.empty()) {
    return Damaged(
        absl::StrCat(section.size(), " bytes follow the parts of a container"));
  }
  return entries;
}

std::string EncodeContainerDirectory(std::span<const ContainerEntry> entries) {
  std::string section;
  AppendVarint(entries.size(), section);
  for (const ContainerEntry& entry : entries) {
    AppendVarint(entry.id, section);
    AppendVarint(entry.head.size(), section);
    section.append(AsText(entry.head).data(), entry.head.size());
  }
  return section;
}

}  // namespace quire
