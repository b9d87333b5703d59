// SPDX-License-Identifier: GPL-3.0-or-later
//
// Credentials for S3, from where Amazon's tools look for them.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_
#define QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// Never logged, nor part of any message.
struct StoreCredentials {
  std::string access_key_id;
  std::string secret_access_key;
  // Empty for credentials without an expiry.
  std::string session_token;

  // False: requests are not signed, for public buckets.
  bool is_set() const { return !access_key_id.empty(); }
};

// Returns the credentials of a profile in the text of a shared credentials
// file; unset if it has no such profile. Messages name lines, never values.
// Errors: InvalidArgument  a line is malformed, or the profile is incomplete.
absl::StatusOr<StoreCredentials> ParseCredentialsFile(
    absl::string_view text, absl::string_view profile);

// Returns AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or
// else the profile AWS_PROFILE ("default") of the file
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Unset if there are neither.
// Blocks on I/O.
// Errors: InvalidArgument     as ParseCredentialsFile(), or one variable
//                             without the other.
//         FailedPrecondition  the file cannot be read.
absl::StatusOr<StoreCredentials> FindStoreCredentials();

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_
