// SPDX-License-Identifier: Apache-2.0
//
// Headers of a crawl record: WARC (ISO 28500:2017, WARC 1.1, and 1.0) or the
// line of an ARC record, and, in its block, HTTP (RFC 9112).
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Upper bound on a header, and on the memory for it.
inline constexpr size_t kRecordHeaderSizeBytesMax = size_t{1} << 20;

// First bytes of an HTTP response.
inline constexpr absl::string_view kHttpMagic = "HTTP/";

// Start of a WARC record, which some programs write in lower case.
inline constexpr absl::string_view kWarcMagic = "WARC/";

// True if `record` begins so. Thread-safe.
bool IsWarcRecord(absl::string_view record);

// Fields of a WARC header; absent fields are empty. The first of duplicate
// fields counts.
struct WarcFields {
  // Size of the block that follows.
  uint64_t content_length = 0;
  // WARC-Type, in lower case: "response", "revisit", ...
  std::string type;
  // WARC-Target-URI and WARC-Refers-To-Target-URI, without the <> that 1.0
  // allows.
  std::string target_uri;
  std::string refers_to_target_uri;
  // WARC-Date and WARC-Refers-To-Date, unchanged.
  std::string date;
  std::string refers_to_date;
  // WARC-Payload-Digest, unchanged: "sha1:BASE32".
  std::string payload_digest;
  // WARC-Truncated: reason why the crawler omitted bytes.
  std::string truncated;
  // Content-Type of the block, unchanged.
  std::string content_type;
};

// `header` ends with the empty line, or is the line of an ARC record: then the
// fields are those of the same record in a WARC. Its type is "warcinfo" if it
// describes its file, else "response". Thread-safe.
// Errors: DataLoss  no such header, or no Content-Length.
absl::StatusOr<WarcFields> ParseWarcFields(absl::string_view header);

// Content-Type of the record of a WARC that an ARC record other than the first
// is, as of other programs.
inline constexpr absl::string_view kArcContentType =
    "application/http;msgtype=response";

// Returns the size of the header of the record that begins with `record`: up to
// the empty line in a WARC, the first line otherwise. Nullopt if it depends on
// more bytes. Thread-safe.
std::optional<size_t> FindRecordHeaderEnd(absl::string_view record);

// True if the block of a response, request or revisit is an HTTP message.
// Thread-safe.
bool HoldsHttp(const WarcFields& warc);

// True if `block` begins, or ends before it can differ from, an HTTP response,
// after empty lines. Thread-safe.
bool MayStartHttp(absl::string_view block);

// Fields of the header of an HTTP message.
struct HttpFields {
  // Unset for a request.
  std::optional<int> status_code;
  // Unchanged; empty if absent.
  std::string content_type;
  std::optional<uint64_t> content_length;
  // In lower case, in the order of encoding.
  std::vector<std::string> transfer_codings;
  std::vector<std::string> content_codings;
};

// `header` ends with the empty line; others may precede it. Lines without a
// colon are ignored, as browsers do. Thread-safe.
HttpFields ParseHttpFields(absl::string_view header);

// Result of FindHttpStatus().
struct HttpStatusSearch {
  // False: the status depends on more bytes of the record.
  bool is_decided = true;
  // Unset: the record has no HTTP status.
  std::optional<int> code = {};
};

// Finds the HTTP status of a response or revisit in the first bytes of its
// record, after interim responses (1xx). Bytes that are not such a record have
// no status. Always decides if `record` is a whole one. Thread-safe.
HttpStatusSearch FindHttpStatus(ByteView record);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_
