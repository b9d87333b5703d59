// SPDX-License-Identifier: Apache-2.0
//
// Just enough of HTTP to read a server's /metrics page.
#ifndef QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_
#define QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

struct HttpUrl {
  std::string host;
  std::string port;
  // With the query; begins with a slash.
  std::string path;
};

// Of "http://host:port/path", with IPv6 addresses in brackets. No port is 80,
// no path is "/". Thread-safe.
// Errors: InvalidArgument  anything else.
absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view text);

// The body of an answer of code 200, by its headers. Thread-safe.
// Errors: DataLoss     cut short, or not HTTP.
//         Unavailable  another code; the message names it.
absl::StatusOr<std::string> ParseHttpAnswer(absl::string_view answer);

struct HttpLimits {
  std::chrono::milliseconds time_max{10'000};
  // Of the whole answer.
  size_t size_bytes_max = size_t{16} << 20;
};

// Gets that page in HTTP/1.0 (RFC 1945), over a connection of its own. Blocks,
// no longer than the limit but for the look-up of a host's name. Thread-safe.
// Errors: Unavailable        no connection, or an answer of another code.
//         DeadlineExceeded   it took too long.
//         ResourceExhausted  the answer is too large.
//         DataLoss           as above.
absl::StatusOr<std::string> HttpGet(const HttpUrl& url,
                                    const HttpLimits& limits);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_
