// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/ingest/sources/deposit_source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Range of a file that has text of its documents: that text, the same
// compressed by gzip in any number of members, or compressed otherwise.
struct DepositRange {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  // The container that the file is has compressed it, too.
  bool is_packed = false;
};

// A file as it is, such as a WARC, an ARC or a WACZ. `ranges` have the text of
// its documents, in their order; without any it is a single range. Each gzip
// member is reproduced once, and compared with the file. Literals are those
// that are not reproduced, what is compressed otherwise, and all that is in no
// range; and from the first to the last range if these do not follow each
// other in the file.
//
// Draft() refuses a file whose literals have more than 1/200 of its bytes, 1 %
// of an archive of about half its size, unless Options::keeps_all. It stops
// reading once that is certain.
std::shared_ptr<const DepositSource> MakeFileDeposit(
    std::shared_ptr<const InputFile> file,
    std::vector<DepositRange> ranges = {});

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_FILE_DEPOSIT_H_
