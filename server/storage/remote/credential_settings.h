// SPDX-License-Identifier: GPL-3.0-or-later
//
// Settings of Amazon's tools about credentials: the environment and the files
// of profiles.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_SETTINGS_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_SETTINGS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/storage/remote/credential_text.h"

namespace quire {

struct CredentialSettings {
  // Variables AWS_* of the environment that are not empty.
  std::map<std::string, std::string> variables = {};
  // Profile in use, and its settings in both files.
  std::string profile = "default";
  bool has_profile = false;
  std::string credentials_path = {};
  ProfileSettings credentials_file = {};
  std::string config_path = {};
  ProfileSettings config_file = {};

  // Returns an empty string if it is not set.
  std::string Variable(const std::string& name) const;

  // Returns a setting of the profile; that of the credentials file is the
  // stronger. Empty if it is not set.
  std::string Setting(const std::string& name) const;

  // Keys of one of the files; unset if it has none.
  // Errors: InvalidArgument  the keys are incomplete or malformed.
  absl::StatusOr<StoreCredentials> KeysOf(ProfileFile file) const;

  // Keys of the environment; the same.
  absl::StatusOr<StoreCredentials> KeysOfVariables() const;
};

// Reads AWS_*, and the profile AWS_DEFAULT_PROFILE or AWS_PROFILE ("default")
// of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
// (~/.aws/config). Blocks on I/O.
// Errors: InvalidArgument     a line is malformed, keys are incomplete, or no
//                             file has the profile that a variable names.
//         FailedPrecondition  a file cannot be read.
absl::StatusOr<CredentialSettings> ReadCredentialSettings();

// Reads a file that has a token, without white space at its end. Blocks on I/O.
// Errors: FailedPrecondition  it cannot be read, or is empty or too large. The
//                             message has the path.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_SETTINGS_H_
