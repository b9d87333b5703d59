// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/hard_links.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/entry_walker.h"

namespace quire {

absl::StatusOr<std::shared_ptr<const HardLinkTable>> HardLinkTable::Build(
    const ContainerInput& input) {
  absl::flat_hash_set<std::string> wanted;
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<EntryWalker> walker,
      EntryWalker::Open(input, LibarchiveInput::Format::kTar));
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const bool more, walker->Next());
    if (!more) {
      break;
    }
    if (walker->kind() == EntryWalker::Kind::kHardLink) {
      wanted.insert(walker->link_target());
    }
  }

  auto table = std::make_shared<HardLinkTable>();
  // What each wanted name means at the current place of the walk.
  absl::flat_hash_map<std::string, LinkTarget> meaning;
  QUIRE_ASSIGN_OR_RETURN(
      walker, EntryWalker::Open(input, LibarchiveInput::Format::kTar));
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const bool more, walker->Next());
    if (!more) {
      break;
    }
    std::optional<LinkTarget> target;
    if (walker->kind() == EntryWalker::Kind::kFile) {
      target = LinkTarget{walker->index(), walker->header_offset()};
    } else if (walker->kind() == EntryWalker::Kind::kHardLink) {
      const auto found = meaning.find(walker->link_target());
      if (found != meaning.end()) {
        target = found->second;
        table->targets_[walker->index()] = *target;
      }
    }
    if (wanted.contains(walker->entry_name())) {
      if (target.has_value()) {
        meaning[walker->entry_name()] = *target;
      } else {
        meaning.erase(walker->entry_name());
      }
    }
  }
  return table;
}

std::optional<LinkTarget> HardLinkTable::Find(uint64_t link_entry_index) const {
  const auto found = targets_.find(link_entry_index);
  if (found == targets_.end()) {
    return std::nullopt;
  }
  return found->second;
}

absl::StatusOr<std::shared_ptr<const HardLinkTable>> LazyHardLinkTable::Get(
    const ContainerInput& input) {
  const MutexLock lock(&mutex_);
  if (table_ == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(table_, HardLinkTable::Build(input));
  }
  return table_;
}

}  // namespace quire
