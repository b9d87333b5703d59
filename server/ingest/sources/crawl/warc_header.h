// SPDX-License-Identifier: GPL-3.0-or-later
//
// The header of a WARC record (ISO 28500:2017, WARC 1.1, section 5; 1.0 differs
// in dates and in the brackets around URIs).
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_HEADER_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Fields that ingest uses.
struct WarcHeader {
  // Size of the block that follows; unset if the header does not say: see
  // `oddities`.
  std::optional<uint64_t> content_length;
  // WARC-Type, in lower case: "response", "request", "warcinfo", ...
  std::string record_type;
  // WARC-Target-URI and WARC-Record-ID without the <> of 1.0; empty if absent.
  std::string target_uri;
  std::string record_id;
  // The first WARC-Concurrent-To, likewise.
  std::string concurrent_to;
  // WARC-Payload-Digest, unchanged: "sha1:BASE32"; empty if absent.
  std::string payload_digest;
  // WARC-Date; unset if absent or not a date.
  std::optional<int64_t> date_ms;
  // Content-Type, without parameters, in lower case; empty if absent.
  std::string media_type;
  // Line end of this header: the standard's CRLF, or LF alone.
  bool crlf = true;
  // Faults of the header that do not make it unreadable, each as a clause:
  // "its WARC-Date must be ...".
  std::vector<std::string> oddities;
};

// True for the first line of a header that ParseWarcHeader() accepts.
bool IsWarcVersion(absl::string_view line);

// True for a line in which another record may begin, after a truncated one.
bool EndsWithWarcVersion(absl::string_view line);

// Upper bound on a header, and on the memory for it.
inline constexpr size_t kWarcHeaderSizeBytesMax = size_t{1} << 20;

// Parses a header, from the version line to the empty line. Field names are
// case-insensitive. A line that starts with a space or tab continues the value
// of the line before it. The first of duplicate fields counts. Noted in
// `oddities` are a line without a colon, a duplicate with another value, a
// WARC-Date that is not a date, and a Content-Length that is absent, malformed,
// over 2^63 - 1, or not the only one. Errors: DataLoss  not "WARC/1.0" or
// "WARC/1.1", nor the drafts 0.17 and 0.18,
//                   in either case;
//                   a line in which another record begins: with a version,
//                   and without a field or with one that follows again. The
//                   message does not name file and position: the caller knows
//                   them.
absl::StatusOr<WarcHeader> ParseWarcHeader(ByteView bytes);

// Parses a date in a form of W3C-DTF that WARC allows: YYYY, YYYY-MM,
// YYYY-MM-DD, YYYY-MM-DDThh:mmZ, YYYY-MM-DDThh:mm:ssZ, or with a fraction of
// one to nine digits before the Z, truncated to milliseconds. As crawlers write
// them, also the 14 digits YYYYMMDDhhmmss, a space for the T, and for the Z an
// offset from UTC (+01:00, +0100, +01) or nothing, which means UTC.
// Returns milliseconds since 1970; nullopt for any other form or an impossible
// date.
std::optional<int64_t> ParseWarcDate(absl::string_view text);

// The media type of a Content-Type value: "text/html" of
// "Text/HTML; charset=utf-8".
std::string MediaTypeOf(absl::string_view content_type);

// Status of an HTTP response, which empty lines may precede; 0 if `bytes`, its
// start, is not one, or has none of three digits.
uint32_t HttpStatus(ByteView bytes);

// Media type of the Content-Type field of an HTTP response, which empty lines
// may precede; empty if it has none. `bytes` is the start of the response; the
// rest is ignored. Nullopt if it is not an HTTP response.
std::optional<std::string> HttpMediaType(ByteView bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_HEADER_H_
