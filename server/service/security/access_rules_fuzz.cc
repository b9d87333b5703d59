// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary rules and headers: accepted rules match their globs, and only
// headers made from a secret are accepted.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "server/service/security/access_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  static const auto* const one_token = [] {
    return new std::shared_ptr<const quire::AccessRules>(
        *quire::AccessRules::Parse(
            // Hash of "secret".
            "token a sha256=2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25"
            "fe97bf527a25b archives=* rights=read"));
  }();
  if ((*one_token)->FindToken(text, now) != nullptr) {
    QUIRE_CHECK(text.substr(6) == " a.secret");
  }
  const auto rules = quire::AccessRules::Parse(text);
  if (rules.ok()) {
    (*rules)->FindToken(text, now);
    (*rules)->FindCertificate(text, now);
  }
  const size_t half = size / 2;
  quire::MatchesGlob(text.substr(0, half), text.substr(half));
  return 0;
}
