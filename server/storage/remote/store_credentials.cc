// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/store_credentials.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace quire {

bool IsHeaderText(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
}

absl::Status CheckCredentials(const StoreCredentials& credentials,
                              absl::string_view where) {
  if (credentials.access_key_id.empty() !=
      credentials.secret_access_key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " has only one of key id and secret key; set both"));
  }
  if (!IsHeaderText(credentials.access_key_id) ||
      !IsHeaderText(credentials.secret_access_key) ||
      !IsHeaderText(credentials.session_token)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        " has a value with spaces or bytes that are not ASCII; copy it "
        "again"));
  }
  return absl::OkStatus();
}

}  // namespace quire
