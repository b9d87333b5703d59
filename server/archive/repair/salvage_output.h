// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files that saved documents are written to.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGE_OUTPUT_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGE_OUTPUT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/format/archive_description.h"
#include "server/archive/repair/archive_salvage.h"

namespace quire {

// Name of a document without an id: "%document-ORDINAL".
std::string SalvagedName(const Document& document);

// Members of a tar at `path`, or files of a directory there, named by
// TarName(id) (codecs/base/tar_format.h) and with the capture time as their
// time; media types, record types and fields are dropped. A document without an
// id has SalvagedName(); in a directory also one whose name a file has already,
// or that the file system refuses.
// Written aside, as PATH.partial/SALVAGED, until Finish(). What was written
// stays there after an error; the next writer of PATH removes it.
// Errors: as PartialDirectory::CreateForSalvage().
absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageTar(
    const std::string& path);
absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageDirectory(
    const std::string& path);

// A new archive at `path`, with ids, attributes and fields of the documents: a
// segment for each damaged one, of zstd blocks of 64 KiB. It records the number
// of lost documents as that of unread inputs. Documents over 16 MiB are copied
// to an unnamed file next to it first. Nothing stays after an error.
// Errors: as ArchiveWriter::Create().
absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeSalvageArchive(
    const std::string& path);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGE_OUTPUT_H_
