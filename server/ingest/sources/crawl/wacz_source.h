// SPDX-License-Identifier: GPL-3.0-or-later
//
// WACZ (Web Archive Collection Zipped, 1.1): a zip with WARCs in archive/, and
// with indexes of them, which are not read.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_WACZ_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_WACZ_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/container_source.h"
#include "server/ingest/sources/crawl/warc_reader.h"
#include "server/ingest/sources/source.h"

namespace quire {

// True if the file is named like a WACZ.
bool IsNamedWacz(absl::string_view path);

// Source of the records of all WARCs and ARCs in the WACZ, in the order of the
// zip; null if the zip is not a WACZ. It is one if it holds datapackage.json
// and something in archive/ or a WACZ, or is named like one. Read are the files
// in archive/ whose names end in .warc or .arc, or in these and .gz, .zst, .bz2
// or .xz; and everywhere those whose names end in .wacz, up to four in each
// other, which are copied to input.spool_directory while they are read. Others
// in archive/, and WARCs and ARCs outside of it, are noted
// (EntryNote::kMisnamed). If input.file is there, all
// documents have the zip as their SourceDocument::deposit.
//
// Open() fails with DataLoss if the zip lists no WARC or cannot be listed. With
// WarcDamage::kSkip, reading continues with the next WARC after one that cannot
// be read; of a zip without its list of entries, which is truncated, the
// entries that are there are read, and then the error is returned.
// REQUIRES: input.file != nullptr. Errors: Unavailable.
absl::StatusOr<std::unique_ptr<Source>> MakeWaczSource(
    const ContainerInput& input, WarcDamage damage);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_WACZ_SOURCE_H_
