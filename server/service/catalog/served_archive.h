// SPDX-License-Identifier: GPL-3.0-or-later
//
// An open archive, with all that calls need to read it.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_SERVED_ARCHIVE_H_
#define QUIRE_SERVER_SERVICE_CATALOG_SERVED_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "server/archive/archive.h"
#include "server/service/catalog/archive_argument.h"
#include "server/service/catalog/archive_block_decoder.h"
#include "server/service/catalog/archive_traffic.h"
#include "server/service/catalog/decode_workspaces.h"
#include "server/service/catalog/wire_encoders.h"
#include "server/service/catalog/withdrawn_documents.h"
#include "server/storage/block_store.h"
#include "server/storage/device/file_placement.h"

namespace quire {

// One served archive. Immutable once published, except the average and the
// traffic.
struct ServedArchive {
  std::string name;
  // NeighbourhoodOf() it.
  std::string neighbourhood;
  std::shared_ptr<const Archive> archive;
  // New at every opening, except one of the same files as before under the same
  // name.
  uint64_t opening_id = 0;

  // Sources of BlockKey, of the blocks of a segment as text, as stored, and of
  // those that are checked and never cached. A segment that an archive takes
  // from the one before has the same, so its cached blocks stay.
  uint64_t SourceId(uint32_t segment_index) const {
    return 3 * archive->OpenedSegmentId(segment_index);
  }

  uint64_t StoredSourceId(uint32_t segment_index) const {
    return SourceId(segment_index) + 1;
  }

  uint64_t ScrubSourceId(uint32_t segment_index) const {
    return SourceId(segment_index) + 2;
  }

  // These two read blocks of `archive` and keep it alive.
  std::shared_ptr<const BlockDecoder> decoder;
  std::shared_ptr<const BlockDecoder> stored_reader;
  // CPU time of `decoder`; see MakeTextDecoder().
  std::shared_ptr<const MovingAverage> part_time_per_mib;
  // Placements of the segment files, none of which is null.
  std::vector<std::shared_ptr<const FilePlacement>> placements;
  // Null if the archive has no symbol table.
  std::shared_ptr<const WireTable> wire_table;
  // Shared with other archives.
  std::shared_ptr<WireEncoders> wire_encoders;
  // Documents that clients must not get. Changes while calls read the archive.
  // While there are any, its answers are in identity, without its dictionary
  // and symbol table.
  std::shared_ptr<WithdrawalInForce> withdrawal =
      std::make_shared<WithdrawalInForce>();
  v1::ArchiveDescription description;
  // Traffic of all archives served under the name, one after the other. Null
  // until the archive is published.
  std::shared_ptr<ArchiveTraffic> traffic;
};

// Contents that a call reads: a state of an archive, less the documents that
// were withdrawn at one moment. The call resolves its target and plans its
// answer by this one snapshot; CheckStillThere() compares it with the present.
struct ServedContents {
  ServedContents() = default;

  // The newest state.
  explicit ServedContents(std::shared_ptr<const ServedArchive> whole)
      : archive(std::move(whole)), view(*archive->archive) {
    TakeWithdrawal();
  }

  // Takes a later snapshot, for another part of a long call.
  void TakeWithdrawal() { withdrawal = archive->withdrawal->Get(); }

  // Keeps the snapshot's generation alone: a call may last for hours, and other
  // documents may be withdrawn meanwhile.
  void FreeWithdrawal() { withdrawal.documents = nullptr; }

  std::shared_ptr<const ServedArchive> archive;
  // Views `archive`.
  ArchiveView view;
  WithdrawalSnapshot withdrawal;
};

// Finds the placement of an open segment file. Blocks on I/O.
using FilePlacer = std::function<FilePlacement(int fd)>;

// Returns the description of an archive for clients, without its history.
v1::ArchiveDescription DescribeArchive(const std::string& name,
                                       const ArchiveInfo& info,
                                       v1::ArchiveState state);

// Adds the earlier states of an archive, redacted ones included, to its
// description.
void AddHistory(const ArchiveInfo& info, v1::ArchiveDescription& description);

// Opens an archive for serving, to be decoded in `workspaces` and encoded for
// answers by `encoders`, neither of which is null. `report_damage`
// may be empty. Takes from `previous`, which may be null, what both have
// (ArchiveOpenOptions::shared). Blocks on I/O.
// Errors: as Archive::Open().
absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<WireEncoders> encoders, DamageReporter report_damage,
    ArchiveOpenOptions options = {}, const ServedArchive* previous = nullptr,
    const FilePlacer& place_file = PlaceFile);

// Returns the archive in the state `uuid`, which `field` of a request names.
// Errors: FailedPrecondition (ARCHIVE_STATE_UNKNOWN): it has no such state.
absl::StatusOr<ArchiveView> FindState(const Archive& archive,
                                      absl::string_view name,
                                      absl::string_view uuid,
                                      absl::string_view field);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_SERVED_ARCHIVE_H_
