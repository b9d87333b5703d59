// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whatever a file of profiles, a program or a service has, the values of
// credentials fit a header; a line is split into no more than it has.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"

#include "server/storage/remote/credential_request.h"
#include "server/storage/remote/credential_settings.h"
#include "server/storage/remote/credential_text.h"

namespace {

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckFound(const absl::StatusOr<quire::StoreCredentials>& found) {
  if (found.ok()) {
    Check(found->access_key_id.empty() == found->secret_access_key.empty());
    Check(quire::IsHeaderText(found->access_key_id) &&
          quire::IsHeaderText(found->secret_access_key) &&
          quire::IsHeaderText(found->session_token));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  quire::CredentialSettings settings;
  for (const auto file :
       {quire::ProfileFile::kCredentials, quire::ProfileFile::kConfig}) {
    const auto parsed = quire::ParseProfile(text, "web", file);
    if (parsed.ok() && parsed->has_value()) {
      settings.credentials_file = **parsed;
      CheckFound(settings.KeysOf(quire::ProfileFile::kCredentials));
    }
  }
  const auto words = quire::SplitCommandLine(text);
  if (words.ok()) {
    size_t word_bytes = 0;
    for (const std::string& word : *words) {
      word_bytes += word.size();
    }
    Check(word_bytes + words->size() <= size_bytes + 1);
  }
  for (const auto kind :
       {quire::CredentialJson::kRole, quire::CredentialJson::kProcess}) {
    CheckFound(quire::ParseCredentialJson(text, kind));
  }
  CheckFound(quire::ParseAssumedRole(text));
  Check(quire::ParseStsErrorCode(text).find_first_of("\r\n <") ==
        std::string::npos);
  // An origin has no path: it would be shown.
  Check(!quire::IsContainerUrl(text) || !quire::OriginOf(text).empty());
  return 0;
}
