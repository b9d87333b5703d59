// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/store_credentials.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kCredentialsFileSizeBytesMax = size_t{1} << 20;

// The environment does not change while the server runs.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// A value becomes part of a header.
bool IsHeaderText(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
}

absl::Status CheckComplete(const StoreCredentials& credentials,
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

}  // namespace

absl::StatusOr<StoreCredentials> ParseCredentialsFile(
    absl::string_view text, absl::string_view profile) {
  StoreCredentials credentials;
  bool is_ours = false;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') {
      continue;
    }
    if (line.front() == '[') {
      if (line.back() != ']') {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": expected [PROFILE]"));
      }
      is_ours = absl::StripAsciiWhitespace(line.substr(1, line.size() - 2)) ==
                profile;
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": expected NAME = VALUE"));
    }
    if (!is_ours) {
      continue;
    }
    const absl::string_view name =
        absl::StripAsciiWhitespace(line.substr(0, equals));
    const std::string value(
        absl::StripAsciiWhitespace(line.substr(equals + 1)));
    if (name == "aws_access_key_id") {
      credentials.access_key_id = value;
    } else if (name == "aws_secret_access_key") {
      credentials.secret_access_key = value;
    } else if (name == "aws_session_token") {
      credentials.session_token = value;
    }
  }
  QUIRE_RETURN_IF_ERROR(
      CheckComplete(credentials, absl::StrCat("profile ", profile)));
  return credentials;
}

absl::StatusOr<StoreCredentials> FindStoreCredentials() {
  const StoreCredentials given = {
      .access_key_id = Variable("AWS_ACCESS_KEY_ID"),
      .secret_access_key = Variable("AWS_SECRET_ACCESS_KEY"),
      .session_token = Variable("AWS_SESSION_TOKEN")};
  if (given.is_set() || !given.secret_access_key.empty()) {
    QUIRE_RETURN_IF_ERROR(CheckComplete(given, "the environment (AWS_*)"));
    return given;
  }
  const std::string named = Variable("AWS_SHARED_CREDENTIALS_FILE");
  const std::string path =
      named.empty() ? absl::StrCat(Variable("HOME"), "/.aws/credentials")
                    : named;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT && named.empty()) {
      return StoreCredentials{};
    }
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": cannot be read; correct AWS_SHARED_CREDENTIALS_FILE or its "
        "permissions"));
  }
  std::vector<char> bytes(kCredentialsFileSizeBytesMax + 1);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto size_bytes = static_cast<size_t>(file.gcount());
  // A directory can be opened and not read.
  if (file.bad()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read; expected a file of credentials"));
  }
  if (size_bytes > kCredentialsFileSizeBytesMax) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": has more than ", kCredentialsFileSizeBytesMax,
                     " bytes; expected a file of credentials"));
  }
  const std::string profile = Variable("AWS_PROFILE");
  absl::StatusOr<StoreCredentials> found =
      ParseCredentialsFile(absl::string_view(bytes.data(), size_bytes),
                           profile.empty() ? "default" : profile);
  if (!found.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", found.status().message()));
  }
  if (!found->is_set() && !profile.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no profile ", profile,
                     " with aws_access_key_id; correct AWS_PROFILE"));
  }
  return found;
}

}  // namespace quire
