// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parsers of the texts that have credentials or say where they are: files of
// profiles, command lines, and answers of programs and services. Messages name
// lines and members, never values. Thread-safe.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_TEXT_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_TEXT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/storage/remote/store_credentials.h"

namespace quire {

// Settings of one profile by their names, in lower case. A value that continues
// on indented lines has line ends.
using ProfileSettings = std::map<std::string, std::string>;

// ~/.aws/credentials has sections [NAME]; ~/.aws/config has [default] and
// [profile NAME].
enum class ProfileFile : uint8_t { kCredentials, kConfig };

// Unset if the text has no such profile. Of several settings with one name the
// last counts.
// Errors: InvalidArgument  a line is malformed.
absl::StatusOr<std::optional<ProfileSettings>> ParseProfile(
    absl::string_view text, absl::string_view profile, ProfileFile file);

// Splits a command line into arguments as a shell does, but expands nothing:
// Python's shlex.split().
// Errors: InvalidArgument  a quote is not closed, or a backslash is the end.
absl::StatusOr<std::vector<std::string>> SplitCommandLine(
    absl::string_view text);

enum class CredentialJson : uint8_t {
  // Answer of the metadata services of containers and instances: all members,
  // and "Token".
  kRole,
  // Output of credential_process: "Version" 1; without "SessionToken" and
  // "Expiration" the credentials are permanent.
  kProcess,
};

// `source` is not set.
// Errors: InvalidArgument  not such an object; of a role, the message has the
//                          member "Code".
absl::StatusOr<StoreCredentials> ParseCredentialJson(absl::string_view text,
                                                     CredentialJson kind);

// Parses an answer of STS to AssumeRoleWithWebIdentity. `source` is not set.
// Errors: InvalidArgument.
absl::StatusOr<StoreCredentials> ParseAssumedRole(absl::string_view text);

// Returns the code of an error that STS answered, such as
// "ExpiredTokenException"; empty if there is none, or none of the usual form.
std::string ParseStsErrorCode(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CREDENTIAL_TEXT_H_
