// SPDX-License-Identifier: Apache-2.0
#include "client/quire/archive_state.h"

#include <string>

namespace quire {

std::optional<v1::EarlierState> FindState(const v1::ArchiveDescription& archive,
                                          absl::string_view uuid) {
  const std::string wanted(uuid);
  v1::EarlierState now;
  now.set_uuid(archive.uuid());
  now.set_size_bytes(archive.size_bytes());
  now.set_document_count(archive.document_count());
  if (wanted == now.uuid()) {
    return now;
  }
  for (const auto* const states :
       {&archive.history(), &archive.redacted_states()}) {
    for (const v1::EarlierState& state : *states) {
      if (wanted == state.uuid() && state.size_bytes() <= now.size_bytes() &&
          state.document_count() <= now.document_count()) {
        return state;
      }
    }
  }
  return std::nullopt;
}

}  // namespace quire
