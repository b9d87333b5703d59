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

// A GET without a query.
struct UnsignedRequest {
  // Value of the header Host.
  std::string host;
  // Percent-encoded, as in the URL.
  std::string path;
  // Further headers, all of which are signed.
  HttpHeaders headers;
};

// Returns the headers of the request, signed: those given, the time, the hash
// of the empty body, the session token if there is one, and Authorization. Host
// is signed and not returned, as it follows from the URL. REQUIRES: the
// credentials are set. Their secret is not in the result.
HttpHeaders SignRequest(const UnsignedRequest& request,
                        const StoreCredentials& credentials,
                        absl::string_view region, absl::Time now);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_REQUEST_SIGNATURE_H_
