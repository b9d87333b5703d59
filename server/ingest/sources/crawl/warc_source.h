// SPDX-License-Identifier: GPL-3.0-or-later
//
// A WARC or ARC file as a source of its records.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_

#include <memory>

#include "server/ingest/sources/crawl/record_search.h"
#include "server/ingest/sources/crawl/warc_reader.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// `open` starts a pass over the uncompressed text of the WARC or ARC in `file`.
std::unique_ptr<Source> MakeWarcSource(std::shared_ptr<const InputFile> file,
                                       OpenStream open, RecordFormat format,
                                       WarcDamage damage);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_
