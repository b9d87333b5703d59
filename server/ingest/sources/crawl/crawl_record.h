// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an index of captures wants of a record of a crawl.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_CRAWL_RECORD_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_CRAWL_RECORD_H_

#include <cstddef>

#include "codecs/base/bytes.h"
#include "server/ingest/sources/crawl/warc_header.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Returns how many bytes of the block MakeCrawlRecord() needs: many for a
// request with a body. `start` is that of the block, as many bytes as this
// returns without it.
size_t CrawlRecordSize(const WarcHeader& header, ByteView start);

// `block` is the start of the record's block. REQUIRES: the header has a URL.
CrawlRecord MakeCrawlRecord(const WarcHeader& header, ByteView block);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_CRAWL_RECORD_H_
