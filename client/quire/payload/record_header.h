// SPDX-License-Identifier: Apache-2.0
//
// The headers of a record of a crawl: WARC (ISO 28500:2017, WARC 1.1, and 1.0)
// and, in its block, HTTP (RFC 9112).
#ifndef QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_
#define QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// The largest header that is read, a bound on memory.
inline constexpr size_t kRecordHeaderSizeBytesMax = size_t{1} << 20;

// Fields of a WARC header; those that are absent are empty. A field that occurs
// twice counts once, the first.
struct WarcFields {
  // Of the block that follows.
  uint64_t content_length = 0;
  // WARC-Type, in lower case: "response", "revisit", ...
  std::string type;
  // WARC-Target-URI and WARC-Refers-To-Target-URI, without the <> that 1.0
  // allows.
  std::string target_uri;
  std::string refers_to_target_uri;
  // WARC-Date and WARC-Refers-To-Date, as they are.
  std::string date;
  std::string refers_to_date;
  // WARC-Payload-Digest: "sha1:BASE32", as it is.
  std::string payload_digest;
  // WARC-Truncated: why the crawler left bytes out.
  std::string truncated;
  // Content-Type of the block, as it is.
  std::string content_type;
};

// `header` is all up to the empty line. Thread-safe.
// Errors: DataLoss  no WARC header, or no Content-Length.
absl::StatusOr<WarcFields> ParseWarcFields(absl::string_view header);

// Fields of the header of an HTTP message.
struct HttpFields {
  // Unset for a request.
  std::optional<int> status_code;
  // As it is; empty if absent.
  std::string content_type;
  std::optional<uint64_t> content_length;
  // In lower case, in the order in which they were applied.
  std::vector<std::string> transfer_codings;
  std::vector<std::string> content_codings;
};

// `header` is all up to the empty line. Lines without a colon are passed over,
// as browsers do. Thread-safe.
HttpFields ParseHttpFields(absl::string_view header);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PAYLOAD_RECORD_HEADER_H_
