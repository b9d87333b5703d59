// SPDX-License-Identifier: Apache-2.0
//
// Headers of answers with archived contents, which anybody may have written.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_CONTENT_HEADERS_H_
#define QUIRE_CLIENT_HTTP_REQUEST_CONTENT_HEADERS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/http/request/http_answer.h"

namespace quire {

inline constexpr const char* kWarcType = "application/warc";
// That of PRONOM (x-fmt/219); none is registered.
inline constexpr const char* kArcType = "application/x-internet-archive";

// True for one or more token characters (RFC 9110, section 5.6.2). Thread-safe.
bool IsHttpToken(absl::string_view text);

// True if `text` may be the value of Content-Type: TYPE/SUBTYPE of token
// characters, and parameters of printable ASCII; at most 256 bytes.
// Thread-safe.
bool IsContentType(absl::string_view text);

// Returns the media type of a document: `media_type`, that of its source, if it
// is one; otherwise what the suffix of its id stands for, as documents of
// directories have none. Thread-safe.
std::string DocumentMediaType(absl::string_view media_type,
                              absl::string_view id);

// Adds ETag, caching and the headers that keep archived pages from acting in
// the gateway's origin. `etag` has its quotes; empty: none.
void AddContentHeaders(const HttpRequest& request, absl::string_view etag,
                       Answer& answer);

// Adds caching alone: contents that are named by uuid may be cached for a week,
// others must be validated, those with a token are for one client.
void AddCaching(const HttpRequest& request, Answer& answer);

// The answer 416.
Answer UnsatisfiableRange(uint64_t size_bytes);

// The error of a request without memory for its answer.
absl::Status MemoryExhausted();

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_CONTENT_HEADERS_H_
