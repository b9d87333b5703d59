// SPDX-License-Identifier: GPL-3.0-or-later
//
// Credentials for S3.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_
#define QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// Keys and token are never logged, nor part of any message.
struct StoreCredentials {
  std::string access_key_id = {};
  std::string secret_access_key = {};
  // Empty for permanent credentials.
  std::string session_token = {};
  absl::Time expiry = absl::InfiniteFuture();
  // For messages: where they come from, such as "the instance role web"; of
  // unset ones, what is known about the lack of them, or empty.
  std::string source = {};

  // False: requests are not signed, for public buckets.
  bool is_set() const { return !access_key_id.empty(); }

  // Thread-safe.
  bool HasKeysOf(const StoreCredentials& other) const {
    return access_key_id == other.access_key_id &&
           secret_access_key == other.secret_access_key &&
           session_token == other.session_token;
  }
};

// True if the text can be a part of a header: printable ASCII without spaces.
bool IsHeaderText(absl::string_view text);

// Checks that key id and secret key come together, and that all values fit a
// header. The message names `where`, never values.
// Errors: InvalidArgument.
absl::Status CheckCredentials(const StoreCredentials& credentials,
                              absl::string_view where);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_STORE_CREDENTIALS_H_
