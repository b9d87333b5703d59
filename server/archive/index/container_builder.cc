// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/container_builder.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_leaf.h"
#include "server/archive/container/container_directory.h"

namespace quire {

absl::Status ContainerBuilder::AddDocument(uint64_t ordinal,
                                           const NewDocument& document) {
  QUIRE_RETURN_IF_ERROR(
      deposits_.AddText(document.deposit, document.size_bytes, data_));
  QUIRE_RETURN_IF_ERROR(fields_.Add(document.fields, data_));
  if (!document.capture.has_value()) {
    return absl::OkStatus();
  }
  const NewCapture& capture = *document.capture;
  SegmentCapture added = {.key = capture.key,
                          .time_ms = document.capture_time_ms.value_or(0),
                          .ordinal = ordinal,
                          .status = capture.status,
                          .digest = std::string(capture.digest)};
  if (absl::EndsWith(document.id, capture.url)) {
    added.id_skip_bytes =
        static_cast<uint32_t>(document.id.size() - capture.url.size());
  } else {
    added.id_skip_bytes = std::nullopt;
    added.url = capture.url;
  }
  return captures_.Add(added);
}

absl::StatusOr<std::optional<ContainerBuilder::Sections>>
ContainerBuilder::Build() {
  // In order of their ids.
  std::vector<std::pair<SubsectionId, std::string>> heads;
  if (!fields_.columns().empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::string head, fields_.Build(data_));
    heads.emplace_back(SubsectionId::kFields, std::move(head));
  }
  if (!captures_.empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::string head, captures_.Build(data_));
    heads.emplace_back(SubsectionId::kCaptures, std::move(head));
  }
  if (!deposits_.empty()) {
    QUIRE_ASSIGN_OR_RETURN(std::string head, deposits_.Build(data_));
    heads.emplace_back(SubsectionId::kDeposits, std::move(head));
  }
  if (heads.empty()) {
    return std::optional<Sections>();
  }
  std::vector<ContainerEntry> entries;
  entries.reserve(heads.size());
  for (const auto& [id, head] : heads) {
    entries.push_back({.id = static_cast<uint64_t>(id), .head = AsBytes(head)});
  }
  return Sections{.directory = EncodeContainerDirectory(entries),
                  .data = std::move(data_).Take()};
}

}  // namespace quire
