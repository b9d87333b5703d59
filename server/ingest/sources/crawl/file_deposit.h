// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_

#include <memory>

#include "server/ingest/sources/deposit_source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// A WARC or ARC as it is: a file that is its documents' text, the same
// compressed by gzip in any number of members, or compressed otherwise. Each
// gzip member is reproduced once, and compared with the file; those that are
// not reproduced are literals, as are files compressed otherwise.
//
// Draft() refuses a file whose literals have more than 1/200 of its bytes, 1 %
// of an archive of about half its size, unless Options::keeps_all. It stops
// reading once that is certain.
std::shared_ptr<const DepositSource> MakeFileDeposit(
    std::shared_ptr<const InputFile> file);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_
