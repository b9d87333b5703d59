// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_settings.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kProfileFileSizeBytesMax = size_t{1} << 20;
constexpr size_t kTokenFileSizeBytesMax = size_t{64} << 10;

// Unset if there is no such file.
absl::StatusOr<std::optional<std::string>> ReadWhole(const std::string& path,
                                                     size_t size_bytes_max,
                                                     absl::string_view what) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::nullopt;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read; correct its permissions"));
  }
  std::string bytes(size_bytes_max + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  // A directory can be opened and not read.
  if (file.bad()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read; expected a file of ", what));
  }
  if (bytes.size() > size_bytes_max) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": has more than ", size_bytes_max,
                     " bytes; expected a file of ", what));
  }
  return std::optional<std::string>(std::move(bytes));
}

// Reads the profile of the file that a variable names, or else of that in the
// home directory, into `settings`. Returns the path.
absl::StatusOr<std::string> ReadProfile(CredentialSettings& all,
                                        const std::string& variable,
                                        absl::string_view name_at_home,
                                        ProfileFile file,
                                        ProfileSettings& settings) {
  const std::string named = all.Variable(variable);
  const char* const home =
      std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  std::string path = !named.empty() ? named
                                    : absl::StrCat(home == nullptr ? "" : home,
                                                   "/.aws/", name_at_home);
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                         ReadWhole(path, kProfileFileSizeBytesMax, "profiles"));
  if (!text.has_value()) {
    if (!named.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": does not exist; correct ", variable, ", or unset it"));
    }
    return path;
  }
  auto found = ParseProfile(*text, all.profile, file);
  if (!found.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", found.status().message()));
  }
  if (found->has_value()) {
    all.has_profile = true;
    settings = **std::move(found);
  }
  return path;
}

std::string ValueOf(const ProfileSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

// The older name of a token is asked first, as in botocore.
std::string FirstOf(std::string first, std::string second) {
  return first.empty() ? std::move(second) : std::move(first);
}

}  // namespace

std::string CredentialSettings::Variable(const std::string& name) const {
  return ValueOf(variables, name);
}

std::string CredentialSettings::Setting(const std::string& name) const {
  return FirstOf(ValueOf(credentials_file, name), ValueOf(config_file, name));
}

absl::StatusOr<StoreCredentials> CredentialSettings::KeysOf(
    ProfileFile file) const {
  const bool is_config = file == ProfileFile::kConfig;
  const ProfileSettings& from = is_config ? config_file : credentials_file;
  StoreCredentials keys = {
      .access_key_id = ValueOf(from, "aws_access_key_id"),
      .secret_access_key = ValueOf(from, "aws_secret_access_key"),
      .session_token = FirstOf(ValueOf(from, "aws_security_token"),
                               ValueOf(from, "aws_session_token")),
      .source = absl::StrCat(is_config ? config_path : credentials_path,
                             ": profile ", profile)};
  QUIRE_RETURN_IF_ERROR(CheckCredentials(keys, keys.source));
  return keys;
}

absl::StatusOr<StoreCredentials> CredentialSettings::KeysOfVariables() const {
  StoreCredentials keys = {
      .access_key_id = Variable("AWS_ACCESS_KEY_ID"),
      .secret_access_key = Variable("AWS_SECRET_ACCESS_KEY"),
      .session_token = FirstOf(Variable("AWS_SECURITY_TOKEN"),
                               Variable("AWS_SESSION_TOKEN")),
      .source = "the environment (AWS_*)"};
  QUIRE_RETURN_IF_ERROR(CheckCredentials(keys, keys.source));
  return keys;
}

absl::StatusOr<CredentialSettings> ReadCredentialSettings() {
  CredentialSettings all;
  // The environment does not change while the server runs.
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (absl::StartsWith(text, "AWS_") && equals != absl::string_view::npos &&
        equals + 1 < text.size()) {
      all.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const StoreCredentials given, all.KeysOfVariables());
  if (given.is_set()) {
    // Nothing else counts.
    return all;
  }
  const std::string named =
      FirstOf(all.Variable("AWS_DEFAULT_PROFILE"), all.Variable("AWS_PROFILE"));
  if (!named.empty()) {
    all.profile = named;
  }
  QUIRE_ASSIGN_OR_RETURN(
      all.credentials_path,
      ReadProfile(all, "AWS_SHARED_CREDENTIALS_FILE", "credentials",
                  ProfileFile::kCredentials, all.credentials_file));
  QUIRE_ASSIGN_OR_RETURN(all.config_path,
                         ReadProfile(all, "AWS_CONFIG_FILE", "config",
                                     ProfileFile::kConfig, all.config_file));
  if (!named.empty() && !all.has_profile) {
    return absl::InvalidArgumentError(
        absl::StrCat(all.credentials_path, " and ", all.config_path,
                     ": have no profile ", named, "; correct AWS_PROFILE"));
  }
  QUIRE_RETURN_IF_ERROR(all.KeysOf(ProfileFile::kCredentials).status());
  QUIRE_RETURN_IF_ERROR(all.KeysOf(ProfileFile::kConfig).status());
  return all;
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(std::optional<std::string> text,
                         ReadWhole(path, kTokenFileSizeBytesMax, "a token"));
  if (!text.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": does not exist; expected a file of a token"));
  }
  absl::StripTrailingAsciiWhitespace(&*text);
  if (text->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is empty; expected a token"));
  }
  return *std::move(text);
}

}  // namespace quire
