// SPDX-License-Identifier: GPL-3.0-or-later
//
// The header line of an ARC record (Internet Archive, "Arc File Format", 1996,
// versions 1 and 2), as in crawls of before 2009.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/crawl/warc_header.h"

namespace quire {

// Start of the first record, which describes the file.
inline constexpr absl::string_view kArcMagic = "filedesc://";

// Parses a header line, with its line end:
//   version 1  URL IP DATE TYPE LENGTH
//   version 2  URL IP DATE TYPE RESULT CHECKSUM LOCATION OFFSET FILE LENGTH
// DATE has 14 digits: YYYYMMDDhhmmss. It is searched from the right, so the URL
// may have spaces; and TYPE too, which some crawlers wrote with parameters.
// Sets content_length, target_uri, date_ms and media_type (empty if TYPE is not
// a media type: "no-type").
// Errors: DataLoss  no such line, or a LENGTH over 2^63 - 1. The message does
//                   not name file and position: the caller knows them.
absl::StatusOr<WarcHeader> ParseArcHeader(ByteView line);

// True if `text` begins with a header line, or has no line end and begins with
// the scheme of a URL.
bool IsArcStart(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_ARC_HEADER_H_
