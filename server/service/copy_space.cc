// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/copy_space.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Local copies of archives that are in the list and not open.
constexpr size_t kClosedCopiesMax = 1000;

// Removes the copy of the closed archive that was used least recently. False if
// there is none.
bool RemoveOldCopy(Catalog& catalog, RemoteArchives& remote) {
  for (const ArchiveArgument& argument : catalog.GetClosedRemote()) {
    if (!remote.HasCopy(argument)) {
      continue;
    }
    const std::optional<Catalog::Opening> opening =
        catalog.Begin(argument.name, Catalog::Purpose::kTidy);
    if (opening.has_value()) {
      remote.RemoveCopy(opening->argument());
      return true;
    }
  }
  return false;
}

// Errors: FailedPrecondition  the indexes do not fit next to those of archives
// that are always open.
absl::Status CheckIndexesFit(const ArchiveArgument& argument,
                             const Catalog& catalog, RemoteArchives& remote) {
  uint64_t staying_bytes = 0;
  for (const Catalog::Held& held : catalog.GetHeld()) {
    if (held.is_current && !held.is_on_use) {
      staying_bytes += remote.KeptBytes(held.archive->path());
    }
  }
  const uint64_t needed_bytes = remote.IndexBytes(argument);
  const uint64_t limit_bytes = remote.store().cache().GetStats().size_bytes_max;
  return needed_bytes + staying_bytes <= limit_bytes
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   argument.url, ": its indexes need ",
                   FormatByteSize(needed_bytes), " of --store-cache, whose ",
                   FormatByteSize(limit_bytes), " hold ",
                   FormatByteSize(staying_bytes),
                   " of archives that are always open; give it more"));
}

}  // namespace

absl::Status PrepareCopy(const Catalog::Opening& opening, Catalog& catalog,
                         RemoteArchives& remote) {
  const ArchiveArgument& argument = opening.argument();
  const std::atomic<bool>* cancel = &opening.is_cancelled();
  while (remote.copy_count() > kClosedCopiesMax &&
         RemoveOldCopy(catalog, remote)) {
  }
  while (true) {
    absl::Status status =
        remote.PrepareOutline(argument, cancel, MayBeStale::kYes);
    if (status.ok()) {
      status = remote.PrepareIndexes(argument, cancel);
    }
    if (!absl::IsResourceExhausted(status)) {
      return status;
    }
    // Not the disk: removing copies helps.
    QUIRE_RETURN_IF_ERROR(CheckIndexesFit(argument, catalog, remote));
    if (!RemoveOldCopy(catalog, remote) &&
        !(catalog.CloseOne(Catalog::Victim::kUnreadRemote) &&
          RemoveOldCopy(catalog, remote))) {
      return status;
    }
  }
}

}  // namespace quire
