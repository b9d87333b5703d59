// SPDX-License-Identifier: GPL-3.0-or-later
//
// The header line of an ARC record as the header of a WARC record.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/arc_line.h"
#include "codecs/base/bytes.h"
#include "server/ingest/sources/crawl/warc_header.h"

namespace quire {

// Parses a header line of arc_line.h. Sets content_length, target_uri, date_ms,
// media_type (empty if TYPE is not a media type: "no-type") and record_type:
// "warcinfo" for the first record, of the URL filedesc://, else "response". An
// unusual date and a negative length, which is none, are noted in `oddities`;
// a date of 12 digits is taken as a minute.
// Errors: DataLoss  no such line, or a LENGTH over 2^63 - 1. The message does
//                   not name file and position: the caller knows them.
absl::StatusOr<WarcHeader> ParseArcHeader(ByteView line);

// True if `text` begins with a header line, or has no line end and begins with
// the scheme of a URL.
bool IsArcStart(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_
