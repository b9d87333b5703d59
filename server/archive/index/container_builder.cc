// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/container_builder.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/container/container_directory.h"

namespace quire {

absl::StatusOr<std::optional<ContainerBuilder::Sections>>
ContainerBuilder::Build() {
  // In order of their ids.
  std::vector<std::pair<SubsectionId, std::string>> heads;
  if (!fields_.columns().empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::string head, fields_.Build(data_));
    heads.emplace_back(SubsectionId::kFields, std::move(head));
  }
  if (heads.empty()) {
    return std::optional<Sections>();
  }
  std::vector<ContainerEntry> entries;
  for (const auto& [id, head] : heads) {
    entries.push_back({.id = static_cast<uint64_t>(id), .head = AsBytes(head)});
  }
  return Sections{.directory = EncodeContainerDirectory(entries),
                  .data = std::move(data_).Take()};
}

}  // namespace quire
