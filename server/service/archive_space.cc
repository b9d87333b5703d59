// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_space.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The second one is for direct I/O, or that of a local copy.
constexpr uint64_t kFilesPerSegmentMax = 2;

// Returns half of the limit of the process: connections need the rest.
uint64_t ListedFilesMax() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0
             ? limit.rlim_cur / 2
             : std::numeric_limits<uint64_t>::max();
}

}  // namespace

ArchiveSpace::ArchiveSpace(const MemoryPlan& plan, Catalog& catalog,
                           BlockStore& store, const WithdrawalFile* withdrawals)
    : plan_(plan),
      catalog_(catalog),
      store_(store),
      withdrawals_(withdrawals),
      files_max_(ListedFilesMax()) {}

absl::StatusOr<ArchiveSpace::Reservation> ArchiveSpace::Reserve(
    uint64_t bytes) {
  MutexLock lock(&mutex_);
  while (true) {
    ReloadNeed need = HeldBytes();
    need.fresh_bytes += bytes;
    absl::Status fits = CheckReload(plan_, need);
    if (fits.ok()) {
      FitCache(need);
      return MakeReservation(bytes);
    }
    if (!catalog_.CloseOne(Catalog::Victim::kUnread)) {
      return fits;
    }
  }
}

absl::StatusOr<std::optional<ArchiveSpace::Reservation>>
ArchiveSpace::ReserveListed(const ArchiveOutline& outline) {
  QUIRE_RETURN_IF_ERROR(CheckFitsAlone(plan_, outline.memory_bytes));
  // Memory of the opening itself counts, too, unless only the archive fits.
  const uint64_t working_bytes =
      CheckFitsAlone(plan_, outline.memory_bytes + outline.opening_bytes).ok()
          ? outline.opening_bytes
          : 0;
  const uint64_t new_bytes = outline.new_memory_bytes + working_bytes;
  MutexLock lock(&mutex_);
  while (true) {
    ReloadNeed need = HeldBytes();
    need.fresh_bytes += new_bytes;
    const uint64_t all_bytes =
        need.served_bytes + need.replaced_bytes + need.fresh_bytes;
    const bool fits = all_bytes <= plan_.archives_bytes + plan_.listed_bytes &&
                      HasFiles(outline.info.segment_count);
    if (!fits && catalog_.CloseOne(Catalog::Victim::kUnread)) {
      continue;
    }
    if (fits || CheckReload(plan_, need).ok()) {
      FitCache(need);
      return std::optional<Reservation>(MakeReservation(new_bytes));
    }
    return CloseForLater(new_bytes);
  }
}

absl::StatusOr<std::optional<ArchiveSpace::Reservation>>
ArchiveSpace::CloseForLater(uint64_t new_bytes) {
  while (true) {
    ReloadNeed need = HeldBytes();
    const bool will_change = need.replaced_bytes > 0 || need.fresh_bytes > 0 ||
                             catalog_.counts().on_use_open > 0;
    need.fresh_bytes += new_bytes;
    const absl::Status fits = CheckReload(plan_, need);
    if (fits.ok()) {
      // A call ended meanwhile, and its archive with it.
      return std::optional<Reservation>();
    }
    if (!will_change) {
      return fits;
    }
    // The calls that read replaced archives end.
    need.replaced_bytes = 0;
    if (CheckReload(plan_, need).ok() ||
        !catalog_.CloseOne(Catalog::Victim::kAny)) {
      return std::optional<Reservation>();
    }
  }
}

bool ArchiveSpace::HasFiles(uint64_t more_segments) const {
  uint64_t segment_count = more_segments;
  for (const Catalog::Held& held : catalog_.GetHeld()) {
    segment_count += held.is_current && held.is_on_use
                         ? held.archive->info().segment_count
                         : 0;
  }
  return kFilesPerSegmentMax * segment_count <= files_max_;
}

ArchiveSpace::Reservation ArchiveSpace::MakeReservation(uint64_t bytes) {
  pending_bytes_ += bytes;
  return {this, bytes};
}

void ArchiveSpace::Release(const Reservation& reservation) {
  MutexLock lock(&mutex_);
  pending_bytes_ -= reservation.bytes_;
  std::erase(fresh_, reservation.archive_.get());
}

absl::Status ArchiveSpace::Resize(Reservation& reservation,
                                  const std::shared_ptr<const Archive>& fresh) {
  MutexLock lock(&mutex_);
  pending_bytes_ -= std::exchange(reservation.bytes_, 0);
  reservation.archive_ = fresh;
  fresh_.push_back(fresh.get());
  const ReloadNeed need = HeldBytes();
  QUIRE_RETURN_IF_ERROR(CheckReload(plan_, need));
  FitCache(need);
  return absl::OkStatus();
}

uint64_t ArchiveSpace::FreeBytes() {
  MutexLock lock(&mutex_);
  const ReloadNeed need = HeldBytes();
  const uint64_t space_bytes =
      plan_.archives_bytes + plan_.listed_bytes + plan_.reload_bytes;
  const uint64_t used_bytes =
      need.served_bytes + need.replaced_bytes + need.fresh_bytes;
  return space_bytes - std::min(space_bytes, used_bytes);
}

bool ArchiveSpace::LendToConnections(uint64_t bytes) {
  MutexLock lock(&mutex_);
  const uint64_t before_bytes = std::exchange(connections_bytes_, bytes);
  const ReloadNeed need = HeldBytes();
  if (bytes > before_bytes && !CheckReload(plan_, need).ok()) {
    connections_bytes_ = before_bytes;
    return false;
  }
  FitCache(need);
  return true;
}

void ArchiveSpace::Fit() {
  MutexLock lock(&mutex_);
  FitCache(HeldBytes());
}

ReloadNeed ArchiveSpace::HeldBytes() {
  absl::flat_hash_set<const void*> parts;
  const auto add = [&](const Archive& archive, uint64_t& sum) {
    archive.VisitMemoryParts([&](const void* part, uint64_t bytes_max) {
      sum += parts.insert(part).second ? bytes_max : 0;
    });
  };
  ReloadNeed need;
  need.fresh_bytes = pending_bytes_;
  need.connections_bytes = connections_bytes_;
  // Kept until the end, so that no two parts have one address.
  const std::vector<Catalog::Held> all = catalog_.GetHeld();
  for (const Catalog::Held& held : all) {
    add(*held.archive,
        held.is_current ? need.served_bytes : need.replaced_bytes);
  }
  for (const Archive* fresh : fresh_) {
    add(*fresh, need.fresh_bytes);
  }
  // Rules that were added since the start, and the documents that they match.
  const uint64_t withdrawals_bytes =
      withdrawals_ == nullptr ? 0 : withdrawals_->HeldBytes(catalog_);
  need.served_bytes +=
      withdrawals_bytes - std::min(withdrawals_bytes, plan_.withdrawals_bytes);
  return need;
}

void ArchiveSpace::FitCache(const ReloadNeed& need) {
  store_.ResizeCache(CacheBytesBeside(
      plan_, need.served_bytes + need.replaced_bytes + need.fresh_bytes,
      need.connections_bytes));
}

}  // namespace quire
