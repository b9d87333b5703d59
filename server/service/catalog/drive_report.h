// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which drives archives lie on, for the block store and for the log.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_
#define QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "server/service/catalog/catalog.h"
#include "server/storage/block_store.h"
#include "server/storage/device/drive_kind.h"

namespace quire {

// The drives that an archive lies on, each once or more often, with the kind
// that the user says they are, if he does.
std::vector<DriveInfo> DrivesOf(const ServedArchive& served,
                                std::optional<DriveKind> kind);

// The drive of a directory, for a store that has none yet: an archive's files
// may lie elsewhere.
DriveInfo DriveOfDirectory(const std::string& path,
                           std::optional<DriveKind> kind);

// A line for each drive of the store: kind, engine, priorities, and how many of
// the archives' files on it are read in physical order.
std::string DescribeDrives(const BlockStore& store,
                           const Catalog::ByName& archives);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_DRIVE_REPORT_H_
