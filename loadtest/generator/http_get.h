// SPDX-License-Identifier: Apache-2.0
//
// To read a server's /metrics page, by libcurl.
#ifndef QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_
#define QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

// Thread-safe.
// Errors: InvalidArgument  not like http://host:port/path.
absl::Status CheckHttpUrl(const std::string& url);

struct HttpLimits {
  std::chrono::milliseconds time_max{10'000};
  // Of the page.
  size_t size_bytes_max = size_t{16} << 20;
};

// Gets that page over a connection of its own, past any proxy. Blocks, at most
// for limits.time_max. Thread-safe.
// Errors: Unavailable        no connection, or an answer of another code than
//                            200; the message names it.
//         DeadlineExceeded   it took too long.
//         ResourceExhausted  the page is too large.
//         DataLoss           the page is truncated.
absl::StatusOr<std::string> HttpGet(const std::string& url,
                                    const HttpLimits& limits);

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_HTTP_GET_H_
