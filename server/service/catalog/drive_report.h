// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds the drives of archives, for the block store and for the log.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_
#define QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "server/service/catalog/catalog.h"
#include "server/storage/block_store.h"
#include "server/storage/device/drive_kind.h"

namespace quire {

// Returns the drives of an archive, possibly with duplicates, with the kind
// that the user specified, if any.
std::vector<DriveInfo> DrivesOf(const ServedArchive& served,
                                std::optional<DriveKind> kind);

// Returns the drive of a directory, for a store without drives yet: an
// archive's files may lie elsewhere.
DriveInfo DriveOfDirectory(const std::string& path,
                           std::optional<DriveKind> kind);

// Returns a line for each drive of the store: kind, engine, priorities, and the
// number of archive files on it that are read in physical order.
std::string DescribeDrives(const BlockStore& store,
                           const Catalog::ByName& archives);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_
