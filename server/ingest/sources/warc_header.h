// SPDX-License-Identifier: GPL-3.0-or-later
//
// The header of a WARC record (ISO 28500:2017, WARC 1.1, section 5; 1.0 is the
// same but for dates and the marks around URIs).
#ifndef QUIRE_SERVER_INGEST_SOURCES_WARC_HEADER_H_
#define QUIRE_SERVER_INGEST_SOURCES_WARC_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// What ingest wants to know of it.
struct WarcHeader {
  // Of the block that follows.
  uint64_t content_length = 0;
  // WARC-Type, in lower case: "response", "request", "warcinfo", ...
  std::string record_type;
  // WARC-Target-URI and WARC-Record-ID without the <> that 1.0 puts around
  // them; empty if absent.
  std::string target_uri;
  std::string record_id;
  // WARC-Date; unset if absent or not of a form that the standard has.
  std::optional<int64_t> date_ms;
  // Content-Type, without parameters, in lower case; empty if absent.
  std::string media_type;
  // The line end that this header uses: the standard's CRLF, or LF alone.
  bool crlf = true;
};

// The largest header that is read, a bound on memory.
inline constexpr size_t kWarcHeaderSizeBytesMax = size_t{1} << 20;

// Parses a header, from the version line to the empty line. Names of fields are
// the same in upper and lower case; a line that starts with a space or tab goes
// on with the value of the line before it; fields that occur twice count once,
// the first (two different Content-Length are an error).
// Errors: DataLoss  not "WARC/1.0" or "WARC/1.1", a line without a colon,
//                   Content-Length absent, malformed or over 2^63 - 1.
// The message does not name file and place: the caller knows them.
absl::StatusOr<WarcHeader> ParseWarcHeader(ByteView bytes);

// A date in one of the forms of W3C-DTF that WARC allows, in UTC: YYYY,
// YYYY-MM, YYYY-MM-DD, YYYY-MM-DDThh:mmZ, YYYY-MM-DDThh:mm:ssZ, or with a
// fraction of one to nine digits before the Z, which is cut to milliseconds. In
// milliseconds since 1970; nullopt if it is of no such form or no date.
std::optional<int64_t> ParseWarcDate(absl::string_view text);

// The media type of a Content-Type value: "text/html" of
// "Text/HTML; charset=utf-8".
std::string MediaTypeOf(absl::string_view content_type);

// The media type of the Content-Type field of an HTTP response; empty if it has
// none. `bytes` is the start of the response; what lies behind it is not
// looked at. Nullopt if it is no HTTP response.
std::optional<std::string> HttpMediaType(ByteView bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_WARC_HEADER_H_
