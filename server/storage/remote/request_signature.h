// SPDX-License-Identifier: GPL-3.0-or-later
//
// Signatures of requests to S3: AWS Signature Version 4 (Amazon S3 API
// Reference, "Authenticating Requests: Using the Authorization Header").
#ifndef QUIRE_SERVER_STORAGE_REMOTE_REQUEST_SIGNATURE_H_
#define QUIRE_SERVER_STORAGE_REMOTE_REQUEST_SIGNATURE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/storage/remote/store_credentials.h"

namespace quire {

// Names and values of HTTP headers.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Parts of a query, not encoded.
using HttpQuery = std::vector<std::pair<std::string, std::string>>;

struct UnsignedRequest {
  std::string method = "GET";
  // Value of the header Host.
  std::string host;
  // Percent-encoded, as in the URL.
  std::string path;
  // Further headers, all of which are signed.
  HttpHeaders headers;
  HttpQuery query = {};
  // Must live until the call returns.
  absl::string_view body = {};
};

// Returns "A=B&C=D", encoded and sorted as signatures need it; empty for an
// empty query.
std::string EncodeStoreQuery(const HttpQuery& query);

// Returns the headers of the request, signed: those given, the time, the hash
// of the body, the session token if there is one, and Authorization. Host
// is signed and not returned, as it follows from the URL. REQUIRES: the
// credentials are set. Their secret is not in the result.
HttpHeaders SignRequest(const UnsignedRequest& request,
                        const StoreCredentials& credentials,
                        absl::string_view region, absl::Time now);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_REQUEST_SIGNATURE_H_
