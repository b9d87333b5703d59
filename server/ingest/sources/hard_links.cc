// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/hard_links.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/entry_walker.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/spool.h"

namespace quire {
namespace {

constexpr size_t kCopySizeBytes = 256 << 10;

// Appends the contents of the walker's current entry.
absl::Status CopyEntry(EntryWalker& walker, uint64_t size_bytes_max,
                       Spool& spool) {
  std::vector<uint8_t> buffer(kCopySizeBytes);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, walker.Read(buffer));
    if (got == 0) {
      return absl::OkStatus();
    }
    if (got > size_bytes_max - std::min(size_bytes_max, spool.size_bytes())) {
      return InputTooLarge(
          absl::StrCat(walker.container_name(), ": ", walker.Place(),
                       ": with this the targets of hard links hold more"),
          size_bytes_max);
    }
    QUIRE_RETURN_IF_ERROR(spool.Append(ByteView(buffer).first(got)));
  }
}

}  // namespace

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
  std::optional<Spool> spool;
  if (input.file == nullptr && !wanted.empty()) {
    QUIRE_ASSIGN_OR_RETURN(
        spool, Spool::Create(input.spool_directory,
                             "the targets of hard links of a compressed tar"));
  }
  // Target of each wanted name at the current position of the walk.
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
      target = LinkTarget{.entry_index = walker->index(),
                          .header_offset = walker->header_offset()};
      if (spool.has_value() && wanted.contains(walker->entry_name())) {
        target->spool_offset = spool->size_bytes();
        QUIRE_RETURN_IF_ERROR(CopyEntry(*walker, input.size_bytes_max, *spool));
        target->size_bytes = spool->size_bytes() - target->spool_offset;
      }
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
  if (spool.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(table->spool_, std::move(*spool).Finish(input.name));
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
  if (!table_.has_value()) {
    table_ = HardLinkTable::Build(input);
  }
  return *table_;
}

}  // namespace quire
